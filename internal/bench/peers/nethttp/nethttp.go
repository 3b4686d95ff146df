// Package nethttp is the floor: the calls written by hand on net/http and
// encoding/json.
package nethttp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

// Peer is the floor.
var Peer = peers.Peer{
	Name: "net/http by hand", Answers: service.Answers,
	New: func(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
		return service.Calls(&Client{&http.Client{Transport: transport}, baseURL}), nil
	},
}

// Client calls the service by hand.
type Client struct {
	HTTP    *http.Client
	BaseURL string
}

// Do makes one call; body may be nil.
func (c *Client) Do(ctx context.Context, method, path string, body any, into service.Checker) error {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.BaseURL+path, reader)
	if err != nil {
		return err
	}
	service.Authorize(req.Header)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	return service.Decode(resp, into)
}
