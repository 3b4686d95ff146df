// Package control is the fake's control interface: what package fakeserver can
// do, as JSON over HTTP. openapi.yaml describes it.
//
// routes.go lists all of it. An act is a method of the server, or of the key or
// agent that the path names. It gets the body as a struct whose tags say what is
// allowed, returns what becomes the answer, and knows no status. Struct and act
// check all that fakeserver would panic for. An act runs under the server's
// lock, so that what it checked still holds when it acts. The lock is never held
// while something is read, written or waited for.
package control

import (
	"context"
	_ "embed" // for the document
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakedoor"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

//go:embed openapi.yaml
var openAPI []byte

// Options say how a Server works. The zero value of each field means that
// there is none of it, unless said otherwise.
type Options struct {
	Version string
	BaseURL string // of the service, without a path
	// Remote says that the server listens on an address that is not loopback:
	// any Host is right then.
	Remote bool
	Hosts  []string // right besides loopback names and addresses
	Token  string   // that each call needs; "": none
	Key    string   // text of the first key; "": amk_fake_000001

	Plan      string // of the first key; "": preview
	Limits    string // as LimitOptions reads them
	Decisions string // as DecisionOptions reads them
	ColdStart time.Duration
	Latency   time.Duration             // of every call, until the fault is removed
	Seed      uint64                    // of rules with a chance and without a seed
	Calls     int                       // how many are kept; 0 means 10,000
	Save      func() error              // the state; nil: there is nowhere to save it
	Refuse    func(time.Duration) error // refuses connections for so long; nil: it cannot
	Log       func(fakeserver.Call)     // gets each call; nil: nobody does
	Like      []byte                    // what observe found of a service that the fake answers like; nil: the fake's own answers
	Replies   []byte                    // scripted replies to begin with: one body of POST replies, or a list of them
}

// Server is the control interface of one fake.
type Server struct {
	options Options
	replies []newScript // of Options.Replies
	mux     *http.ServeMux
	started time.Time
	fake    *fakeserver.Server
	hub     *hub
	gone    context.Context
	leave   context.CancelFunc
	era     atomic.Pointer[era]

	mu              sync.Mutex // held by every act; guards what was made here
	scripts, faults kept
}

const (
	defaultCalls = 10_000
	keyMissing   = "missing" // what the fake calls the key of a call without one
	noLimit      = math.MaxInt32
)

// New returns a Server with its fake. The error says which option is wrong.
func New(o Options) (*Server, error) {
	if o.Calls == 0 {
		o.Calls = defaultCalls
	}
	replies, err := readReplies(o.Replies)
	if err != nil {
		return nil, fmt.Errorf("replies: %w", err)
	}
	opts, err := o.fakeOptions()
	if err != nil {
		return nil, err
	}
	fake, err := fakeserver.Open(opts...)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, replies: replies, started: time.Now().UTC(), fake: fake, hub: newHub()}
	s.admin().KeepExchanges(spec.KeptExchanges)
	s.mux = s.newMux()
	s.era.Store(newEra())
	s.gone, s.leave = context.WithCancel(context.Background())
	s.admin().OnAnswer(s.hub.called)
	if o.Log != nil {
		fake.OnCall(o.Log)
	}
	return s, s.begin()
}

// begin makes the rules that the options ask for, at the start and again after a
// reset.
func (s *Server) begin() error {
	s.scripts, s.faults = kept{kind: "reply"}, kept{kind: "fault"}
	for i, spec := range s.replies {
		if _, err := s.addScript(spec); err != nil {
			return fmt.Errorf("replies[%d].%w", i, err)
		}
	}
	if d := s.options.Latency; d > 0 {
		text := d.String()
		s.inject(newFault{Fault: faultSpec{Kind: "latency", Duration: &text}})
	}
	return nil
}

// era ends with a reset, and with it the calls of the service that began in it.
type era struct {
	context.Context
	end context.CancelFunc
}

func newEra() *era {
	ctx, end := context.WithCancel(context.Background())
	return &era{ctx, end}
}

// reset is POST reset. Calls under way are let go first: one that hangs would
// keep a connection of the next test.
func (s *Server) reset(*request) (any, error) {
	s.era.Swap(newEra()).end()
	s.admin().Restart()
	if err := s.begin(); err != nil {
		return nil, conflict("%v", err) // the program began with these replies, so it can begin with them again
	}
	return nil, nil
}

// Service is the service itself.
func (s *Server) Service() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.era.Load(), cancel)()
		s.fake.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Key is the first key.
func (s *Server) Key() string { return s.fake.Key() }

// End ends streams and waits, so that a server which drains is not kept.
func (s *Server) End() { s.leave() }

// WriteState writes what ReadState reads: keys by their labels, agents,
// conversations, and what is spent. It returns the error of out.
func (s *Server) WriteState(out io.Writer) error { return s.fake.WriteState(out) }

// ReadState brings the fake to the state that was written. A state that is
// damaged, or another program's, is refused, and nothing has changed then.
func (s *Server) ReadState(in io.Reader) error { return s.fake.ReadState(in) }

// info is GET info. A key that was chosen may be a secret; the other one is the
// same in every fake.
func (s *Server) info(*request) (any, error) {
	key := s.Key()
	if s.options.Key != "" {
		key = ""
	}
	return struct {
		Version   string    `json:"version"`
		BaseURL   string    `json:"base_url"`
		StartedAt time.Time `json:"started_at"`
		Remote    bool      `json:"remote"`
		Key       string    `json:"key,omitempty"`
	}{s.options.Version, s.options.BaseURL, s.started, s.options.Remote, key}, nil
}

type pause struct {
	Duration string `json:"duration" check:"required delay"`
}

// refuseConnections is POST refuse.
func (s *Server) refuseConnections(body pause) (any, error) {
	if s.options.Refuse == nil {
		return nil, conflict("this program cannot refuse connections")
	}
	if err := s.options.Refuse(parsed(body.Duration)); err != nil {
		return nil, conflict("%v", err)
	}
	return nil, nil
}

// decisions is GET decisions.
func (s *Server) decisions(*request) (any, error) {
	type view struct {
		ID       string          `json:"id"`
		Question string          `json:"question"`
		Answer   json.RawMessage `json:"answer"`
		Default  json.RawMessage `json:"default"`
		Observed bool            `json:"observed"`
	}
	views := []view{}
	for _, d := range s.fake.Decisions() {
		views = append(views, view{d.ID, d.Question, json.RawMessage(d.Answer), json.RawMessage(d.Default), d.Observed})
	}
	return map[string]any{"decisions": views}, nil
}

// document is GET openapi.yaml.
func (s *Server) document(*request) (any, error) {
	return stream(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	}), nil
}

// admin is what the control interface asks of a fake, and tests do not.
func (s *Server) admin() fakedoor.Admin[fakeserver.Call] { return fakedoor.Of[fakeserver.Call](s.fake) }
