package client

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/tools/openapi/client"
)

// A peer is a client that is measured.
type peer struct {
	name    string // as benchmarks write it
	open    func(transport http.RoundTripper, baseURL string) service
	bounded bool // by a deadline of the caller's
}

// floor is the calls written by hand on net/http, with one retry after a 429.
func floor(transport http.RoundTripper, baseURL string) service {
	client := &http.Client{Transport: transport}
	send := func(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
		var reader io.Reader
		if body != nil {
			reader = bytes.NewReader(body)
		}
		req, err := http.NewRequestWithContext(ctx, method, baseURL+path, reader)
		if err != nil {
			return nil, err
		}
		authorize(req.Header, body)
		return client.Do(req)
	}
	return byHand{func(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
		resp, err := send(ctx, method, path, body)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests {
			return resp, err
		}
		_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
		_ = resp.Body.Close()
		return send(ctx, method, path, body)
	}}
}

// retryable is go-retryablehttp with the same code around it. It logs nothing
// and repeats at once.
func retryable(transport http.RoundTripper, baseURL string) service {
	client := retryablehttp.NewClient()
	client.HTTPClient, client.Logger = &http.Client{Transport: transport}, nil
	client.RetryWaitMin, client.RetryWaitMax = 1, 1
	return byHand{func(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
		var raw any
		if body != nil {
			raw = body
		}
		req, err := retryablehttp.NewRequestWithContext(ctx, method, baseURL+path, raw)
		if err != nil {
			return nil, err
		}
		authorize(req.Header, body)
		return client.Do(req)
	}}
}

// own is the client of this repository.
func own(transport http.RoundTripper, baseURL string) service {
	return ownWith(transport, baseURL)
}

func ownWith(transport http.RoundTripper, baseURL string, opts ...agentmessaging.Option) service {
	client, err := agentmessaging.NewClient(baseURL, key, append(opts, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))...)
	if err != nil {
		panic(err)
	}
	return sdk{client}
}

// oapiCodegen is the client that oapi-codegen makes of openapi.yaml. It neither
// repeats a call nor limits what it reads.
func oapiCodegen(transport http.RoundTripper, baseURL string) service {
	c, err := client.NewClientWithResponses(baseURL, client.WithHTTPClient(&http.Client{Transport: transport}),
		client.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
			authorize(req.Header, nil)
			return nil
		}))
	if err != nil {
		panic(err)
	}
	return generated{c}
}

type generated struct{ *client.ClientWithResponses }

func (g generated) send(ctx context.Context, text string) error {
	_, err := g.SendMessageWithResponse(ctx, agentID, client.SendMessageJSONRequestBody{Text: text})
	return err
}

func (g generated) read(ctx context.Context) error {
	_, err := g.GetAgentWithResponse(ctx, agentID)
	return err
}

// bounded makes all calls under one context that has a deadline, as the
// context of a request handler has: this client then need not give them one.
func bounded(call func(context.Context) error) func(context.Context) error {
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
	_ = cancel // it lives as long as the process
	return func(context.Context) error { return call(ctx) }
}
