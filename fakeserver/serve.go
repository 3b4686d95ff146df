package fakeserver

import (
	"context"
	"net/http"
	"time"
)

// request is one call on its way through the fake.
type request struct {
	arrival
	record    *record
	now       time.Time // when it reached the service, after any latency; decides limits and timestamps
	world     *world    // the world at arrival: a Reset meanwhile does not move the call
	key       *apiKey   // once the call is admitted
	twoClocks bool      // the key was used under another clock before

	// What the rules of the test decided for it:
	scripts   []*Script // that match, the newest first
	latencies []time.Duration
	changes   []*Injection
	fault     *fault // acts besides the latencies; nil means none
}

// operation is the effect and the answer of a call that no rule refuses. It does
// not see how the answer is sent, nor the lock that it runs under. It has
// either act or turn.
type operation struct {
	setsBYOK bool         // it stores a provider key besides, which a limit counts
	act      func() reply // changes the state and returns the answer
	turn     *turn        // of a message, whose answer takes time
}

func (req *request) traceID() string { return req.record.call.TraceID }

// ServeHTTP answers one call: receive reads it, check judges it, act carries it
// out, and compose words the answer. The record of the call is complete before
// the first byte of the answer is written.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.abortOnPanic()
	req := s.receive(r)
	out := s.respond(r, req)
	req.delivery(out).Write(w, r, out.Response)
}

// abortOnPanic reports a panic that is not a deliberate abort, and aborts the
// connection, as net/http does, but without its log.
func (s *Server) abortOnPanic() {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler { //nolint:errorlint // panicked with as it is
		s.reportf("the fake itself panicked, which is a bug in it: %v", p)
	}
	panic(http.ErrAbortHandler)
}

// respond decides and carries out a call, always records it, and returns the
// answer to send. A callback that panics decides nothing, and neither does a
// fault instead of the call.
func (s *Server) respond(r *http.Request, req *request) (out answer) {
	var decided answer
	defer func() { s.keep(req, decided, out) }()
	s.findRules(req)
	if s.reach(r, req) {
		rep, flaw := s.carryOut(r.Context(), req)
		decided = s.compose(req, rep, flaw)
	}
	return s.outcome(req, decided)
}

// findRules gives the call its trace identifier and finds its scripts and faults.
// Matchers are callbacks of the test, so they run on a snapshot without the
// lock.
func (s *Server) findRules(req *request) {
	var scripts []*Script
	var injections []*Injection
	s.locked(func(w *world) {
		req.world = w
		call := &req.record.call
		call.TraceID, call.Key = w.nextTrace(), w.label(req.record)
		if req.record.hasText {
			scripts = w.scripts.about(req.record)
		}
		injections = w.injections.about(req.record)
	})
	req.scripts = candidates(s, scripts, req.record)
	s.strike(req, candidates(s, injections, req.record))
	s.reportUnknown(req)
}

func (s *Server) carryOut(ctx context.Context, req *request) (reply, *failure) {
	var op operation
	var rep reply
	var flaw *failure
	s.locked(func(*world) { op, rep, flaw = s.settle(req) })
	if req.twoClocks {
		s.reportf("%s was used under two clocks: a call at %s came after one more than a day later. "+
			"A synctest bubble starts in the year 2000: issue a key of its own for each bubble, and do not use it outside",
			req.key.Label, wireTime(req.now))
	}
	if flaw == nil && op.turn != nil {
		op.turn.wait(ctx)
		s.locked(func(*world) { rep, flaw = op.turn.finish() })
	}
	return rep, flaw
}

// settle is the one critical section of a call: the key, the limits and the
// effect are decided on the same state. The lock is held.
func (s *Server) settle(req *request) (operation, reply, *failure) {
	op, flaw := s.check(req)
	if flaw != nil {
		return operation{}, nil, flaw
	}
	if op.turn != nil {
		op.turn.begin(req)
		return op, nil, nil
	}
	return op, op.act(), nil
}

// check makes all checks of a call, and spends its limits.
func (s *Server) check(req *request) (operation, *failure) {
	if flaw := s.admit(req); flaw != nil {
		if flaw.status == http.StatusUnauthorized && s.config.spendsThough(flaw) {
			s.countsOf(req).takeRequest(req.now)
		}
		return operation{}, flaw
	}
	op, flaw := req.route.judge(s, req)
	if c := s.config.costs(req.route.spec, flaw, op.setsBYOK); c != (cost{}) {
		s.oneClock(req)
		b := s.config.budget(req.key.Plan, req.key.counts, s.countsOf(req), req.now)
		if refused := b.spend(c, s.config.choices); refused != nil {
			flaw = refused
		}
	}
	return op, flaw
}

// admit makes the checks before the limits: 404, 405, 401, 402.
func (s *Server) admit(req *request) *failure {
	k := req.world.keys[req.record.token]
	switch {
	case req.misrouted != nil && (s.config.pathBeforeKey || k != nil && !k.Revoked):
		return req.misrouted
	case !req.record.hasKey:
		return noToken
	case k == nil || k.Revoked:
		return unknownKey
	}
	if plan, _ := k.Plan.find(); !plan.Active {
		return paymentRequired
	}
	if req.key = k; req.ip.IsValid() {
		k.Address = req.record.call.Address
	}
	return nil
}

// compose makes the answer of a reply, or of a failure, which the record then
// shows.
func (s *Server) compose(req *request, rep reply, flaw *failure) answer {
	if flaw != nil {
		c, by := &req.record.call, s.config.choices
		c.Code, c.LimitKey = by.errorName(flaw.code), by.limitName(flaw.limit)
		c.Reason, c.Member = req.secrets.Clean(flaw.reason), req.secrets.Clean(flaw.member)
		return flaw.answer(by, s.date(), req.traceID())
	}
	rep.trace(req.traceID())
	return newAnswer(http.StatusOK, s.date(), encode(rep))
}
