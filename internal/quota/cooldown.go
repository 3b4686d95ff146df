package quota

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// What a client that sets no agentmessaging.RetryPolicy goes by, and a limiter for it.
const (
	DefaultMinWait = 500 * time.Millisecond
	DefaultMaxWait = 90 * time.Second
)

const (
	// LeastClosed is for a 429 that does not say how long.
	LeastClosed = time.Second
	// lookEvery is how often a class goes through a gate that its own refusals
	// closed for longer than that: the plan may have been upgraded.
	lookEvery = time.Hour
	// A class that only shares the name of a refused limit looks after firstLook,
	// then after twice as long each time, up to mostLook: a service may give
	// one name to several limits.
	firstLook = time.Second
	mostLook  = time.Minute
	// MostBackoff is the longest wait of a lone caller at a gate whose openings let
	// nobody through, each longer than the one before, so that a service that refuses
	// for ever is not asked for ever. Many callers, who need every chance, wait up to
	// leastBackoff.
	MostBackoff  = 64 * time.Second
	leastBackoff = 5 * time.Second
)

// A CoolDown is the rule of a client without limits of its own: after a 429, calls
// to where its limit_key was seen wait until Retry-After has passed, and then go
// in turn, since not all of them will fit into the limit.
type CoolDown struct {
	random func() float64 // in [0, 1), for jitter

	closed atomic.Bool // some gate holds calls back
	mu     sync.Mutex  // guards what follows
	gates  [maxClasses]*gate
	counts [maxClasses]int // of calls that wait
}

// NewCoolDown returns an engine with a cool-down, by clock, or by real time if it
// is nil.
func NewCoolDown(clock Clock, random func() float64) *Engine {
	c := &CoolDown{random: random}
	e := NewEngine(c, clock)
	e.rewound = c.forget
	return e
}

// gate is a limit that has refused something. Which classes it holds back is
// learned from where its name was seen: the interface shows neither the values of
// limit_key nor what each of them covers.
type gate struct {
	key      string
	closed   bool
	begun    time.Duration // when it closed
	asked    time.Duration // for how long, at that time
	end      time.Duration // when it opens, in the service's words
	reported time.Duration // the end that was last called news
	trace    string        // of the answer that closed it
	random   float64       // for jitter, the same for all callers
	since    time.Duration // when somebody last got through
	empty    int           // openings one after the other in which nobody did
	looks    [maxClasses]look
	ramp     *ramp // since it opened last; nil: it holds back nobody
}

// look says when a class goes through a closed gate, to see whether it has to wait.
type look struct {
	at, after time.Duration
}

// maxClasses bounds the classes: two for each endpoint.
const maxClasses = 32

// classIndex is the class of an attempt: its endpoint, and whether it also spends
// the BYOK set limit, so that this limit does not stop the rest.
func classIndex(endpoint *spec.Endpoint, setsBYOK bool) int {
	class := 2 * slices.Index(spec.Endpoints, endpoint)
	if setsBYOK {
		class++
	}
	return class
}

// Sort of Rule.
func (c *CoolDown) Sort(_ context.Context, w *Waiter) bool {
	if !c.closed.Load() {
		return false
	}
	w.Class = Class{ID: classIndex(w.Endpoint, w.SetsBYOK)}
	return true
}

// Quick of Rule.
func (c *CoolDown) Quick(time.Duration) bool { return true }

// Settle of Rule.
func (c *CoolDown) Settle(time.Duration) {}

// Withdraw of Rule.
func (c *CoolDown) Withdraw(class Class) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[class.ID] = 0
}

func (c *CoolDown) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gates = [maxClasses]*gate{}
	c.closed.Store(false)
}

// Ask of Rule. It grants one at a time, so that the classes behind a gate go in
// the order in which their calls came.
func (c *CoolDown) Ask(now time.Duration, d Demand) Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.sweep(now)
	class := d.Class.ID
	g, asks := c.gates[class], d.Waiting > 0
	if asks {
		c.counts[class] = d.Waiting
	}
	if g == nil {
		return Answer{Grants: []Grant{{At: now}}}
	}
	a := Answer{Key: g.key, TraceID: g.trace, Rough: true, Refused: g.since}
	if g.closed {
		opens, jittered := g.opens(c.behind(g), d)
		if l := &g.looks[class]; now < jittered {
			if asks && now >= l.at {
				*l = look{now + l.after, min(2*l.after, max(mostLook, l.after))}
				a.Grants = []Grant{{At: now, Watched: true, probe: g}}
			}
			a.Opens, a.Turn, a.Again = opens, jittered, min(jittered, l.at)
			return a
		}
		g.open(now)
	}
	if !asks {
		return Answer{}
	}
	alone := c.behind(g) <= 1
	if alone && g.ramp.over(now) {
		g.ramp = nil
	}
	if a.Again = g.ramp.due(now, alone); a.Again > now {
		a.Turn, a.Gap = a.Again, g.ramp.gap
		return a
	}
	a.Grants, a.Again = []Grant{{At: now, Watched: g.ramp != nil, ramp: g.ramp}}, now
	g.ramp.send(now)
	return a
}

// behind counts the calls that wait behind a gate.
func (c *CoolDown) behind(g *gate) (n int) {
	for class, other := range c.gates {
		if other == g {
			n += c.counts[class]
		}
	}
	return n
}

// opens is when the gate lets the next call go, with so many behind it: by what
// was asked for or as long as it backs off, and with jitter. Neither is to carry the
// first of them past its deadline or its patience.
func (g *gate) opens(waiting int, d Demand) (opens, jittered time.Duration) {
	room := max(0, d.Deadline-g.end) / 2
	switch empty := g.emptied(); empty {
	case 0:
		room = min(room, max(0, g.begun+d.MaxWait-g.end)/2)
		return g.end, g.end + min(g.jitter(), room)
	case 1:
		return g.end, g.end // who has waited in vain goes before other programs
	default:
		backoff := min(max(g.asked, LeastClosed)<<min(empty-1, 20), max(leastBackoff, MostBackoff/time.Duration(max(1, waiting))))
		backoff += time.Duration(g.random * float64(backoff) / 4) // out of step with others
		opens = max(g.end, min(g.begun+backoff, max(g.since, d.Since)+d.Patience, g.end+room))
		return opens, opens
	}
}

func (g *gate) jitter() time.Duration {
	return Jitter(g.asked, DefaultMinWait, retryafter.Longest, g.random)
}

// emptied counts the openings, the last one included, in which nobody passed.
func (g *gate) emptied() int {
	if g.ramp != nil && g.ramp.through() == 0 {
		return g.empty + 1
	}
	return 0
}

// open begins the turns behind the gate.
func (g *gate) open(now time.Duration) {
	g.empty = g.emptied()
	if g.ramp != nil && g.empty == 0 {
		g.since = max(g.since, g.begun) // some got through before, answered or not
	}
	g.closed, g.ramp = false, g.ramp.next(now)
}

// Done of Rule.
func (c *CoolDown) Done(now time.Duration, w *Waiter, o Outcome) (changed, news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.sweep(now)
	if w.Grant.ramp != nil {
		w.Grant.ramp.record(o)
		changed = true
	}
	passed := o.Sent && !o.Refused
	if g := w.Grant.probe; g != nil && passed {
		c.passedClosed(g, w.Class.ID, now)
		changed = true
	}
	if g := c.gates[w.Class.ID]; w.Grant.ramp != nil && g != nil && passed {
		g.since = now
	}
	if o.Refused {
		return true, c.close(now, classIndex(w.Endpoint, w.SetsBYOK), o)
	}
	return changed, false
}

// passedClosed handles a call that a closed gate let through as a trial and the
// service accepted. If the class was refused here itself, the limit has opened.
// Otherwise it only shares the name: detach it.
func (c *CoolDown) passedClosed(g *gate, class int, now time.Duration) {
	switch {
	case c.gates[class] != g:
	case g.looks[class].after < lookEvery:
		c.gates[class] = nil
	case g.closed:
		g.open(now)
	}
}

// close shuts the gate of a limit that has refused a class. A gate that is closed
// for longer already stays closed for longer.
func (c *CoolDown) close(now time.Duration, class int, o Outcome) (news bool) {
	asked := min(o.RetryAfter, retryafter.Longest)
	if asked <= 0 {
		asked = LeastClosed
	}
	end, g := now+asked, c.find(o.LimitKey, class)
	if old := c.gates[class]; old == nil || !old.closed || old.end <= end {
		c.gates[class] = g
	}
	switch {
	case !g.closed:
		if g.closed, news = true, true; g.ramp == nil {
			g.since, g.empty = now, 0
		}
		g.begun, g.end, g.asked = now, end, asked
		first := firstLook
		if asked <= firstLook {
			first = 2 * firstLook // it opens before, unless it backs off
		}
		for i := range g.looks {
			g.looks[i] = look{now + first, 2 * firstLook}
		}
		g.random = c.random()
	case end > g.end:
		g.end, g.asked, news = end, max(g.asked, asked), end-g.reported >= time.Second
	}
	g.looks[class] = look{now + lookEvery, lookEvery}
	if news {
		g.reported, g.trace = end, o.TraceID
	}
	c.closed.Store(true)
	return news
}

// find returns the gate of a name, or the class's own where there is none.
func (c *CoolDown) find(key string, class int) *gate {
	for i, g := range c.gates {
		if g != nil && g.key == key && (key != "" || i == class) {
			return g
		}
	}
	return &gate{key: key}
}

// sweep opens gates whose time has come while nobody waited, and ends the turns
// of those where a lone caller is left: it is not held up by the pace of many.
func (c *CoolDown) sweep(now time.Duration) {
	busy := false
	for _, g := range c.gates {
		if g == nil {
			continue
		}
		alone := c.behind(g) <= 1
		if g.closed && alone && now >= g.end+g.jitter()+MostBackoff {
			g.open(now)
		}
		if !g.closed && alone && g.ramp.over(now) {
			g.ramp = nil
		}
		busy = busy || g.closed || g.ramp != nil
	}
	c.closed.Store(busy)
}

// Jitter spreads out callers that were refused together: by half of the
// backoff, and by a tenth of a long Retry-After, within half of the room.
func Jitter(asked, backoff, room time.Duration, random float64) time.Duration {
	return min(time.Duration(random*(float64(asked)/10+float64(backoff)/2)), room/2)
}
