// Package anthropic is anthropic-sdk-go: a message created, and a model read.
package anthropic

import (
	"context"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

const (
	model     = anthropic.ModelClaudeHaiku4_5
	maxTokens = 1024
)

// Peer is anthropic-sdk-go.
var Peer = peers.Peer{
	Name: "anthropic-sdk-go", Module: "github.com/anthropics/anthropic-sdk-go",
	Answers: map[string]string{
		"/v1/messages": `{"id":"msg_01jb2m7vqk8rs4d1","type":"message","role":"assistant","model":"` + model + `",` +
			`"content":[{"type":"text","text":"It was sent on Monday and should be with you tomorrow."}],` +
			`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":18,"output_tokens":12}}`,
		"/v1/models/" + model: `{"id":"` + model + `","type":"model","display_name":"Claude Haiku","created_at":"2026-05-01T12:00:00Z"}`,
	},
	New: newCalls,
}

func newCalls(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
	// A call asks the environment whether it is to be traced. It is, as by
	// default: without a tracer in the program that sends nothing.
	peers.Unset("ANTHROPIC_")
	client := anthropic.NewClient(
		option.WithoutEnvironmentDefaults(), // nor a profile in the home folder
		option.WithBaseURL(baseURL),
		option.WithAPIKey(peers.Key),
		option.WithHTTPClient(&http.Client{Transport: transport}))
	return peers.Calls{
		Post: func(ctx context.Context) error {
			message, err := client.Messages.New(ctx, anthropic.MessageNewParams{
				Model:     model,
				MaxTokens: maxTokens,
				Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(service.Text))},
			})
			if err == nil && (len(message.Content) == 0 || message.Content[0].Text == "") {
				err = peers.Undecoded("content[0].text")
			}
			return err
		},
		Get: func(ctx context.Context) error {
			read, err := client.Models.Get(ctx, model, anthropic.ModelGetParams{})
			if err == nil && read.ID == "" {
				err = peers.Undecoded("id")
			}
			return err
		},
	}, nil
}
