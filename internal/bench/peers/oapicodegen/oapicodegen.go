// Package oapicodegen is the client that oapi-codegen makes of this
// repository's openapi.yaml.
package oapicodegen

//go:generate go tool oapi-codegen -config internal/client/config.yaml -o internal/client/client.gen.go ../../../../openapi.yaml

import (
	"context"
	"net/http"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/oapicodegen/internal/client"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

// Peer is the generated client. It neither retries nor limits what it reads.
var Peer = peers.Peer{
	Name: "oapi-codegen", Module: "github.com/oapi-codegen/oapi-codegen/v2",
	Answers: service.Answers, New: newCalls,
}

func newCalls(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
	c, err := client.NewClientWithResponses(baseURL,
		client.WithHTTPClient(&http.Client{Transport: transport}),
		client.WithRequestEditorFn(authorize))
	if err != nil {
		return peers.Calls{}, err
	}
	return peers.Calls{
		Post: func(ctx context.Context) error {
			reply, err := c.SendMessageWithResponse(ctx, service.AgentID, client.SendMessageJSONRequestBody{Text: service.Text})
			if err == nil && (reply.JSON200 == nil || reply.JSON200.ReplyText == "") {
				err = peers.Undecoded("reply_text")
			}
			return err
		},
		Get: func(ctx context.Context) error {
			agent, err := c.GetAgentWithResponse(ctx, service.AgentID)
			if err == nil && (agent.JSON200 == nil || agent.JSON200.AgentId == "") {
				err = peers.Undecoded("agent_id")
			}
			return err
		},
	}, nil
}

func authorize(_ context.Context, req *http.Request) error {
	req.Header.Set("Authorization", "Bearer "+service.Key)
	return nil
}
