// Package openapi holds openapi.yaml, the description of the Agent Messaging
// Service in OpenAPI, for programs that serve it or make mocks and clients of
// it.
package openapi

import _ "embed" // the document

// Document is openapi.yaml: the nine endpoints of interface 4 with their
// requests, answers and statuses.
//
//go:embed openapi.yaml
var Document string
