// Package openapi checks openapi.yaml, the description of the Agent Messaging
// Service for machines, from outside: nothing in that file was generated from
// the client or from the fake. The package itself is empty; its tests
//
//   - compare the requests with the tables that the client and the fake read,
//     and the replies with the interface, both ways,
//   - hold every reply of the contract suite's run against it, and every request
//     that was carried out, with kin-openapi,
//   - let a client that oapi-codegen made of it talk to the fake,
//   - and hold the standalone fake's control interface against its document.
//
// A module of its own, so that none of these tools is a dependency of the SDK.
package openapi

//go:generate go tool oapi-codegen -config client/config.yaml -o client/client.gen.go ../../openapi/openapi.yaml
