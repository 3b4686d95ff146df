// Package retryablehttp is go-retryablehttp with its defaults, and the same
// code by hand around it as the floor has.
package retryablehttp

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/agent-messaging-service/agentmessaging-go/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers/service"
)

// Peer is bare go-retryablehttp.
var Peer = peers.Peer{
	Name: "go-retryablehttp", Module: "github.com/hashicorp/go-retryablehttp",
	Answers: service.Answers, New: newCalls,
}

func newCalls(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: transport}
	client.Logger = nil
	return peers.Calls{
		Post: func(ctx context.Context) error {
			body, err := json.Marshal(service.Message{Text: service.Text})
			if err != nil {
				return err
			}
			req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, baseURL+service.MessagePath, body)
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			return send(client, req, new(service.Reply))
		},
		Get: func(ctx context.Context) error {
			req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, baseURL+service.AgentPath, nil)
			if err != nil {
				return err
			}
			return send(client, req, new(service.Agent))
		},
	}, nil
}

func send(client *retryablehttp.Client, req *retryablehttp.Request, into interface{ Check() error }) error {
	service.Authorize(req.Header)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return service.Decode(resp, into)
}
