// Package retryablehttp is go-retryablehttp with its defaults, and the same
// code by hand around it as the floor has.
package retryablehttp

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

// Peer is bare go-retryablehttp.
var Peer = peers.Peer{
	Name: "go-retryablehttp", Module: "github.com/hashicorp/go-retryablehttp", Answers: service.Answers,
	New: func(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
		return service.Calls(New(transport, baseURL)), nil
	},
}

// Client calls the service through go-retryablehttp.
type Client struct {
	Retry   *retryablehttp.Client
	BaseURL string
}

// New returns a client that logs nothing; all else is the library's default.
func New(transport http.RoundTripper, baseURL string) *Client {
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: transport}
	client.Logger = nil
	return &Client{client, baseURL}
}

// Do makes one call; body may be nil.
func (c *Client) Do(ctx context.Context, method, path string, body any, into service.Checker) error {
	var raw any
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		raw = encoded
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, method, c.BaseURL+path, raw)
	if err != nil {
		return err
	}
	service.Authorize(req.Header)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.Retry.Do(req)
	if err != nil {
		return err
	}
	return service.Decode(resp, into)
}
