package control

import (
	"bytes"
	"context"
	_ "embed" // for the document
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
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

//go:embed openapi.yaml
var openAPI []byte

// Options say how a Server works. The program makes them of its flags.
type Options struct {
	// Version is the version of the program, for GET info.
	Version string
	// BaseURL is the address of the service, without a path, for GET info.
	BaseURL string
	// Guard says who may call. Its AnyHost says that the server listens on an address
	// that is not loopback.
	Guard jsonapi.Guard
	// KeyChosen is set if a user chose the text of the first key. It may be a secret, so
	// GET info then leaves it out.
	KeyChosen bool
	// Fake is the fake to control. It is made WithMessageTexts, since the page shows them.
	Fake *fakeserver.Server
	// Latency delays every call, until a user removes the fault; 0 means none.
	Latency time.Duration
	// Replies are scripted replies to begin with, as JSON: one body of POST replies, or a
	// list of them; nil means none.
	Replies []byte
	// Log gets each call, before its client has the answer; nil means no log.
	Log func(fakeserver.Call)
}

// Server is the control interface of one fake. The fake has its own lock; mu is for
// what a handler does in several steps.
type Server struct {
	options Options
	// replies are those of Options.Replies, read once, and made again after each reset.
	replies []rules.Script
	mux     *http.ServeMux
	// started tells clients whether the program is still the same: GET info has it.
	started time.Time
	// fake and admin are two ways to the same fake: what a test may ask of it, and what
	// only this program may.
	fake  *fakeserver.Server
	admin fakeadmin.Admin[fakeserver.Call]
	feed  feed
	// ended is over once End has called end. Streams and waits then return.
	ended context.Context
	end   context.CancelFunc
	// calls is the context of the calls that are under way; a reset ends it and sets
	// another.
	calls atomic.Pointer[callsUntilReset]
	// state is what StartFrom has read, for the resets to come.
	state []byte

	mu    sync.Mutex // held by every handler; guards what follows
	rules *rules.Set
}

// request is a request that was read whole, with what its path names. A field is empty
// where the path has no such name.
type request struct {
	*http.Request
	query jsonapi.Query
	body  []byte
	// key and keyText are the key that {key} names, and its text.
	key     fakeadmin.Key
	keyText string
	// agent is the agent that {agent_id} names, as it was before the handler acts.
	agent fakeserver.Agent
}

// handler answers a request with a value that becomes JSON, with a jsonapi.Stream,
// with nil for no body, or with an error.
type handler func(*Server, *request) (any, error)

// withBody decodes the body for a handler that takes one.
func withBody[T any](act func(*Server, *request, T) (any, error)) handler {
	return func(s *Server, r *request) (any, error) {
		body, err := jsonapi.Decode[T](r.body)
		if err != nil {
			return nil, err
		}
		return act(s, r, body)
	}
}

// noSuchKey refuses a label, in a path or a body. The text of a key names no key here,
// since addresses get into logs.
const noSuchKey = "no key has this label, such as key_000001; GET keys lists them"

// readReplies reads the file of --replies: a list of rules, or one. nil stays nil.
func readReplies(raw []byte) ([]rules.Script, error) {
	switch {
	case raw == nil:
		return nil, nil
	// A list has its index in each error, and one rule alone needs no list around it.
	case bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")):
		return jsonapi.Decode[[]rules.Script](raw)
	}
	one, err := jsonapi.Decode[rules.Script](raw)
	return []rules.Script{one}, err
}

// applyOptions makes the rules that the options ask for and reads the state of
// StartFrom, at the start and again after a reset. So a test that resets finds the fake
// as its flags made it.
func (s *Server) applyOptions() error {
	s.rules = rules.NewSet(s.fake)
	for i, r := range s.replies {
		if _, err := s.rules.Add(r); err != nil {
			return fmt.Errorf("replies: [%d].%w", i, err)
		}
	}
	// A state has no rules, so the order does not matter.
	if s.state != nil {
		if err := errors.Unwrap(s.fake.ReadState(bytes.NewReader(s.state))); err != nil { // without the method's name
			return err
		}
	}
	if s.options.Latency == 0 {
		return nil
	}
	return s.addLatency()
}

// addLatency makes the latency of the options a rule, so that the page lists it and a
// user can remove it.
func (s *Server) addLatency() error {
	latency, err := jsonapi.Decode[rules.Injection](fmt.Appendf(nil, `{"fault":{"kind":"latency","duration":%q}}`, s.options.Latency))
	if err == nil {
		_, err = s.rules.Add(latency)
	}
	return err
}

// StartFrom brings the fake to a state that WriteState wrote, now and after each reset.
// It must be called before the server serves.
func (s *Server) StartFrom(file io.Reader) (err error) {
	if s.state, err = io.ReadAll(file); err == nil {
		_, err = s.reset(nil)
	}
	return err
}

// callsUntilReset is the context of the calls of the service that begin before the next
// reset, which ends them. It is read without the server's lock, since calls of the
// service must not wait for a handler.
type callsUntilReset struct {
	context.Context
	end context.CancelFunc
}

// newCallsUntilReset begins another time between two resets.
func newCallsUntilReset() *callsUntilReset {
	ctx, end := context.WithCancel(context.Background())
	return &callsUntilReset{ctx, end}
}

// reset answers POST reset. It first ends the calls under way: one that hangs would keep a
// connection that the next test needs.
func (s *Server) reset(*request) (any, error) {
	s.calls.Swap(newCallsUntilReset()).end()
	s.admin.Restart()
	return nil, s.applyOptions()
}

// Service returns the service itself: the fake, whose calls a reset ends.
func (s *Server) Service() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := s.untilReset(r.Context())
		defer end()
		s.fake.ServeHTTP(w, r.WithContext(ctx))
	})
}

// untilReset returns a context for a call of the service, which the next reset ends. The
// caller must call end when the call is over: it wakes the streams, which read the call
// from the fake. A call that hangs wakes nobody, but they look twice a second.
func (s *Server) untilReset(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.calls.Load(), cancel)
	return ctx, func() { stop(); cancel(); s.feed.wake() }
}

// End ends streams and waits, so that a server which drains is not kept.
func (s *Server) End() { s.end() }

// writeState writes the state to a file, as putState takes it.
func (s *Server) writeState(w io.Writer) error { return s.fake.WriteState(w) }

// putState is all or nothing: a state that is damaged or another program's changes
// nothing. Rules and recorded calls stay.
func (s *Server) putState(r *request) (any, error) {
	return nil, errors.Unwrap(s.fake.ReadState(bytes.NewReader(r.body))) // without the method's name
}

// info shows the text of the first key where everybody knows it. A key that --key chose
// may be one that is in use elsewhere.
func (s *Server) info(*request) (any, error) {
	info := map[string]any{
		"version": s.options.Version, "base_url": s.options.BaseURL, "started_at": s.started, "remote": s.options.Guard.AnyHost,
		"endpoints": strings.Split(spec.EndpointNames(), ", "),
	}
	if !s.options.KeyChosen {
		info["key"] = s.fake.Key()
	}
	return info, nil
}

// writeDocument writes openapi.yaml, as it was built in.
func (s *Server) writeDocument(w io.Writer) error {
	_, err := w.Write(openAPI)
	return err
}

// decisions shows what the interface leaves open. observed tells an answer that a service
// gave from one that the fake made up.
func (s *Server) decisions(*request) (any, error) {
	views := []map[string]any{}
	for _, d := range s.fake.Decisions() {
		views = append(views, map[string]any{
			"id": d.ID, "question": d.Question, "answer": json.RawMessage(d.Answer), "default": json.RawMessage(d.Default), "observed": d.Observed,
		})
	}
	return map[string]any{"decisions": views}, nil
}

// clock answers GET clock and POST clock: the fake's time, and by how much it was moved.
func (s *Server) clock(*request) (any, error) {
	return map[string]any{"now": s.fake.Now(), "advanced": s.admin.Advanced().String()}, nil
}

// advance moves the clock by a duration, or until a time. A time that has passed
// leaves the clock as it is, so that a client which waits in the fake's time need
// not ask first.
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
	} else { // a time in the past is accepted: see above
		member, d = "until", max(0, body.Until.Sub(s.fake.Now()))
	}
	if d > jsonapi.MaxDuration-s.admin.Advanced() {
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

// removeRules removes one rule, or without an id all of its kind. No rule at all is then
// no mistake: a test that cleans up need not know whether it made any.
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

// fittingFaults lists the faults by name that can happen to an endpoint, for a test in
// any language that wants to try them all.
func (s *Server) fittingFaults(r *request) (any, error) {
	fitting, err := rules.Fitting(r.query.Get("endpoint"))
	return map[string]any{"faults": fitting}, err
}
