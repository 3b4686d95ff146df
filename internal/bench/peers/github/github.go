// Package github is go-github: a comment on an issue created, and a comment
// read. Their answers have the author in them, as that API's do.
package github

import (
	"context"
	"net/http"

	"github.com/google/go-github/v88/github"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

const (
	owner, repo = "example", "orders"
	issue       = 7

	answer = `{"id":1777636800,"node_id":"IC_01jb2m7vqk8rs4d1","body":"` + service.Text + `",` +
		`"user":{"login":"example-bot","id":4711,"node_id":"U_01jb2m7vqk8rs4d1","type":"Bot","site_admin":false},` +
		`"created_at":"2026-05-01T12:00:00Z","updated_at":"2026-05-01T12:00:00Z","author_association":"NONE"}`
)

// Peer is go-github.
var Peer = peers.Peer{
	Name: "go-github", Module: "github.com/google/go-github/v88",
	Answers: map[string]string{
		"/repos/example/orders/issues/7/comments":          answer,
		"/repos/example/orders/issues/comments/1777636800": answer,
	},
	New: newCalls,
}

func newCalls(transport http.RoundTripper, baseURL string) (peers.Calls, error) {
	client, err := github.NewClient(
		github.WithURLs(&baseURL, nil),
		github.WithAuthToken(peers.Key),
		github.WithTransport(transport))
	if err != nil {
		return peers.Calls{}, err
	}
	return peers.Calls{
		Post: func(ctx context.Context) error {
			return check(client.Issues.CreateComment(ctx, owner, repo, issue, &github.IssueComment{Body: github.Ptr(service.Text)}))
		},
		Get: func(ctx context.Context) error {
			return check(client.Issues.GetComment(ctx, owner, repo, 1777636800))
		},
	}, nil
}

func check(c *github.IssueComment, _ *github.Response, err error) error {
	if err == nil && c.GetID() == 0 {
		err = peers.Undecoded("id")
	}
	return err
}
