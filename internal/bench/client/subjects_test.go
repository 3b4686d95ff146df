package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	sdk "github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/agentmessaging"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/all"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/nethttp"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/retryablehttp"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

// subjects are the peers, and two of them once more with a deadline. Each of
// those runs directly after the same client without, since a ratio is that of
// neighbours in time.
func subjects(tb testing.TB) (list []peers.Peer) {
	for _, peer := range all.Peers {
		list = append(list, peer)
		switch peer.Name {
		case retryablehttp.Peer.Name:
			list = append(list, bounded)
		case sdk.Peer.Name:
			list = append(list, boundedByCaller(tb))
		}
	}
	return list
}

// bounded is bare go-retryablehttp with what the SDK does for every call whose
// context has no deadline: it gives it one. What it takes more than without is
// the price of that.
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

// boundedByCaller is the SDK under a context that has a deadline, as a request
// handler's has, so that the SDK need not give it one. It is made once, before
// the calls: what it took is the caller's own.
func boundedByCaller(tb testing.TB) peers.Peer {
	peer := sdk.Peer
	peer.Name = "agentmessaging with a deadline"
	peer.New = func(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
		ctx, cancel := context.WithTimeout(tb.Context(), time.Hour)
		tb.Cleanup(cancel)
		calls, err := sdk.Peer.New(transport, baseURL)
		return under(ctx, calls), err
	}
	return peer
}

// under is calls that are all made with ctx.
func under(ctx context.Context, calls peers.Calls) peers.Calls {
	return peers.Calls{
		Post: func(context.Context) error { return calls.Post(ctx) },
		Get:  func(context.Context) error { return calls.Get(ctx) },
	}
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
	{sdk.Peer.Subject(), func(tb testing.TB, transport http.RoundTripper, baseURL string) user {
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

// watched shows each request, and what answered it, to look.
type watched struct {
	to   http.RoundTripper
	look func(*http.Request, *http.Response)
}

// RoundTrip implements http.RoundTripper.
func (w watched) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.to.RoundTrip(req)
	if err == nil {
		w.look(req, resp)
	}
	return resp, err
}

// TestSubjects: their order, and how long each lets a call take whose caller
// set no deadline. The GET comes a minute after the POST: a deadline that is
// each call's own is as far away by then, and one that was made before is not.
func TestSubjects(t *testing.T) {
	list := subjects(t)
	require.Len(t, list, 13)
	for i, want := range []struct {
		subject   string
		post, get time.Duration // 0: no deadline
	}{
		{"net-http-by-hand", 0, 0},
		{"go-retryablehttp", 0, 0},
		{"go-retryablehttp-with-a-deadline", 5 * time.Minute, 5 * time.Minute},
		{"agentmessaging", 5 * time.Minute, 5 * time.Minute},
		{"agentmessaging-with-a-deadline", 60 * time.Minute, 59 * time.Minute},
	} {
		require.Equal(t, want.subject, list[i].Subject())
		synctest.Test(t, func(t *testing.T) {
			assert.Equal(t, []time.Duration{want.post, want.get}, timeLeft(t, subjects(t)[i]), want.subject)
		})
	}
}

// timeLeft is how far away the deadlines of a POST and of a GET are, when they
// come to the transport.
func timeLeft(t *testing.T, peer peers.Peer) (left []time.Duration) {
	t.Helper()
	calls, err := peer.New(watched{peers.Canned(peer.Answers), func(req *http.Request, _ *http.Response) {
		var d time.Duration
		if end, has := req.Context().Deadline(); has {
			d = time.Until(end)
		}
		left = append(left, d)
	}}, "https://service.example")
	require.NoError(t, err)
	require.NoError(t, calls.Post(t.Context()))
	time.Sleep(time.Minute)
	require.NoError(t, calls.Get(t.Context()))
	return left
}
