// Package agentmessaging is the SDK of this repository.
package agentmessaging

import (
	"context"
	"net/http"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

// Peer is the SDK.
var Peer = peers.Peer{
	Name: "agentmessaging", Module: "github.com/agent-messaging-service/agentmessaging-go",
	Answers: service.Answers, New: newCalls,
}

func newCalls(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
	client, err := agentmessaging.NewClient(baseURL, service.Key, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return peers.Calls{}, err
	}
	return peers.Calls{
		Post: func(ctx context.Context) error {
			reply, err := client.SendMessage(ctx, service.AgentID, agentmessaging.MessageParams{Text: service.Text})
			if err == nil && reply.Text == "" {
				err = peers.Undecoded("reply_text")
			}
			return err
		},
		Get: func(ctx context.Context) error {
			agent, err := client.GetAgent(ctx, service.AgentID)
			if err == nil && agent.ID == "" {
				err = peers.Undecoded("agent_id")
			}
			return err
		},
	}, nil
}
