// Package roundtrip has transports for tests.
package roundtrip

import (
	"io"
	"net/http"
	"strings"
)

// Func is an http.RoundTripper that calls the function.
type Func func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f Func) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Answering returns a transport that answers every call in the same way, as JSON and with a
// Retry-After of a second.
func Answering(status int, body string) Func {
	return func(req *http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	}
}
