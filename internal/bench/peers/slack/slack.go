// Package slack is slack-go: a message posted, and a user read. Both are POSTs
// of a form with the key in it: that API's methods have no GET in this client.
package slack

import (
	"context"
	"net/http"

	"github.com/slack-go/slack"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

const channel, user = "C01JB2M7VQK", "U01JB2M7VQK"

// Peer is slack-go.
var Peer = peers.Peer{
	Name: "slack-go", Module: "github.com/slack-go/slack",
	Answers: map[string]string{
		"/api/chat.postMessage": `{"ok":true,"channel":"` + channel + `","ts":"1777636800.000100",` +
			`"message":{"type":"message","user":"` + user + `","text":"` + service.Text + `","ts":"1777636800.000100"}}`,
		"/api/users.info": `{"ok":true,"user":{"id":"` + user + `","team_id":"T01JB2M7VQK","name":"example","deleted":false,` +
			`"real_name":"Example","tz":"Europe/Berlin","is_bot":true,"updated":1777636800,"profile":{"display_name":"example"}}}`,
	},
	New: newCalls,
}

func newCalls(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
	client := slack.New(peers.Key,
		slack.OptionAPIURL(baseURL+"/api/"),
		slack.OptionHTTPClient(&http.Client{Transport: transport}))
	return peers.Calls{
		Post: func(ctx context.Context) error {
			_, timestamp, err := client.PostMessageContext(ctx, channel, slack.MsgOptionText(service.Text, false))
			if err == nil && timestamp == "" {
				err = peers.Undecoded("ts")
			}
			return err
		},
		Get: func(ctx context.Context) error {
			read, err := client.GetUserInfoContext(ctx, user)
			if err == nil && read.ID == "" {
				err = peers.Undecoded("user.id")
			}
			return err
		},
	}, nil
}
