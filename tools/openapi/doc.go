// Package openapi checks openapi.yaml, the description of the Agent Messaging
// Service for machines, from outside: nothing in that file was generated from
// the client or from the fake. The package itself is empty; its tests
//
//   - compare its calls and replies with the interface, both ways, by kin-openapi,
//   - let Prism play the service from it, a mock server that others wrote: the contract
//     suite runs against it,
//   - let oapi-codegen make a client of it, which compiles,
//   - and hold the standalone fake's control interface to its document.
//
// A nested module, so that none of these tools is a dependency of the SDK. Prism needs
// Node 20 and "npm ci" in this folder; its tests are skipped without.
package openapi
