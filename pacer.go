package agentmessaging

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/pacing"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// A Pacer is a [Limiter] that holds calls back before the service refuses
// them, over several limits at once (interface 8.1). It uses nearly all that
// the limits allow, whether their windows are fixed, slide or are token
// buckets, and learns from the refusals that it meets all the same: a limit
// that is lower than it was told, another user of the key, a smaller burst.
//
// After a quiet time a few calls go at once; when there are more than the
// limit allows they go evenly, in the order in which they came, interactive
// ones before batch ones ([WithPriority]). A call that could not go before its
// deadline is refused at once with a local [*Error] of status 429, and so is
// one whose limits let nobody go for longer than [RetryPolicy].MaxWait; the
// time that others take who came earlier is no part of that. An attempt that
// was not sent gives its permit back.
//
// One Pacer is for one API key: give it to all clients of the key in the
// process. Several processes share a key through [WithCoordinator].
type Pacer struct {
	limits []quota.Limit
	counts []Counted
	fleet  *fleet // nil: this process is alone
	logger *slog.Logger
	size   int // of the fleet, where the coordinator has not said

	mu     sync.Mutex
	clock  stopwatch
	local  *pacing.State // the whole budget; for one of a fleet its share while the coordinator is away
	lanes  map[quota.Set]*lane
	member uint32
	calls  uint32
}

// A PacerOption changes how a [Pacer] works.
type PacerOption func(*Pacer) error

// NewPacer returns a pacer that keeps limits: a set of this package such as
// [PreviewLimits], or one's own, at most 30. What is wrong with them is told
// by a [*ValidationError].
func NewPacer(limits []Limit, opts ...PacerOption) (*Pacer, error) {
	checked, err := checkLimits(limits)
	if err != nil {
		return nil, err
	}
	p := &Pacer{
		limits: checked, size: 1, logger: slog.New(slog.DiscardHandler),
		clock: stopwatch{read: time.Now}, lanes: map[quota.Set]*lane{}, member: rand.Uint32(),
	}
	for _, l := range limits {
		p.counts = append(p.counts, l.Counts)
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, nilOption("PacerOption")
		}
		if err := opt(p); err != nil {
			return nil, err
		}
	}
	if p.fleet != nil {
		p.fleet.journal.keep = longestWindow(checked)
	}
	p.local = p.alone(true)
	return p, nil
}

// WithCoordinator shares the limits with all processes whose pacers use the
// same coordinator and API key, such as that of the redisquota module. Each
// step of it is given up after 200 ms. While it does not answer, the pacer
// works on the process's share of the limits, looks for it every 2 s, and tells
// it on its return what was sent meanwhile.
func WithCoordinator(coordinator quota.Coordinator) PacerOption {
	return func(p *Pacer) error {
		if isNil(coordinator) {
			return nilOption("WithCoordinator")
		}
		p.fleet = &fleet{coordinator: coordinator}
		return nil
	}
}

// WithFleetSize says how many processes share the limits: for a pacer without
// coordinator, which then takes an even share, and for one whose coordinator
// has not answered yet. The default is 1.
func WithFleetSize(processes int) PacerOption {
	return func(p *Pacer) error {
		if processes < 1 {
			return &ValidationError{Field: "WithFleetSize", Reason: "must be at least 1"}
		}
		p.size = processes
		return nil
	}
}

// WithPacerLogger writes a record at Warn when the coordinator stops
// answering or has lost its state, and one at Info when it is back. The
// default is to log nothing.
func WithPacerLogger(logger *slog.Logger) PacerOption {
	return func(p *Pacer) error {
		if logger == nil {
			return nilOption("WithPacerLogger")
		}
		p.logger = logger
		return nil
	}
}

// WithPacerClock reads the time from now instead of time.Now. Against the fake,
// give it the fake's Now: then the windows follow fakeserver's Advance. Waits
// take real time all the same.
func WithPacerClock(now func() time.Time) PacerOption {
	return func(p *Pacer) error {
		if now == nil {
			return nilOption("WithPacerClock")
		}
		p.clock.read = now
		return nil
	}
}

// CoolsDown reports true: a refusal holds back the calls that it concerns, so
// that a client needs no cool-down beside a Pacer.
func (p *Pacer) CoolsDown() bool { return true }

// freePermit is for attempts that no limit counts.
type freePermit struct{}

func (freePermit) Done(AttemptOutcome) {}

// Acquire waits until the attempt may be sent; see [Limiter].
func (p *Pacer) Acquire(ctx context.Context, attempt LimitedAttempt) (Permit, error) {
	spends := p.spends(attempt)
	if spends == 0 {
		return freePermit{}, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &waiter{
		batch: priorityOf(ctx) == PriorityBatch, deadline: untilDeadline(ctx),
		maxWait: cmp.Or(attempt.MaxWait, defaultMaxWait), ready: make(chan verdict, 1),
	}
	p.enter(spends, w)
	select {
	case v := <-w.ready:
		return v.permit, v.err
	case <-ctx.Done():
		p.leave(spends, w)
		return nil, ctx.Err()
	}
}

// spends are the limits that the attempt counts against.
func (p *Pacer) spends(attempt LimitedAttempt) quota.Set {
	var spends quota.Set
	for i, what := range p.counts {
		if attempt.counts(what) {
			spends |= quota.SetOf(i)
		}
	}
	return spends
}

// pacerPermit is the leave to send one attempt.
type pacerPermit struct {
	pacer *Pacer
	step  quota.Step // that asked for it
	probe bool
}

// Done reports what the pacer learns from; most outcomes teach nothing.
func (g *pacerPermit) Done(outcome AttemptOutcome) {
	switch {
	case outcome.StatusCode == http.StatusTooManyRequests:
		g.step.Kind, g.step.LimitKey, g.step.RetryAfter = quota.Refused, gateKey(outcome.LimitKey), outcome.RetryAfter
	case outcome.StatusCode == 0 && !outcome.Sent:
		g.step.Kind = quota.Unused
	case g.probe && passedLimits(outcome.StatusCode):
		g.step.Kind = quota.Accepted
	default:
		return
	}
	if g.pacer.fleet != nil {
		go g.pacer.report(g.step) // the caller is not to wait for the coordinator
		return
	}
	g.pacer.report(g.step)
}

// passedLimits reports whether an answer shows that no limit stood in the way:
// a success, or a refusal of what was asked, which services look at later than
// at the key and its limits.
func passedLimits(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict:
		return true
	}
	return status >= 200 && status <= 299
}

// report takes a step that changes what the waiting calls were told.
func (p *Pacer) report(step quota.Step) {
	if p.fleet != nil && step.Kind == quota.Refused {
		p.cool(step)
	}
	p.do(step)
	p.wake()
}

// do takes a step with the coordinator, or here where there is none.
func (p *Pacer) do(step quota.Step) quota.Answer {
	if p.fleet != nil && p.present(step) {
		answer, err := p.call(step)
		if err == nil {
			p.heard(step, answer)
			return answer
		}
		p.lost(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doHere(step)
}

// doHere takes a step with the state of this process. The lock is held.
func (p *Pacer) doHere(step quota.Step) quota.Answer {
	answer := p.local.Do(p.clock.now().Microseconds(), step)
	if answer.Granted && p.fleet != nil {
		p.fleet.journal.add(p.clock.now(), step, false) // unheard
	}
	return answer
}

// alone is the state of a process that asks nobody.
func (p *Pacer) alone(late bool) *pacing.State {
	if p.size == 1 {
		return pacing.New(p.limits, pacing.Tuning{})
	}
	tuning := pacing.Tuning{Burst: 1}
	if late { // else the queue has put the processes' calls apart
		tuning.Late = rand.Float64()
	}
	return pacing.New(pacing.Share(p.limits, p.size), tuning)
}

// stopwatch is time that goes forward only: a clock that is set back, or that
// belongs to another era as in a testing/synctest bubble, stands still.
type stopwatch struct {
	read    func() time.Time
	elapsed time.Duration
	last    time.Time
}

func (s *stopwatch) now() time.Duration {
	now := s.read()
	if s.last.IsZero() {
		s.elapsed = time.Second // pacing's times are more than 0
	} else if step := now.Sub(s.last); step > 0 {
		s.elapsed += step
	}
	s.last = now
	return s.elapsed
}
