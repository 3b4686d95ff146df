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
//   - hold what the SDK's own client sends against it.
//
// A module of its own, so that none of these tools is a dependency of the SDK.
package openapi

//go:generate go tool oapi-codegen -config client/config.yaml -o client/client.gen.go ../../openapi.yaml
