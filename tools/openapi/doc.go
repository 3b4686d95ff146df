// Package openapi checks openapi.yaml, the description of the Agent Messaging
// Service for machines, from outside: nothing in that file was generated from
// the client or from the fake. The package itself is empty; its tests
//
//   - hold every request and reply of the contract suite's run to it with
//     kin-openapi: it takes what the service takes, and refuses what that refuses,
//   - compare the calls and their replies with the interface, both ways,
//   - let oapi-codegen make a client of it, which compiles,
//   - and do the same with the standalone fake's control interface.
//
// A nested module, so that none of these tools is a dependency of the SDK.
package openapi
