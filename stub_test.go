package agentmessaging_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

const (
	testURL = "https://service.example"
	testKey = "key-canary-4711"
)

// stub is a transport that answers from a list; the last answer repeats. It
// runs no httptrace hooks, so that the client has to assume that every
// request was sent.
type stub struct {
	answers []answer

	mu       sync.Mutex
	requests []sentRequest
}

type answer struct {
	status int
	body   string
	header http.Header
	err    error
	reader func() io.Reader // instead of body
	before func(*http.Request)
}

type sentRequest struct {
	*http.Request
	body string
}

func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	a := s.record(req)
	if a.before != nil {
		a.before(req)
	}
	if a.err != nil {
		return nil, a.err
	}
	header := a.header
	if header == nil {
		header = http.Header{}
	}
	var reader io.Reader = strings.NewReader(a.body)
	if a.reader != nil {
		reader = a.reader()
	}
	return &http.Response{
		StatusCode: a.status, Header: header, Body: io.NopCloser(reader), ContentLength: -1, Request: req,
	}, nil
}

func (s *stub) record(req *http.Request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	s.requests = append(s.requests, sentRequest{req, string(body)})
	return s.answers[min(len(s.requests), len(s.answers))-1]
}

func (s *stub) sent() []sentRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// dialError is what net/http returns where nothing listens.
var dialError = &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "service.example"}}

func newClient(t *testing.T, transport http.RoundTripper, opts ...agentmessaging.Option) *agentmessaging.Client {
	t.Helper()
	opts = append([]agentmessaging.Option{agentmessaging.WithHTTPClient(&http.Client{Transport: transport})}, opts...)
	client, err := agentmessaging.NewClient(testURL, testKey, opts...)
	require.NoError(t, err)
	return client
}

var discardLog = log.New(io.Discard, "", 0)
