package quota

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// The default waits of agentmessaging.RetryPolicy.
const (
	DefaultMinWait = 500 * time.Millisecond
	DefaultMaxWait = 90 * time.Second
)

const (
	// LeastClosed is for a 429 that does not say how long. The pacer closes for no less.
	LeastClosed = time.Second
	// A class that only shares the name of a refused limit tries after firstTrial, then
	// after twice as long each time, up to mostTrial: a service may give one name to
	// several limits.
	firstTrial = time.Second
	mostTrial  = time.Minute
	// MostBackoff is the longest wait of a lone caller at a gate whose openings let
	// nobody through, each longer than the one before, so that a service that refuses
	// for ever is not asked for ever. Of n callers the longest wait is MostBackoff/n, or
	// crowdBackoff if that is longer: they need every chance.
	MostBackoff  = 64 * time.Second
	crowdBackoff = 5 * time.Second
)

// A CoolDown is the rule of a client without limits of its own: after a 429, calls
// to where its limit_key was seen wait until Retry-After has passed, and then go
// in turn, since not all of them will fit into the limit. The engine's lock guards it.
type CoolDown struct {
	random  func() float64         // in [0, 1), for jitter
	queues  map[Class]*queue       // the engine's
	classes [maxClasses]classState // by Class.ID
}

// maxClasses bounds the classes: two for each endpoint.
const maxClasses = 32

// classState is where the calls of a class wait.
type classState struct {
	limited atomic.Bool // whether the engine must ask for the class
	gate    *gate       // nil: it was never refused
	// A class that only shares the name of the refused limit tries the gate from tryAt
	// on with one call, to see whether it has to wait, and then again tryAfter later.
	// Once the limit has refused the class itself, tryAt is never.
	tryAt, tryAfter time.Duration
}

// NewCoolDown returns an engine with a cool-down, by clock, or by real time if it
// is nil.
func NewCoolDown(clock Clock, random func() float64) *Engine {
	c := &CoolDown{random: random}
	e := NewEngine(c, clock)
	c.queues, e.rewound = e.queues, func() {
		for i := range c.classes {
			c.classes[i].gate = nil
		}
	}
	return e
}

// gate is a limit that has refused something. Which classes it holds back is
// learned from where its name was seen: the interface shows neither the values of
// limit_key nor what each of them covers.
type gate struct {
	key           string
	closed        bool
	closedAt      time.Duration // when it closed
	retryAfter    time.Duration // for how long, at that time
	end           time.Duration // when it opens, in the service's words
	announced     time.Duration // the end in the last report of a cool-down
	trace         string        // of the answer that closed it
	random        float64       // for jitter, the same for all callers
	lastPass      time.Duration // when somebody last got through
	due           time.Duration // when it was to open last; a frozen program opens it later
	emptyOpenings int           // how many openings in a row let nobody through, the last one not counted: see emptied
	ramp          *ramp         // since it opened last; nil: it holds back nobody
}

// Sort implements Rule. A class is an endpoint, and whether the call also spends the BYOK
// set limit, so that this limit does not stop the rest.
func (c *CoolDown) Sort(_ context.Context, w *Waiter) bool {
	w.Class = Class{ID: 2 * slices.Index(spec.Endpoints, w.Endpoint)}
	if w.SetsBYOK {
		w.Class.ID++
	}
	return c.classes[w.Class.ID].limited.Load()
}

// Ask implements Rule.
func (c *CoolDown) Ask(now time.Duration, first *Waiter, waiting int) Schedule {
	p, waitHere := &c.classes[first.Class.ID], 0
	g := cmp.Or(p.gate, new(gate))
	for class, q := range c.queues {
		if c.classes[class.ID].gate == g {
			waitHere += q.waiting
		}
	}
	if g.closed {
		opens, jittered := g.opens(waitHere, first)
		if now < jittered {
			s := Schedule{
				Opens: opens, Turn: jittered, Again: min(jittered, p.tryAt),
				Estimated: true, Key: g.key, TraceID: g.trace,
			}
			if g.emptied() > 0 { // else it has never opened
				s.RefusedSince, s.RefusedUntil = g.lastPass, g.due
			}
			if waiting > 0 && now >= p.tryAt {
				p.tryAt, p.tryAfter = now+p.tryAfter, min(2*p.tryAfter, mostTrial)
				s.Grants, s.Again = []Grant{{At: now, ReportSuccess: true, Mark: g}}, min(jittered, p.tryAt)
			}
			return s
		}
		g.due = jittered
		g.open(now)
	}
	if waiting == 0 {
		return Schedule{}
	}
	s := g.next(now, waitHere <= 1)
	p.limited.Store(g.ramp != nil)
	return s
}

// next has callers go in turn at an open gate, one at a time, so that the classes that
// wait there take turns. A lone caller is not held up by the pace of many, once all who
// were sent have been answered and everybody who waited has had the time to ask.
func (g *gate) next(now time.Duration, alone bool) Schedule {
	r := g.ramp
	if r == nil || alone && r.sent == r.passed+r.refused && now-max(r.opened, r.last) >= answerWait {
		g.ramp = nil
		return Schedule{Grants: []Grant{{At: now}}, Key: g.key}
	}
	s := Schedule{Again: r.due(now, alone), Estimated: true, Key: g.key, TraceID: g.trace}
	if s.Again > now {
		s.Turn, s.Gap = s.Again, r.gap
		return s
	}
	r.sent, r.last = r.sent+1, now
	s.Grants = []Grant{{At: now, ReportSuccess: true, Mark: r}}
	return s
}

// opens returns when the gate lets the next call go: after Retry-After or the
// backoff, with jitter (interface 8.3). Both leave the first caller its MaxWait, its
// deadline and its patience: it tries once more before it is refused.
func (g *gate) opens(waiting int, first *Waiter) (opens, jittered time.Duration) {
	room := max(0, min(first.deadline, g.closedAt+first.MaxWait)-g.end)
	jitter, empty := Jitter(g.retryAfter, DefaultMinWait, room, g.random), g.emptied()
	if empty == 0 {
		return g.end, g.end + jitter
	}
	// Who has waited in vain goes before other programs: with an eighth of the jitter, 16
	// programs on a leaky bucket lost two calls in a thousand.
	jittered = g.end + jitter/32
	if empty == 1 {
		return g.end, jittered
	}
	backoff := min(max(g.retryAfter, LeastClosed)<<min(empty-1, 6), max(crowdBackoff, MostBackoff/time.Duration(max(1, waiting))))
	backoff += time.Duration(g.random * float64(backoff) / 4) // out of step with others
	patience := max(g.lastPass, first.limitedSince) + cmp.Or(first.Patience, never/2)
	opens = max(g.end, min(g.closedAt+backoff, patience, first.deadline-answerWait))
	return opens, max(opens, jittered)
}

// emptied counts the openings, the last one included, in which nobody passed.
func (g *gate) emptied() int {
	if g.ramp != nil && g.ramp.through() == 0 {
		return g.emptyOpenings + 1
	}
	return 0
}

// open begins the turns at the gate, by what the last opening has taught, which a refusal
// has ended.
func (g *gate) open(now time.Duration) {
	last, next := g.ramp, &ramp{opened: now, last: now}
	g.emptyOpenings = g.emptied()
	if g.closed, g.ramp = false, next; last == nil || now <= last.opened {
		return
	}
	passed := last.through()
	next.before = max(passed, last.before/2) // others may have been quicker this time
	next.gap = last.gap * 5 / 4
	if passed > 0 {
		g.lastPass = max(g.lastPass, g.closedAt) // some got through before, answered or not
		average := (now - last.opened) / time.Duration(passed)
		if average < next.gap || last.gap == 0 || passed <= last.before {
			next.gap = average
		}
	}
	next.gap = min(next.gap, maxGap)
}

// Done implements Rule.
func (c *CoolDown) Done(now time.Duration, w *Waiter, o Outcome) (news bool) {
	p, passed := &c.classes[w.Class.ID], o.Sent && !o.Refused
	if p.gate != nil && passed && w.Grant.Mark != nil {
		p.gate.lastPass = now // also for a class that then leaves: the limit may be the same
	}
	switch mark := w.Grant.Mark.(type) {
	case *ramp:
		mark.record(o)
	case *gate: // it tried whether it has to wait
		if passed && p.gate == mark && p.tryAt < never { // else the limit has refused the class itself since
			p.gate = nil
		}
	}
	if !o.Refused {
		return false
	}
	c.Sort(context.Background(), w) // a call may make its engine only when it is refused
	return c.close(now, w.Class.ID, o)
}

// Idle implements Rule.
func (*CoolDown) Idle(time.Duration, Class) {}

// close shuts the gate of a limit that has refused a class. A gate that is closed
// for longer already stays closed for longer.
func (c *CoolDown) close(now time.Duration, class int, o Outcome) (news bool) {
	asked, g := cmp.Or(o.RetryAfter, LeastClosed), c.gateOf(o.LimitKey, class)
	end := now + asked
	if old := c.classes[class].gate; old == nil || !old.closed || old.end <= end {
		c.classes[class].gate = g
	}
	closes := !g.closed
	switch {
	case closes:
		if g.closed, news = true, true; g.ramp == nil {
			g.lastPass, g.emptyOpenings = now, 0
		}
		g.closedAt, g.end, g.retryAfter, g.random = now, end, asked, c.random()
	case end > g.end:
		g.end, g.retryAfter, news = end, max(g.retryAfter, asked), end-g.announced >= time.Second
	}
	if news {
		g.announced, g.trace = end, o.TraceID
	}
	first := firstTrial
	if asked <= firstTrial {
		first = 2 * firstTrial // the gate opens before, unless it backs off
	}
	for i := range c.classes {
		p := &c.classes[i]
		switch {
		case p.gate != g:
			continue
		case i == class:
			p.tryAt = never
		case closes:
			p.tryAt, p.tryAfter = now+first, 2*firstTrial
		}
		p.limited.Store(true)
	}
	return news
}

// gateOf returns the gate of a name, or the class's own where there is none.
func (c *CoolDown) gateOf(key string, class int) *gate {
	for i := range c.classes {
		if g := c.classes[i].gate; g != nil && g.key == key && (key != "" || i == class) {
			return g
		}
	}
	return &gate{key: key}
}

// ramp lets callers go in turn behind a gate that has opened, so that few of them
// meet the refusal that shows where the limit is: one goes, then two for each that
// has passed, up to the number that passed last time. From there on one goes
// after each gap: last time's average distance. The n-th that passes then shrinks it by
// n/512, or by more where it is long: the program may have had a small share of a limit
// that it has for itself now, and would take minutes to find that out call by call.
type ramp struct {
	before  int           // how many passed when the gate was open last; 0: not known
	gap     time.Duration // the distance beyond before; 0: not known
	sent    int           // since the opening
	passed  int           // of them
	refused int           // of them
	opened  time.Duration
	last    time.Duration // when one was sent, or the opening
}

const (
	// answerWait is how long an answer is waited for before the next caller goes
	// all the same: services refuse quickly, but replies can take minutes. It also
	// bounds what the pace of many costs a lone caller.
	answerWait = time.Second
	// maxGap bounds the distance: to be wrong by more would cost a caller more
	// than a refusal.
	maxGap = 15 * time.Second
	// longGap in seconds, squared, is how much faster a long gap shrinks than one of a
	// second. With 15, 16 programs on a token bucket met a quarter more refusals.
	longGap = 4.0
)

// due is when the next caller may go.
func (r *ramp) due(now time.Duration, alone bool) time.Duration {
	wait := max(answerWait, r.gap)
	switch {
	case r.sent == 0:
		return now
	case r.gap > 0 && r.sent >= r.before:
		wait = r.gap
	case r.sent <= 2*r.passed:
		return now
	}
	if alone {
		wait = min(wait, answerWait)
	}
	return max(now, r.last+wait)
}

// record counts how a caller that was sent has ended.
func (r *ramp) record(o Outcome) {
	switch {
	case o.Refused:
		r.refused++
	case o.Sent:
		r.passed++
		if beyond := r.passed - r.before; beyond > 0 {
			seconds := min(max(1, r.gap.Seconds()), longGap)
			r.gap -= time.Duration(float64(r.gap) * min(0.5, float64(beyond)*seconds*seconds/512))
		}
	default:
		r.sent--
	}
}

// through counts those who got through, answered or not: refusals come quickly.
func (r *ramp) through() int { return r.sent - r.refused }

// Jitter spreads out callers that were refused together: by half of the
// backoff, and by a tenth of a long Retry-After, within half of the room.
func Jitter(asked, backoff, room time.Duration, random float64) time.Duration {
	return min(time.Duration(random*(float64(asked)/10+float64(backoff)/2)), room/2)
}
