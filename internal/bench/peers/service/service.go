// Package service is what a program needs that calls the service by hand, with
// net/http alone or with go-retryablehttp: the JSON, and the checks of status
// and size without which an answer cannot be trusted.
package service

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
)

// What every client of the service is asked to do.
const (
	Key     = "ams_0123456789abcdef0123456789abcdef"
	AgentID = "agent_01jb2m7vqk8rs4d1"
	Text    = "Hello, where is the order that I made last week?"
)

// Paths of the two calls.
const (
	AgentPath   = "/v1/agents/" + AgentID
	MessagePath = AgentPath + "/messages"
)

// Answers are those of the service.
var Answers = map[string]string{
	MessagePath: `{"reply_text":"It was sent on Monday and should be with you tomorrow.","trace_id":"trace_01jb2m7vqk8rs4d1"}`,
	AgentPath: `{"agent_id":"` + AgentID + `","status":"active","created_at":"2026-05-01T12:00:00Z",` +
		`"updated_at":"2026-05-01T12:00:00Z","sms":{"mode":"sandbox"},"trace_id":"trace_01jb2m7vqk8rs4d1"}`,
}

// Message is the body of the POST.
type Message struct {
	Text    string `json:"text"`
	UserRef string `json:"user_ref,omitempty"`
}

// Reply is its answer.
type Reply struct {
	Text     string   `json:"reply_text"`
	Warnings []string `json:"warnings"`
	TraceID  string   `json:"trace_id"`
}

// Check reports a reply without the one member that matters.
func (r *Reply) Check() error {
	if r.Text == "" {
		return peers.Undecoded("reply_text")
	}
	return nil
}

// Agent is the answer of the GET.
type Agent struct {
	ID        string `json:"agent_id"`
	Status    string `json:"status"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
	SMS       *struct {
		Mode string `json:"mode"`
	} `json:"sms"`
	TraceID string `json:"trace_id"`
}

// Check reports an agent without the one member that matters.
func (a *Agent) Check() error {
	if a.ID == "" {
		return peers.Undecoded("agent_id")
	}
	return nil
}

// Doer makes one call; body may be nil.
type Doer interface {
	Do(ctx context.Context, method, path string, body any, into Checker) error
}

// Calls are the two calls that are measured.
func Calls(d Doer) peers.Calls {
	return peers.Calls{
		Post: func(ctx context.Context) error {
			return d.Do(ctx, http.MethodPost, MessagePath, Message{Text: Text}, new(Reply))
		},
		Get: func(ctx context.Context) error {
			return d.Do(ctx, http.MethodGet, AgentPath, nil, new(Agent))
		},
	}
}

// Authorize sets what the service asks of every request.
func Authorize(header http.Header) {
	header.Set("Authorization", "Bearer "+Key)
	header.Set("Accept", "application/json")
}

// Checker is an answer that can tell whether it was decoded.
type Checker interface{ Check() error }

// StatusError is an answer that is not a success.
type StatusError struct {
	Status int
	Body   string
}

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Body) }

const maxBody = 1 << 20

// Decode reads an answer after checking its status and size.
func Decode(resp *http.Response, into Checker) error {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return err
	case len(body) > maxBody:
		return fmt.Errorf("the answer is larger than %d bytes", maxBody)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return &StatusError{resp.StatusCode, string(body)}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return err
	}
	return into.Check()
}
