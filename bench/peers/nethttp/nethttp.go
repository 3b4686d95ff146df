// Package nethttp is the floor: the calls written by hand on net/http and
// encoding/json.
package nethttp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/agent-messaging-service/agentmessaging-go/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers/service"
)

// Peer is the floor.
var Peer = peers.Peer{Name: "net/http by hand", Answers: service.Answers, New: newCalls}

func newCalls(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
	client := &http.Client{Transport: transport}
	return peers.Calls{
		Post: func(ctx context.Context) error {
			body, err := json.Marshal(service.Message{Text: service.Text})
			if err != nil {
				return err
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, baseURL+service.MessagePath, bytes.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			return send(client, req, new(service.Reply))
		},
		Get: func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, baseURL+service.AgentPath, nil)
			if err != nil {
				return err
			}
			return send(client, req, new(service.Agent))
		},
	}, nil
}

func send(client *http.Client, req *http.Request, into interface{ Check() error }) error {
	service.Authorize(req.Header)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return service.Decode(resp, into)
}
