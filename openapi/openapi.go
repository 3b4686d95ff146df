// Package openapi holds openapi.yaml, the description of the Agent Messaging
// Service in OpenAPI 3.1.0, for programs that serve it or make mocks and clients of
// it:
//
//	http.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, r *http.Request) {
//		io.WriteString(w, openapi.Document)
//	})
//
// "Interface 4" in these pages names a section of the service's interface document.
package openapi

import _ "embed" // the document

// Document is openapi.yaml: the endpoints of interface 4 with their
// requests, answers and statuses. It is a variable only because an embedded file has to be
// one: do not assign to it.
//
//go:embed openapi.yaml
var Document string
