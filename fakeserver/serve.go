package fakeserver

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// call is one call on its way through the fake. Only the goroutine that answers the call
// writes its fields. Other goroutines see the call through entry, which is written under
// the server's lock.
//
// The way, in the order of this file: answer calls read, begin, carryOut and
// finishRecord; carryOut finds the rules that act, and calls reachesService and askService,
// which asks the service and a script; package memnet then delivers the answer and
// reports to progress.
type call struct {
	*wire.Request
	// entry is the part of the call that the log, matchers and watchers see.
	entry  *entry
	record Call // copied into entry on arrival, and again with the answer
	// gen is the generation at arrival. A Reset meanwhile does not change it.
	gen *generation
	// now is the time at which the call reached the service, after any latency. Limits and
	// timestamps go by it.
	now time.Time

	scripts    []*rule // at first all scripts of the generation, then those that match
	injections []*rule // all of the generation

	failed string // describes the function of the test that failed; "" if none has

	// What the faults of the test do to the call:
	latencies []time.Duration
	changes   []*rule
	fault     *wire.Fault // acts in addition to latencies and changes; nil means none

	neverArrived bool            // the client left during the latency, so the call did not reach the service
	left         bool            // the client left before the answer was sent
	fromService  wire.Answer     // the service's answer; empty if the call did not reach the service
	toClient     wire.Answer     // the client's answer: fromService, unless a fault replaces it
	delivery     memnet.Delivery // how toClient is sent
}

// noAnswer is the delivery of a call that gets no answer: its client has left, or
// a callback of the test panicked.
var noAnswer = memnet.Delivery{Ends: memnet.Closes, Sent: memnet.Nothing}

// ServeHTTP answers one call, so that a Server can be given to httptest.NewServer
// or http.Server. The call is in Calls before the first byte of its answer is
// written.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.config.behavior == nil {
		misuse("ServeHTTP", "the Server is the zero Server; New and Open make one")
	}
	answer := s.serve(r)
	answer.Write(w, r)
}

// serve answers one call. All calls come through here: from HTTPClient, Direct and
// ServeHTTP. A panic, perhaps of the function of WithClock, fails the test, and the
// client gets no answer.
func (s *Server) serve(r *http.Request) (a memnet.Answer) {
	a.Delivery = noAnswer
	defer func() {
		if p := recover(); p != nil {
			s.reportf("the fake, or the function of WithClock, panicked: %v%s", p, stackTrace())
		}
	}()
	return s.answer(r)
}

// answer makes the answer to a call: read parses and judges it without the state, begin
// gives it its trace identifier and rules, carryOut applies the rules and asks the
// service, and finishRecord records the answer.
func (s *Server) answer(r *http.Request) memnet.Answer {
	c := s.read(r)
	s.begin(c)
	s.carryOut(r, c)
	s.finishRecord(r.Context(), c)
	return memnet.Answer{
		Response: c.toClient.Response, Delivery: c.delivery,
		Progress: func(sent int, ended bool) { s.progress(c, sent, ended) },
	}
}

// runCallback runs a function of the test on a separate goroutine, and reports whether it
// returned. If it panics, or ends its goroutine as require does, the test fails with a
// message that begins with the function's name. The lock must not be held: the function
// may call the fake.
func (s *Server) runCallback(name func() string, f func()) (ok bool) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			switch p := recover(); {
			case p != nil:
				s.reportf("%s panicked: %v%s", name(), p, stackTrace())
			case !ok:
				s.reportf("%s ended its goroutine, as require and FailNow do; use assert there%s", name(), stackTrace())
			}
		}()
		f()
		ok = true
	}()
	<-ended
	return ok
}

// stackTrace returns the stack from the function that failed. Only a deferred function
// may call it, because the stack is gone after that.
func stackTrace() []byte {
	stack := debug.Stack()
	return stack[max(0, bytes.Index(stack, []byte("\npanic(")), bytes.Index(stack, []byte("\nruntime.Goexit("))):]
}

// runOf runs f, which calls functions of the test that belong to rules. of points to the
// rule whose function is running. If a function fails, the call gets no answer and runs
// no other function.
func (s *Server) runOf(c *call, what string, of **rule, f func()) {
	name := func() string { return fmt.Sprintf("%s of %v at %s", what, *of, (*of).at) }
	if c.failed == "" && !s.runCallback(name, f) {
		c.failed = name()
	}
}

// read reads a call with its whole body, and begins its record. A call arrives when the
// last byte of its body has come.
func (s *Server) read(r *http.Request) *call {
	c := &call{Request: wire.Read(r, s.config.behavior, hostName, s.config.messageTexts), now: s.Now()}
	shown := &c.Shown
	c.record = Call{
		Time: c.now, Method: shown.Method, URL: shown.URL, Path: shown.Path, AgentID: shown.AgentID,
		Header: shown.Header, Body: shown.Body, BodyBytes: c.BodyBytes,
	}
	if c.IP.IsValid() {
		c.record.Address = c.IP.String()
	}
	if c.Endpoint != nil {
		c.record.Endpoint = Endpoint(c.Endpoint.Call)
	}
	c.entry = &entry{call: c.record, token: c.Token}
	c.entry.text, c.entry.hasText = c.Fields[spec.MessageText]
	return c
}

// begin adds a call to the present generation, as a call under way. It sets the trace
// identifier, the label of the key, and the rules that may act on the call. A rule that
// is made later does not act on it.
func (s *Server) begin(c *call) {
	defer s.lock().Unlock()
	s.activity++
	c.gen = s.gen
	c.gen.traces++
	c.TraceID = service.Numbered("trace", c.gen.traces) // the interface does not show the form of a trace_id
	c.record.TraceID, c.record.Key = c.TraceID, c.gen.keyLabelLocked(c.Request)
	c.entry.call = c.record
	c.gen.log.waiting = append(c.gen.log.waiting, c.entry)
	c.scripts, c.injections = c.gen.scripts, c.gen.injections
}

// keyLabelLocked returns the label that a record shows for the key of a request.
func (g *generation) keyLabelLocked(r *wire.Request) string {
	k := g.service.Key(r.Token)
	switch {
	case k != nil:
		return k.Label
	case r.Token == service.Digest{}:
		return fakeadmin.KeyMissing
	}
	return fakeadmin.KeyUnknown
}

// carryOut finds the scripts that match a call and the faults that act on it. If the
// faults let the call through, it has the service decide. It then chooses the answer: the
// service's answer, unless a fault replaces it. Only messages have scripts.
func (s *Server) carryOut(r *http.Request, c *call) {
	if c.Unrouted != nil {
		s.reportUnknown(c)
	}
	if c.entry.hasText {
		c.scripts = s.matchingRules(c, c.scripts)
	}
	s.applyFaults(c, c.injections)
	if s.reachesService(r, c) {
		c.fromService = s.askService(r.Context(), c)
	}
	c.toClient = c.fromService // fromService is empty for a call that never reached the service
	switch {
	case c.failed != "" || c.neverArrived:
		c.fault, c.delivery = nil, noAnswer
	case c.fault != nil:
		c.delivery = c.fault.Delivery
		if c.fault.Answer != nil {
			c.toClient = c.fault.Answer.Encode(c.Request, s.config.behavior, s.Now())
		}
	}
}

// matchingRules returns the rules that match a call, oldest first. If a matcher fails, it
// returns none. The lock must not be held, since matchers may be functions of the test.
func (s *Server) matchingRules(c *call, rules []*rule) (matching []*rule) {
	if len(rules) == 0 {
		return nil
	}
	var of *rule
	s.runOf(c, "a matcher", &of, func() {
		for _, of = range rules {
			if matchesAll(of.matchers, c.entry) {
				matching = append(matching, of)
			}
		}
	})
	if c.failed != "" {
		return nil
	}
	return matching
}

// applyFaults decides which of the matching injections act on a call. It does so in one
// critical section, so that no two calls count as the same match. It starts with the
// newest injection, which wins over older faults that exclude it. Older latencies and
// changes still act, so that latencies add up.
func (s *Server) applyFaults(c *call, injections []*rule) {
	matching := s.matchingRules(c, injections)
	defer s.lock().Unlock()
	var names []string
	for _, in := range slices.Backward(matching) {
		slows := in.fault.Phase == wire.OnTheWay
		// The match counts even if another fault was chosen already, since Nth and Chance count
		// every call that matches.
		if !in.countMatchLocked() || !slows && c.fault != nil {
			continue
		}
		in.countHitLocked()
		names = append(names, in.fault.Name)
		switch {
		case in.fault.Change != nil:
			c.changes = append(c.changes, in)
		case slows:
			c.latencies = append(c.latencies, in.fault.Delay)
		default:
			c.fault = in.fault
		}
	}
	c.record.Fault = strings.Join(names, ", ")
}

// reachesService waits out the latencies of a call, runs its changes, and reports whether
// the call reaches the service. The call does not reach the service if its client left
// meanwhile, or if a fault answers instead.
func (s *Server) reachesService(r *http.Request, c *call) bool {
	if c.latencies == nil && c.changes == nil && c.fault == nil {
		return c.failed == ""
	}
	// net/http notices that a client has left only after the whole body was read, and
	// the fake reads only the start of a body over 1 MiB.
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	if c.latencies != nil {
		for _, d := range c.latencies {
			memnet.Pause(r.Context(), d)
		}
		c.neverArrived, c.now = r.Context().Err() != nil, s.Now()
	}
	for _, in := range c.changes {
		s.runOf(c, "the function", &in, in.fault.Change)
	}
	return c.failed == "" && !c.neverArrived && (c.fault == nil || c.fault.Phase == wire.OnTheReply)
}

// askService has the service decide, makes the reply to a message, and encodes the
// answer. If the service refuses the call, askService records why, without the keys of
// the call.
func (s *Server) askService(ctx context.Context, c *call) wire.Answer {
	answer, st := s.decide(c)
	// The limits have started again from zero. Without this report, a test would see them as
	// never used.
	if answer.TwoClocks {
		s.reportf("%s was used under two clocks: a call at %s came after one more than a day later. "+
			"A synctest bubble starts in the year 2000: issue a key for each bubble, and do not use it outside",
			c.record.Key, c.now.Format(time.RFC3339Nano))
	}
	if answer.Message != nil {
		answer.Refusal = s.makeReply(ctx, c, answer.Message, st)
	}
	if c.failed != "" {
		return wire.Answer{}
	}
	shown, now := &c.record, s.Now()
	if r, behavior := answer.Refusal, s.config.behavior; r != nil {
		shown.Code, shown.LimitKey = behavior.ErrorName(r.Code), behavior.LimitName(r.Limit)
		shown.Reason, shown.Member = c.Secrets.Clean(wire.Reason(r)), c.Secrets.Clean(cmp.Or(r.UnknownMember, r.Field))
		shown.Why = c.Secrets.Clean(wire.Why(r, now))
	} else if c.Endpoint == spec.CreateAgent {
		shown.Created = answer.Agent.ID
	}
	return wire.Encode(c.Request, &answer, s.config.behavior, now.Format(http.TimeFormat))
}

// decide is the one critical section of a call: the key, the limits and the effect are
// decided on the same state. For a message it also takes the next step of the script that
// answers it, and copies the Message for the step's function.
func (s *Server) decide(c *call) (answer service.Answer, st step) {
	defer s.lock().Unlock()
	answer = c.gen.service.Do(c.now, &c.Request.Request)
	m := answer.Message
	if m == nil {
		return answer, st
	}
	// The step is taken under the same lock as the limits, so that a refused message uses up
	// no step.
	if st = nextStepLocked(c.scripts); st.f != nil {
		st.message = &Message{
			Agent: copyAgent(m.Agent), Text: m.Exchange.Text, UserRef: m.Exchange.UserRef, History: copyExchanges(m.Agent.Exchanges),
		}
	}
	return answer, st
}

// makeReply waits out the cold start (interface 4.2), and makes the reply. It runs
// without the lock, since a function of the test may make the reply. If a script asks for
// a refusal instead, makeReply returns the refusal. A client that leaves meanwhile
// changes nothing, because its message was accepted.
func (s *Server) makeReply(ctx context.Context, c *call, m *service.Message, st step) *service.Refusal {
	// The cold start counts as the service's own time, so Took includes it.
	if m.Cold {
		memnet.Pause(ctx, s.config.coldStart)
	}
	// Without a script the reply depends on the text alone, so a test can state it.
	r := Reply{Text: "You wrote: " + m.Exchange.Text}
	switch {
	case st.f != nil:
		if s.runOf(c, "the ReplyFunc", &st.rule, func() { r = st.f(*st.message) }); c.failed != "" {
			return nil
		}
	case st.text != nil:
		r = Reply{Text: *st.text}
	}
	if !spec.SendMessage.Lists(cmp.Or(r.Status, http.StatusOK)) {
		s.reportf("the ReplyFunc of %v at %s answered with status %d; a message is answered with 200 or one of %v",
			st.rule, st.rule.at, r.Status, spec.SendMessage.Errors)
	}
	defer s.lock().Unlock()
	return c.gen.service.AnswerMessage(m, service.Reply(r))
}

// finishRecord completes the record of a call, puts it into the log, and shows it to
// watchers. The call is added and the watchers are read under one lock, so an AwaitCalls
// that begins meanwhile sees the call exactly once (see addWatcher). finishRecord runs
// before the first byte of the answer is sent, so that a client that has its answer finds
// the call in Calls.
func (s *Server) finishRecord(ctx context.Context, c *call) {
	now := s.Now()
	record := &c.record
	record.Status = c.fromService.Status
	record.Took = max(0, now.Sub(record.Time)) // negative if the machine's clock was set back
	record.ReplyBody = c.fromService.Show(len(c.fromService.Body), c.Secrets, s.config.messageTexts)
	if c.failed != "" {
		record.Why = c.failed + " failed, so there was no answer."
	} else if c.fault != nil {
		record.Why = strings.TrimSpace(record.Why + " " + c.fault.Why(c.Endpoint == spec.SendMessage, c.fromService.Status, len(c.toClient.Body)))
	}
	c.left = c.neverArrived || ctx.Err() != nil
	// An answer that drips or hangs is not sent when finishRecord returns. Its record says
	// that nothing was sent so far, and progress updates it.
	part, _ := c.delivery.Part(c.toClient.Body)
	slow := c.delivery.Ends == memnet.Hangs || c.delivery.Drip > 0
	if slow {
		part = nil
	}
	record.Sent = s.sentSoFar(c, len(part), c.left || !slow)
	if c.left {
		record.Why = strings.TrimSpace(record.Why + " " + wire.WhyLeft(record.Took, !c.neverArrived))
	}
	for _, w := range s.addToLog(c) {
		s.showTo(w, c.entry)
	}
}

// addToLog puts a call into the log and returns the watchers that it must be shown to.
// Unless its answer drips or hangs, the call is no longer under way. From now on only
// Sent changes in the record.
func (s *Server) addToLog(c *call) []*watcher {
	defer s.lock().Unlock()
	s.activity++
	s.answered++
	c.record.Seq = s.answered
	c.entry.call = c.record
	c.gen.log.addLocked(c.entry, !c.record.Sent.Ended.IsZero())
	return s.watchers
}

// showTo shows a call to a watcher. If the watcher fails, the test fails, and the call
// goes on.
func (s *Server) showTo(w *watcher, e *entry) {
	shown := s.runCallback(func() string { return w.name }, func() {
		if matchesAll(w.matchers, e) {
			w.see(e)
		}
	})
	if !shown && w.failed != nil {
		w.failed()
	}
}

// sentSoFar returns the record of an answer after n bytes of its body were sent. It is
// called once for an answer that is sent at once, and for each part of an answer that
// drips.
func (s *Server) sentSoFar(c *call, n int, ended bool) (sent Sent) {
	if ended {
		sent.Ended = s.Now()
	}
	body := c.toClient.Body
	if c.record.Method == http.MethodHead { // HTTP sends only the body's length
		n, body = 0, nil
	}
	_, whole := c.delivery.Part(body)
	switch {
	case c.fault != nil && c.fault.Phase == wire.BeforeConnecting:
		sent.Broke = brokeRefused
		return sent
	case c.left:
		sent.Broke = brokeLeft
		return sent
	case !whole:
		sent.Broke = broke[c.delivery.Ends]
	case ended && n < len(body):
		sent.Broke = brokeLeft
	}
	// The connection broke before the header, so there is no status and no body.
	if c.delivery.Sent == memnet.Nothing {
		return sent
	}
	sent.Status, sent.Bytes, sent.Header, sent.Body = c.toClient.Status, n, c.toClient.Header, c.record.ReplyBody
	// Otherwise the client got the service's whole body, which ReplyBody holds already
	// masked.
	if c.fault != nil || n < len(c.toClient.Body) {
		sent.Body = c.toClient.Show(n, c.Secrets, s.config.messageTexts)
	}
	if c.fault != nil {
		sent.Header = mask.AnswerHeader(c.toClient.Header, !s.config.messageTexts)
	}
	return sent
}

// progress records how much of an answer was sent. memnet calls it while an answer drips
// or hangs, and if the client did not take a whole answer. It counts each part of a drip
// before the part is sent.
func (s *Server) progress(c *call, n int, ended bool) {
	sent := s.sentSoFar(c, n, ended)
	c.entry.sent.Store(&sent)
	if ended {
		defer s.lock().Unlock()
		c.gen.log.endLocked(c.entry)
	}
}

// maxUnknown bounds the reported calls to unknown routes: a client that polls
// one would fill the log of a test.
const maxUnknown = 10

// reportUnknown fails the test for a call that no endpoint answers, because the tested
// program has a wrong path. A fake without a test reports no such call, since other
// programs may call it.
func (s *Server) reportUnknown(c *call) {
	if s.tb == nil || s.config.unknownOK || s.unknown.Add(1) > maxUnknown {
		return
	}
	method, path := c.record.Method, c.record.Path // without query and without the call's key
	s.reportf("no endpoint is at %s %s; the endpoints are %s; WithUnknownRoutes allows such calls",
		printable.Name(method), printable.Line(path, maxShown), spec.EndpointNames())
}

// refuseConnection returns the error of a request whose connection an injection refuses,
// and records the call; nil for any other request. Only calls of HTTPClient and Direct can
// be refused: over a socket, the connection was accepted before the fake sees the call.
func (s *Server) refuseConnection(r *http.Request, ip netip.Addr) error {
	if !s.refusing.Load() {
		return nil
	}
	c := s.read(asItWouldArrive(r, ip))
	s.applyFaults(c, s.connectionRules(c))
	if c.failed != "" {
		c.delivery = noAnswer
	} else if c.fault == nil {
		return nil
	}
	s.begin(c)
	s.finishRecord(r.Context(), c)
	return memnet.ErrRefused
}

// asItWouldArrive returns a sender's request as matchers and the record see it. The body
// still belongs to the sender, so they see a copy from GetBody, if there is a GetBody.
func asItWouldArrive(r *http.Request, ip netip.Addr) *http.Request {
	arrived := r.Clone(r.Context())
	arrived.Host, arrived.RemoteAddr, arrived.Body = r.URL.Host, netip.AddrPortFrom(ip, 0).String(), http.NoBody
	if r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			arrived.Body = body
		}
	}
	return arrived
}

// connectionRules returns the rules that refuse connections. It also sets the label of
// the call's key, because matchers may ask for it.
func (s *Server) connectionRules(c *call) []*rule {
	defer s.lock().Unlock()
	c.entry.call.Key = s.gen.keyLabelLocked(c.Request)
	return s.gen.refusals
}
