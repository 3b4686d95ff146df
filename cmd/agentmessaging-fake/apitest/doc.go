// Package apitest holds the fake's control interface to its document: every call
// that the tests of package control make, and what every route refuses, each
// validated against openapi.yaml. It is a module of its own so that nobody who
// uses the SDK or the program downloads a validator.
package apitest
