// Package openai is openai-go: a chat completion, and a model read.
package openai

import (
	"context"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

const model = "gpt-4o"

// Peer is openai-go.
var Peer = peers.Peer{
	Name: "openai-go", Module: "github.com/openai/openai-go/v3",
	Answers: map[string]string{
		"/v1/chat/completions": `{"id":"chatcmpl-01jb2m7vqk8rs4d1","object":"chat.completion","created":1777636800,"model":"` + model + `",` +
			`"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",` +
			`"content":"It was sent on Monday and should be with you tomorrow."}}],` +
			`"usage":{"prompt_tokens":18,"completion_tokens":12,"total_tokens":30}}`,
		"/v1/models/" + model: `{"id":"` + model + `","object":"model","created":1777636800,"owned_by":"system"}`,
	},
	New: newCalls,
}

func newCalls(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
	peers.Unset("OPENAI_") // it adds headers that are named there, which no option takes back
	client := openai.NewClient(
		option.WithBaseURL(baseURL+"/v1"),
		option.WithAPIKey(peers.Key),
		option.WithHTTPClient(&http.Client{Transport: transport}))
	return peers.Calls{
		Post: func(ctx context.Context) error {
			completion, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
				Model:    model,
				Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(service.Text)},
			})
			if err == nil && (len(completion.Choices) == 0 || completion.Choices[0].Message.Content == "") {
				err = peers.Undecoded("choices[0].message.content")
			}
			return err
		},
		Get: func(ctx context.Context) error {
			read, err := client.Models.Get(ctx, model)
			if err == nil && read.ID == "" {
				err = peers.Undecoded("id")
			}
			return err
		},
	}, nil
}
