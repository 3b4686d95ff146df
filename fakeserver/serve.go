package fakeserver

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// ServeHTTP answers one call, so that a Server can be given to httptest.NewServer
// or http.Server. The call is in Calls before the first byte of its answer is
// written.
//
// A handler around the fake must pass on Flush and Hijack, or have an Unwrap. Behind
// http.TimeoutHandler, for example, clients see io.EOF instead of a reset, and nothing of an
// answer that breaks off.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.config.behavior == nil {
		misuse("ServeHTTP", "the Server is the zero Server; New and Open make one")
	}
	answer := s.serve(r)
	answer.Write(w, r)
}

// serve answers one call. All calls come through here: from HTTPClient, Direct and ServeHTTP.
// read parses the call and makes the checks that need no state. arrive gives the call its trace
// identifier, and returns the rules that may act on it. The faults that match act before the
// service decides (delayAndChange) and after it (chooseAnswer); faultacts.go has them.
// publish (publish.go) records the answer and shows it. Package memnet then delivers it, and
// reports to progress.
//
// After a panic the client gets no answer.
func (s *Server) serve(r *http.Request) (a memnet.Transmission) {
	a.Delivery = noAnswer
	c := new(call)
	defer s.recovered(c)
	s.read(c, r)
	scripts, injections := s.arrive(c)
	if c.Unrouted != nil {
		s.reportUnknown(c)
	}
	if c.entry.hasText { // only messages have scripts
		scripts = s.matchingRules(c, scripts)
	}
	s.chooseFaults(c, s.matchingRules(c, injections))
	if s.delayAndChange(r, c) {
		c.fromService = s.askService(r.Context(), c, scripts)
	}
	s.chooseAnswer(c)
	s.publish(r.Context(), c)
	return memnet.Transmission{
		Response: c.toClient.Response, Delivery: c.delivery,
		Progress: func(sent int, ended bool) { s.progress(c, sent, ended) },
	}
}

// recovered must be deferred where the fake reads the clock for a call, since the function of
// WithClock may panic or end its goroutine. A panic fails the test. A call that ends so, and
// so is not in the log, is no longer under way.
func (s *Server) recovered(c *call) {
	if p := recover(); p != nil {
		s.reportf("the fake, or the function of WithClock, panicked: %v%s", p, stackTrace())
	}
	if c.generation != nil && c.record.Seq == 0 {
		s.end(c)
	}
}

// end takes a call from the calls that are under way.
func (s *Server) end(c *call) {
	defer s.lock().Unlock()
	c.generation.log.endLocked(c.entry)
}

// read reads a call with its whole body, and begins its record. A call arrives when the
// last byte of its body has come.
func (s *Server) read(c *call, r *http.Request) {
	c.Request, c.now = wire.Read(r, s.config.behavior, hostName, s.config.messageTexts), s.Now()
	shown := &c.Shown
	c.record = Call{
		Time: c.now, Method: shown.Method, URL: shown.URL, Path: shown.Path, AgentID: shown.AgentID,
		Header: shown.Header, Body: shown.Body, BodyBytes: c.BodyBytes,
	}
	if c.IP.IsValid() {
		c.record.Address = c.IP.String()
	}
	if c.Endpoint != nil {
		c.record.Endpoint = Endpoint(c.Endpoint.Pattern)
	}
	c.entry = &entry{record: c.record, token: c.Token}
	c.entry.text, c.entry.hasText = c.Fields[spec.MessageText]
}

// arrive adds a call to the present generation, as a call under way, and sets its trace
// identifier and the label of its key. It returns the rules that may act on the call: a
// rule that is made later does not.
func (s *Server) arrive(c *call) (scripts, injections []*rule) {
	defer s.lock().Unlock()
	s.activity++
	c.generation = s.generation
	c.generation.traces++
	c.TraceID = service.Numbered("trace", c.generation.traces) // the interface does not show the form of a trace_id
	c.record.TraceID, c.record.Key = c.TraceID, c.generation.keyLabelLocked(c.Request)
	c.entry.record = c.record
	c.generation.log.underWay = append(c.generation.log.underWay, c.entry)
	return c.generation.scripts, c.generation.injections
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

// askService has the service decide, makes the reply to a message, and encodes the
// answer.
func (s *Server) askService(ctx context.Context, c *call, scripts []*rule) wire.Answer {
	result, st := s.decide(c, scripts)
	// The limits of the key have started from zero, so without this report a test would wonder
	// why no limit refuses its calls.
	if result.TwoClocks {
		s.reportf("%s was used under two clocks: a call at %s came after one more than a day later. "+
			"A synctest bubble starts in the year 2000: issue a key for each bubble, and do not use it outside",
			c.record.Key, c.now.Format(time.RFC3339Nano))
	}
	if result.Message != nil {
		result.Refusal = s.makeReply(ctx, c, result.Message, st)
	}
	if c.failed != "" {
		return wire.Answer{}
	}
	now := s.Now()
	if refusal := result.Refusal; refusal != nil {
		c.recordRefusal(refusal, s.config.behavior, now)
		if refusal.Kind == service.UnlistedStatus {
			s.reportf("%s: %s", st.rule.callbackName("the ReplyFunc"), refusal.Broken)
		}
	} else if c.Endpoint == spec.CreateAgent {
		c.record.Created = result.Agent.ID
	}
	return wire.Encode(c.Request, &result, s.config.behavior, now.Format(http.TimeFormat))
}

// recordRefusal records why the service refused a call, without the keys of the call.
func (c *call) recordRefusal(r *service.Refusal, behavior *service.Behavior, now time.Time) {
	shown := &c.record
	shown.Code, shown.LimitKey = c.Secrets.Clean(behavior.ErrorName(r.Code)), behavior.LimitName(r.Limit)
	shown.Reason, shown.Member = c.Secrets.Clean(wire.Reason(r)), c.Secrets.Clean(cmp.Or(r.UnknownMember, r.Field))
	shown.Why = c.Secrets.Clean(wire.Why(r, now))
}

// decide has the service decide under one lock, so that the key, the limits and the effect
// belong to the same state. For a message it also takes the next step of the script that
// answers it, and copies the Message for the step's function; makeReply stores the reply.
func (s *Server) decide(c *call, scripts []*rule) (result service.Result, st step) {
	defer s.lock().Unlock()
	result = c.generation.service.Do(c.now, &c.Request.Request)
	m := result.Message
	if m == nil {
		return result, st
	}
	// The step is taken under the same lock as the limits, so that a refused message uses up
	// no step.
	if st = nextStepLocked(scripts); st.f != nil {
		st.message = &Message{
			Agent: copyAgent(m.Agent), Text: m.Exchange.Text, UserRef: m.Exchange.UserRef, History: copyExchanges(m.Agent.Exchanges),
		}
	}
	return result, st
}

// makeReply waits out the cold start (interface 4.2), and makes the reply. It runs without the
// lock, since a callback of the test may make the reply. If a script asks for a refusal
// instead, makeReply returns the refusal. A client that leaves meanwhile changes nothing,
// because its message was accepted.
func (s *Server) makeReply(ctx context.Context, c *call, m *service.Message, st step) *service.Refusal {
	// The cold start counts as the service's own time, so Took includes it.
	if m.Cold {
		memnet.Pause(ctx, s.config.coldStart)
	}
	// Without a script the reply depends on the text alone, so a test can state it.
	r := Reply{Text: "You wrote: " + m.Exchange.Text}
	switch {
	case st.f != nil:
		c.failed = s.runCallback(func() string { return st.rule.callbackName("the ReplyFunc") }, func() { r = st.f(*st.message) })
		if c.failed != "" {
			return nil
		}
	case st.text != nil:
		r = Reply{Text: *st.text}
	}
	defer s.lock().Unlock()
	return c.generation.service.AnswerMessage(m, service.Reply(r))
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
// After a panic the connection is refused too.
func (s *Server) refuseConnection(r *http.Request, ip netip.Addr) (err error) {
	if !s.refusing.Load() {
		return nil
	}
	err = memnet.ErrRefused
	c := &call{delivery: noAnswer}
	defer s.recovered(c)
	s.read(c, asItWouldArrive(r, ip))
	s.chooseFaults(c, s.matchingRules(c, s.refusingRules(c)))
	if c.failed == "" && c.fault == nil {
		return nil
	}
	s.arrive(c)
	s.publish(r.Context(), c)
	return err
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

// refusingRules sets the label of the call's key, because matchers may ask for it, and returns
// the rules that refuse connections.
func (s *Server) refusingRules(c *call) []*rule {
	defer s.lock().Unlock()
	c.entry.record.Key = s.generation.keyLabelLocked(c.Request)
	return s.generation.refusals
}
