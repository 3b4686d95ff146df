package control

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // for openapi.yaml
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/rules"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

//go:embed openapi.yaml
var openAPI []byte

// Options say how a Server works. The program makes them from its flags.
type Options struct {
	// Version is the version of the program, for GET info.
	Version string
	// BaseURL is the address of the service, without a path, for GET info.
	BaseURL string
	// Guard says who may call. Its AnyHost says that the server listens on an address
	// that is not loopback.
	Guard jsonapi.Guard
	// Fake is the fake to control. It must have WithMessageTexts, since the page shows
	// texts.
	Fake *fakeserver.Server
	// Latency delays every call, until a user removes the fault; 0 means none.
	Latency time.Duration
	// Replies are the scripted replies at the start, as JSON: one body of POST replies, or a
	// list of them; nil means none.
	Replies []byte
	// Log gets each call, before its client has the answer; nil means no log.
	Log func(fakeserver.Call)
}

// Server is the control interface of one fake. The fake has its own lock. mu guards a
// handler's action that takes several steps.
type Server struct {
	options Options
	// replies are the scripts of Options.Replies. They are read once, and made again after
	// each reset.
	replies []rules.Script
	mux     *http.ServeMux
	// started is the start of the program. GET info has it, so that clients notice a
	// restart.
	started time.Time
	// fake and admin reach the same fake: fake has the methods for tests, and admin the methods
	// for this program only.
	fake  *fakeserver.Server
	admin fakeadmin.Admin[fakeserver.Call]
	feed  feed
	// ended is done once End has called end. Streams and waits then return.
	ended context.Context
	end   context.CancelFunc
	// callsContext is the context of the calls that are under way. A reset ends it and
	// stores a new one.
	callsContext atomic.Pointer[callsUntilReset]
	// state is the file that StartFrom has read, for later resets.
	state []byte

	mu    sync.Mutex // held by every handler; guards the fields below
	rules *rules.Set
}

// New returns a Server, and has the fake keep as many exchanges as openapi.yaml
// promises. The error says what is wrong with the replies.
func New(o Options) (*Server, error) {
	replies, err := readReplies(o.Replies)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, replies: replies, started: time.Now().UTC(), fake: o.Fake, admin: fakeadmin.Of[fakeserver.Call](o.Fake)}
	s.admin.KeepExchanges(decisions.KeptExchanges)
	s.ended, s.end = context.WithCancel(context.Background())
	s.feed = feed{changes: map[string]int{}, changed: make(chan struct{})}
	s.mux = s.newMux()
	s.callsContext.Store(newCallsUntilReset())
	if o.Log != nil {
		s.fake.OnCall(o.Log)
	}
	return s, s.applyOptions()
}

// readReplies reads the file of --replies: a list of rules, or a single rule. nil stays
// nil.
func readReplies(raw []byte) ([]rules.Script, error) {
	switch {
	case raw == nil:
		return nil, nil
	// Errors about a list have the index of the rule. A single rule needs no list around it.
	case bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")):
		return jsonapi.Decode[[]rules.Script](raw)
	}
	one, err := jsonapi.Decode[rules.Script](raw)
	return []rules.Script{one}, err
}

// applyOptions makes the rules of the options and reads the state of StartFrom, at the start
// and again after a reset. So a reset brings back the state that the flags ask for.
func (s *Server) applyOptions() error {
	s.rules = rules.NewSet(s.fake)
	for i, r := range s.replies {
		if _, err := s.rules.Add(r); err != nil {
			return fmt.Errorf("[%d].%w", i, err)
		}
	}
	// A state contains no rules, so the order does not matter.
	if s.state != nil {
		if _, err := s.putState(&request{body: s.state}); err != nil {
			return err
		}
	}
	if s.options.Latency == 0 {
		return nil
	}
	// The latency is a rule, so that the page lists it and a user can remove it.
	latency, err := jsonapi.Decode[rules.Injection](fmt.Appendf(nil, `{"fault":{"kind":"latency","duration":%q}}`, s.options.Latency))
	if err == nil {
		_, err = s.rules.Add(latency)
	}
	return err
}

// StartFrom sets the fake to a state that WriteState wrote, now and after each reset. It
// must be called before the server serves.
func (s *Server) StartFrom(file io.Reader) (err error) {
	if s.state, err = io.ReadAll(file); err == nil {
		_, err = s.reset(nil)
	}
	return err
}

// callsUntilReset is the context of the service's calls until the next reset, which ends
// it. It is read without the server's lock, since calls of the service must not wait for
// a handler.
type callsUntilReset struct {
	context.Context
	end context.CancelFunc
}

// newCallsUntilReset returns the context for the calls after a reset.
func newCallsUntilReset() *callsUntilReset {
	ctx, end := context.WithCancel(context.Background())
	return &callsUntilReset{ctx, end}
}

// reset answers POST reset. It first ends the calls under way, because a call that hangs
// would keep a connection that the next test needs.
func (s *Server) reset(*request) (any, error) {
	s.callsContext.Swap(newCallsUntilReset()).end()
	s.admin.Restart()
	return nil, s.applyOptions()
}

// Service returns a handler for the service itself: the fake, with calls that a reset
// ends.
func (s *Server) Service() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := s.untilReset(r.Context())
		defer end()
		s.fake.ServeHTTP(w, r.WithContext(ctx))
	})
}

// untilReset returns a context for a call of the service, which the next reset ends. The
// caller must call end when the call is over. end wakes the streams, which read the call
// from the fake. A call that hangs does not wake them, but the streams check twice a
// second.
func (s *Server) untilReset(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.callsContext.Load(), cancel)
	return ctx, func() { stop(); cancel(); s.feed.wake() }
}

// End ends streams and waits, so that they do not delay a server that drains.
func (s *Server) End() { s.end() }

// putState replaces the state. A damaged file, or a file of another program, changes
// nothing. Rules and recorded calls stay.
func (s *Server) putState(r *request) (any, error) {
	err := s.fake.ReadState(bytes.NewReader(r.body))
	return nil, cmp.Or(errors.Unwrap(err), err) // without the name of the method
}

// info answers GET info. It shows the text of the first key only if it is the default text,
// which is in the documentation. A key from --key may be a secret that is in use elsewhere.
func (s *Server) info(*request) (any, error) {
	info := map[string]any{
		"version": s.options.Version, "base_url": s.options.BaseURL, "started_at": s.started, "remote": s.options.Guard.AnyHost,
		"endpoints": strings.Split(spec.EndpointNames(), ", "),
	}
	if key := s.fake.Key(); key == fakenames.KeyPrefix+"_000001" {
		info["key"] = key
	}
	return info, nil
}

// writeDocument writes the embedded openapi.yaml.
func writeDocument(_ *fakeserver.Server, w io.Writer) error {
	_, err := w.Write(openAPI)
	return err
}

// decisions shows the questions that the interface leaves open, with the fake's answers.
// observed says whether an answer comes from a real service or from the fake.
func (s *Server) decisions(*request) (any, error) {
	views := []map[string]any{}
	for _, d := range s.fake.Decisions() {
		views = append(views, map[string]any{
			"id": d.ID, "question": d.Question, "answer": json.RawMessage(d.Answer), "default": json.RawMessage(d.Default), "observed": d.Observed,
		})
	}
	return map[string]any{"decisions": views}, nil
}

// clock answers GET clock and POST clock with the fake's time, and how far it was moved.
func (s *Server) clock(*request) (any, error) {
	return map[string]any{"now": s.fake.Now(), "advanced": s.admin.Advanced().String()}, nil
}

// advance moves the clock by a duration, or until a time. A time in the past leaves the
// clock unchanged, so that a client that waits in the fake's time need not ask first.
func (s *Server) advance(_ *request, body struct {
	Duration *jsonapi.Duration
	Until    *time.Time
}) (any, error) {
	if (body.Duration == nil) == (body.Until == nil) {
		return nil, errors.New("body: needs duration or until, and not both")
	}
	member, d := "duration", time.Duration(0)
	if body.Duration != nil {
		d = body.Duration.Duration
	} else {
		member, d = "until", max(0, body.Until.Sub(s.fake.Now()))
	}
	if d > max(0, jsonapi.MaxDuration-s.admin.Advanced()) {
		return nil, fmt.Errorf("%s: the clock goes at most %v forward in all", member, jsonapi.MaxDuration)
	}
	s.fake.Advance(d)
	return s.clock(nil)
}

// listRules returns the handler that lists the rules of a kind, in a member with the given
// name.
func listRules(name string, kind rules.Kind) handler {
	return func(s *Server, _ *request) (any, error) {
		return map[string]any{name: s.rules.All(kind)}, nil
	}
}

// addRule puts a rule in force: POST replies and POST faults.
func addRule[R rules.Rule]() handler {
	return withBody(func(s *Server, _ *request, r R) (any, error) { return s.rules.Add(r) })
}

// removeRules removes one rule, or without an id all rules of the kind. Without an id it
// succeeds even if there is no rule, because a test that cleans up need not know whether
// it made any.
func removeRules(kind rules.Kind) handler {
	return func(s *Server, r *request) (any, error) {
		id := r.PathValue("id")
		if !s.rules.Remove(kind, id) && id != "" {
			return nil, jsonapi.NotFound("no " + string(kind) + " has this id")
		}
		return nil, nil
	}
}

// verify reports required rules that have not acted, as a fake of fakeserver.New does at
// the end of its test.
func (s *Server) verify(*request) (any, error) {
	unmet := s.rules.Unmet()
	return map[string]any{"met": len(unmet) == 0, "unmet": unmet}, nil
}

// fittingFaults lists the named faults that can hit calls of an endpoint, so that a test
// in any language can try them all.
func (s *Server) fittingFaults(r *request) (any, error) {
	fitting, err := rules.Fitting(r.query.Get("endpoint"))
	return map[string]any{"faults": fitting}, err
}
