// Package resend is resend-go: an email sent, and an email read.
package resend

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/resend/resend-go/v3"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

const (
	email = "4ef9a417-02e9-4d39-ad75-9611e0fcc33c"
	from  = "Example <shop@service.example>"
	to    = "someone@service.example"

	defaultTimeout = time.Minute // of the http.Client that it has by itself
)

// Peer is resend-go.
var Peer = peers.Peer{
	Name: "resend-go", Module: "github.com/resend/resend-go/v3",
	Answers: map[string]string{
		"/emails": `{"id":"` + email + `"}`,
		"/emails/" + email: `{"object":"email","id":"` + email + `","to":["` + to + `"],"from":"` + from + `",` +
			`"created_at":"2026-05-01T12:00:00Z","subject":"Order","html":null,"text":"` + service.Text + `",` +
			`"bcc":[],"cc":[],"reply_to":[],"last_event":"delivered"}`,
	},
	New: newCalls,
}

func newCalls(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
	base, err := url.Parse(baseURL + "/")
	if err != nil {
		return peers.Calls{}, err
	}
	client := resend.NewCustomClient(&http.Client{Transport: transport, Timeout: defaultTimeout}, peers.Key)
	client.BaseURL = base // whatever the environment had for it
	return peers.Calls{
		Post: func(ctx context.Context) error {
			sent, err := client.Emails.SendWithContext(ctx, &resend.SendEmailRequest{
				From: from, To: []string{to}, Subject: "Order", Text: service.Text,
			})
			if err == nil && sent.Id == "" {
				err = peers.Undecoded("id")
			}
			return err
		},
		Get: func(ctx context.Context) error {
			read, err := client.Emails.GetWithContext(ctx, email)
			if err == nil && read.Id == "" {
				err = peers.Undecoded("id")
			}
			return err
		},
	}, nil
}
