// Package openapi checks openapi.yaml, the description of the Agent Messaging
// Service for machines, from outside: nothing in that file was generated from
// the client or from the fake. The package itself is empty; its tests
//
//   - compare the file with the tables that the client and the fake read, both
//     ways,
//   - validate every request and every reply of the contract suite's run
//     against it, with kin-openapi,
//   - hold replies against it that are wrong in one thing each,
//   - let a client that oapi-codegen made of it talk to the fake,
//   - let the SDK's own client talk to a mock server that Prism makes of it.
//
// A module of its own, so that none of these tools is a dependency of the SDK.
//
// Prism is installed with
//
//	npm ci --ignore-scripts --prefix prism
//
// and runs on Node.js 18.20 or newer; releases after the pinned one want a
// newer Node.js. Without it, its tests are skipped and say so, or with
// OPENAPI_REQUIRE_PRISM=1 fail.
package openapi

//go:generate go tool oapi-codegen -config client/config.yaml -o client/client.gen.go ../../openapi.yaml
