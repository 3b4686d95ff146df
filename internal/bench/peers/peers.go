// Package peers describes what is compared: clients of services that post and
// read JSON. Each client is in a package below, so that a program can be built
// with one of them alone.
package peers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// A Peer is a client, with the two calls of it that are measured. Both check
// that the answer was decoded.
type Peer struct {
	Name    string            // in the tables
	Module  string            // its path; empty for the standard library
	Answers map[string]string // JSON by the path that is asked for
	New     func(transport http.RoundTripper, baseURL string) (Calls, error)
}

// Subject is the name without what would end it in a benchmark's.
func (p Peer) Subject() string { return strings.NewReplacer(" ", "-", "/", "-").Replace(p.Name) }

// Calls are a POST of a message and a GET of a small object, or what is most
// like them in the API of the peer.
type Calls struct {
	Post, Get func(ctx context.Context) error
}

// Canned is a transport that has the answers of a peer in memory: what a call
// takes on it is the client's own.
type Canned map[string]string

// RoundTrip implements http.RoundTripper.
func (c Canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
	}
	answer, ok := c[req.URL.Path]
	if !ok {
		return nil, fmt.Errorf("no answer for %s", req.URL.Path)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader([]byte(answer))),
		ContentLength: int64(len(answer)),
		Request:       req,
	}, nil
}

// ServeHTTP is the same behind a socket.
func (c Canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, c[r.URL.Path])
}

// Undecoded is the error of a call whose answer lacks what was sent.
func Undecoded(what string) error {
	return fmt.Errorf("the answer was not decoded: %s is missing", what)
}
