package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers/nethttp"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers/retryablehttp"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers/service"
)

// bounded is bare go-retryablehttp with what the SDK does for every call whose
// context has no deadline: it gives it one. The difference of the two is the
// price of that.
var bounded = peers.Peer{
	Name: "go-retryablehttp with a deadline", Module: retryablehttp.Peer.Module, Answers: service.Answers,
	New: func(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
		return service.Calls(withDeadline{retryablehttp.New(transport, baseURL)}), nil
	},
}

type withDeadline struct{ service.Doer }

// Do implements service.Doer.
func (d withDeadline) Do(ctx context.Context, method, path string, body any, into service.Checker) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return d.Doer.Do(ctx, method, path, body, into)
}

// A user calls the service in the three ways that the paths need.
type user interface {
	send(ctx context.Context, text string) error
	read(ctx context.Context) error
	create(ctx context.Context, metadata json.RawMessage) error
}

// users are the clients of the service that are looked at more closely. Their
// retries wait for nothing.
var users = []struct {
	subject string
	new     func(testing.TB, http.RoundTripper, string) user
}{
	{nethttp.Peer.Subject(), func(_ testing.TB, transport http.RoundTripper, baseURL string) user {
		return byHand{again{&nethttp.Client{HTTP: &http.Client{Transport: transport}, BaseURL: baseURL}}}
	}},
	{retryablehttp.Peer.Subject(), func(_ testing.TB, transport http.RoundTripper, baseURL string) user {
		client := retryablehttp.New(transport, baseURL)
		client.Retry.RetryWaitMin, client.Retry.RetryWaitMax = 1, 1
		return byHand{client}
	}},
	{"agentmessaging", func(tb testing.TB, transport http.RoundTripper, baseURL string) user {
		client, err := agentmessaging.NewClient(baseURL, service.Key,
			agentmessaging.WithHTTPClient(&http.Client{Transport: transport}),
			agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: 1}))
		require.NoError(tb, err)
		return bySDK{client}
	}},
}

// again is the shortest loop that gets over one 429.
type again struct{ service.Doer }

// Do implements service.Doer.
func (a again) Do(ctx context.Context, method, path string, body any, into service.Checker) error {
	err := a.Doer.Do(ctx, method, path, body, into)
	var answer *service.StatusError
	if errors.As(err, &answer) && answer.Status == http.StatusTooManyRequests {
		return a.Doer.Do(ctx, method, path, body, into)
	}
	return err
}

type byHand struct{ service.Doer }

func (u byHand) send(ctx context.Context, text string) error {
	return u.Do(ctx, http.MethodPost, service.MessagePath, service.Message{Text: text}, new(service.Reply))
}

func (u byHand) read(ctx context.Context) error {
	return u.Do(ctx, http.MethodGet, service.AgentPath, nil, new(service.Agent))
}

func (u byHand) create(ctx context.Context, metadata json.RawMessage) error {
	body := struct {
		Metadata json.RawMessage `json:"metadata"`
	}{metadata}
	return u.Do(ctx, http.MethodPost, "/v1/agents", body, new(service.Agent))
}

type bySDK struct{ client *agentmessaging.Client }

func (u bySDK) send(ctx context.Context, text string) error {
	_, err := u.client.SendMessage(ctx, service.AgentID, agentmessaging.MessageParams{Text: text})
	return err
}

func (u bySDK) read(ctx context.Context) error {
	_, err := u.client.GetAgent(ctx, service.AgentID)
	return err
}

func (u bySDK) create(ctx context.Context, metadata json.RawMessage) error {
	_, err := u.client.CreateAgent(ctx, agentmessaging.CreateAgentParams{Metadata: metadata})
	return err
}
