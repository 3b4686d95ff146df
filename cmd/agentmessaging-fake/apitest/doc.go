// Package apitest holds the fake's control interface to its document: every
// route with every answer that it gives, each validated against openapi.yaml. It
// is a module of its own so that nobody who uses the SDK or the program
// downloads a validator.
package apitest
