package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// What a client of this service is asked to do.
const (
	key         = "ams_0123456789abcdef0123456789abcdef"
	agentID     = "agent_01jb2m7vqk8rs4d1"
	text        = "Hello, where is the order that I made last week?"
	agentPath   = "/v1/agents/" + agentID
	messagePath = agentPath + "/messages"
)

var serviceAnswers = canned{
	messagePath: `{"reply_text":"It was sent on Monday and should be with you tomorrow.","trace_id":"trace_01jb2m7vqk8rs4d1"}`,
	agentPath: `{"agent_id":"` + agentID + `","status":"active","created_at":"2026-05-01T12:00:00Z",` +
		`"updated_at":"2026-05-01T12:00:00Z","sms":{"mode":"sandbox"},"trace_id":"trace_01jb2m7vqk8rs4d1"}`,
}

// service is a client of this service.
type service interface {
	send(ctx context.Context, text string) error
	read(ctx context.Context) error
}

type creator interface {
	create(ctx context.Context, metadata json.RawMessage) error
}

// byHand is what a program needs that has no client: JSON, and the checks of
// status and size without which an answer cannot be trusted.
type byHand struct {
	do func(ctx context.Context, method, path string, body []byte) (*http.Response, error)
}

func (s byHand) send(ctx context.Context, text string) error {
	var reply struct {
		Text     string   `json:"reply_text"`
		Warnings []string `json:"warnings"`
		TraceID  string   `json:"trace_id"`
	}
	message := struct {
		Text    string `json:"text"`
		UserRef string `json:"user_ref,omitempty"`
	}{Text: text}
	return s.call(ctx, http.MethodPost, messagePath, message, &reply)
}

type agent struct {
	ID        string `json:"agent_id"`
	Status    string `json:"status"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
	SMS       *struct {
		Mode string `json:"mode"`
	} `json:"sms"`
	TraceID string `json:"trace_id"`
}

func (s byHand) read(ctx context.Context) error {
	return s.call(ctx, http.MethodGet, agentPath, nil, new(agent))
}

func (s byHand) create(ctx context.Context, metadata json.RawMessage) error {
	return s.call(ctx, http.MethodPost, "/v1/agents", map[string]json.RawMessage{"metadata": metadata}, new(agent))
}

func (s byHand) call(ctx context.Context, method, path string, in, out any) (err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	resp, err := s.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	const most = 1 << 20
	raw, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return err
	case len(raw) > most:
		return fmt.Errorf("the answer is larger than %d bytes", most)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d: %s", resp.StatusCode, raw)
	}
	return json.Unmarshal(raw, out)
}

func authorize(h http.Header, body []byte) {
	h.Set("Authorization", "Bearer "+key)
	h.Set("Accept", "application/json")
	if body != nil {
		h.Set("Content-Type", "application/json")
	}
}

type sdk struct{ *agentmessaging.Client }

func (s sdk) send(ctx context.Context, text string) error {
	_, err := s.SendMessage(ctx, agentID, agentmessaging.MessageParams{Text: text})
	return err
}

func (s sdk) read(ctx context.Context) error {
	_, err := s.GetAgent(ctx, agentID)
	return err
}

func (s sdk) create(ctx context.Context, metadata json.RawMessage) error {
	_, err := s.CreateAgent(ctx, agentmessaging.CreateAgentParams{Metadata: metadata})
	return err
}

type answer struct {
	status int
	body   string
}

// canned is a transport, and a server, that has the answers in memory, by path.
type canned map[string]string

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	return respond(req, answer{http.StatusOK, c[req.URL.Path]})
}

func (c canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, c[r.URL.Path])
}

// respond reads the request's body and answers from memory. A 429 says to try
// again at once.
func respond(req *http.Request, a answer) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if a.status == http.StatusTooManyRequests {
		header["Retry-After"] = []string{"0"}
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}, nil
}
