// Package openapi checks openapi.yaml, the description of the Agent Messaging Service for
// machines. Nothing in openapi.yaml was generated from the client or from the fake. The
// package itself is empty. Its tests
//
//   - compare the calls and replies of openapi.yaml with the interface, in both
//     directions, with kin-openapi,
//   - run the contract suite against Prism, a mock server of another project that serves
//     openapi.yaml,
//   - send messages to Prism through the limits of nginx and of HAProxy,
//   - generate a client with oapi-codegen, and compile the client,
//   - and check the standalone fake's control interface against its document.
//
// The package is a nested module, so that none of these tools is a dependency of the SDK.
// Prism needs Node 20 and "npm ci" in this folder. Without Prism, nginx or HAProxy, the tests
// that need them are skipped.
package openapi
