// Package stripe is stripe-go: a customer created, which is a form and no
// JSON on the way out, and a customer read.
package stripe

import (
	"context"
	"net/http"
	"time"

	"github.com/stripe/stripe-go/v85"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

const (
	customer = "cus_01jb2m7vqk8rs4"
	answer   = `{"id":"` + customer + `","object":"customer","created":1777636800,"currency":"eur","delinquent":false,` +
		`"description":"` + service.Text + `","email":null,"livemode":false,"metadata":{},"name":null}`

	defaultTimeout = 80 * time.Second // of the http.Client that it has by itself
)

// Peer is stripe-go. Its User-Agent has a word more where the environment is a
// coding assistant's: that is read before anything here runs.
var Peer = peers.Peer{
	Name: "stripe-go", Module: "github.com/stripe/stripe-go/v85",
	Answers: map[string]string{"/v1/customers": answer, "/v1/customers/" + customer: answer},
	New:     newCalls,
}

func newCalls(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		HTTPClient:      &http.Client{Transport: transport, Timeout: defaultTimeout},
		URL:             &baseURL,
		EnableTelemetry: stripe.Bool(false), // it reports the time of each call with the next one
		LeveledLogger:   &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	client := stripe.NewClient(peers.Key, stripe.WithBackends(backends))
	return peers.Calls{
		Post: func(ctx context.Context) error {
			return check(client.V1Customers.Create(ctx, &stripe.CustomerCreateParams{Description: stripe.String(service.Text)}))
		},
		Get: func(ctx context.Context) error {
			return check(client.V1Customers.Retrieve(ctx, customer, nil))
		},
	}, nil
}

func check(c *stripe.Customer, err error) error {
	if err == nil && c.ID == "" {
		err = peers.Undecoded("id")
	}
	return err
}
