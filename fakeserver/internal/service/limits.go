package service

import (
	"cmp"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// How a limit counts calls. Interface 8.1 shows maxima and lengths only.
const (
	WindowsFixed    = "fixed"        // a window starts with its first counted call
	WindowsSliding  = "sliding"      // the calls of the last length count
	WindowsAligned  = "aligned"      // windows start with the clock's minute, hour or day, in UTC
	WindowsWeighted = "weighted"     // aligned; the previous window counts in proportion to its overlap with the last length
	WindowsBucket   = "token bucket" // each length/max adds a call, up to as many as the limit has
)

// IsBucket reports whether a kind is a token bucket: WindowsBucket, or one with a
// size, such as "token bucket of 10".
func IsBucket(kind string) bool { return kind == WindowsBucket || burstOf(kind) > 0 }

// burstOf is how many calls a bucket saves up; 0 means as many as the limit has.
func burstOf(kind string) int {
	n, isBucket := strings.CutPrefix(kind, WindowsBucket+" of ")
	if !isBucket {
		return 0
	}
	burst, _ := strconv.Atoi(n)
	return max(0, burst)
}

// Window counts calls against one limit. Its answers depend only on the calls
// that it counted and on its arguments.
type Window struct {
	Kind  string    `json:"kind,omitempty"`
	Calls []Tally   `json:"calls,omitempty"`     // oldest first; of a window that starts at one time, all have that time
	Used  int       `json:"used,omitempty"`      // the sum of Calls
	Full  time.Time `json:"full,omitzero"`       // when a bucket is full again
	Shut  time.Time `json:"shut_until,omitzero"` // until when Exhaust keeps the limit closed
}

// Tally is how many calls were counted at a time.
type Tally struct {
	At    time.Time `json:"at"`
	Calls int       `json:"calls"`
}

// rate is what a window allows.
type rate struct {
	kind   string
	length time.Duration
	max    int
	bucket bool
	burst  int // of a bucket; 0 means max
}

// perCall is the time in which a bucket gains one call.
func (r rate) perCall() time.Duration { return r.length / time.Duration(r.max) }

// saved is the time that a full bucket is ahead.
func (r rate) saved() time.Duration {
	return time.Duration(min(cmp.Or(r.burst, r.max), r.max)) * r.perCall()
}

// start is when the window begins that a call at now counts in.
func (w *Window) start(r rate, now time.Time) time.Time {
	switch {
	case r.kind == WindowsAligned || r.kind == WindowsWeighted:
		return now.Truncate(r.length)
	case r.kind == WindowsFixed && len(w.Calls) > 0:
		return w.Calls[0].At
	}
	return now
}

// drop forgets the calls that count no more.
func (w *Window) drop(r rate, now time.Time) {
	counts := r.length
	if r.kind == WindowsWeighted {
		counts *= 2
	}
	for len(w.Calls) > 0 && !w.Calls[0].At.Add(counts).After(now) {
		w.Used -= w.Calls[0].Calls
		w.Calls = w.Calls[1:]
	}
}

// take counts a call.
func (w *Window) take(r rate, now time.Time) {
	if w.Kind != r.kind {
		*w = Window{Kind: r.kind, Shut: w.Shut} // as it was read from the file of another service
	}
	if r.bucket {
		if w.Full.Before(now) {
			w.Full = now
		}
		w.Full = w.Full.Add(r.perCall())
		return
	}
	w.drop(r, now)
	w.Used++
	at, last := w.start(r, now), len(w.Calls)-1
	// Calls may be counted in another order than they read the clock.
	if last >= 0 && !at.After(w.Calls[last].At) {
		w.Calls[last].Calls++
		return
	}
	w.Calls = append(w.Calls, Tally{at, 1})
}

// opens returns when the next call passes; a time not after now means that it
// passes now.
func (w *Window) opens(r rate, now time.Time) time.Time {
	if w.Kind != r.kind {
		return now
	}
	w.drop(r, now)
	opens, left := now, w.Used
	switch {
	case r.bucket:
		return w.Full.Add(r.perCall() - r.saved())
	case r.kind == WindowsWeighted:
		return w.weightedOpens(r, now)
	}
	for _, t := range w.Calls {
		if left < r.max {
			break
		}
		opens, left = t.At.Add(r.length), left-t.Calls
	}
	return opens
}

// weightedOpens finds the first time at which the calls of the present window,
// and the part of those before that still counts, leave room for one call.
func (w *Window) weightedOpens(r rate, now time.Time) time.Time {
	start := now.Truncate(r.length)
	var before, present int
	for _, t := range w.Calls {
		if t.At.Before(start) {
			before += t.Calls
		} else {
			present += t.Calls
		}
	}
	if present >= r.max { // not before the next window, in which these are the calls before
		start, before, present = start.Add(r.length), present, 0
	}
	room := r.max - 1 - present
	if before <= room {
		return start
	}
	share := 1 - float64(room)/float64(before) // of the window, after which little enough counts
	return start.Add(time.Duration(math.Ceil(share * float64(r.length))))
}

// used is how many calls count now.
func (w *Window) used(r rate, now time.Time) int {
	switch {
	case w.Kind != r.kind:
		return 0
	case r.bucket:
		return int(max(0, w.Full.Sub(now)+r.perCall()-1) / r.perCall())
	}
	w.drop(r, now)
	return w.Used
}

// exhaust closes the limit until the open window ends, or for a whole window from
// now.
func (w *Window) exhaust(r rate, now time.Time) {
	w.drop(r, now)
	switch {
	case w.Shut.After(now):
	case r.kind == WindowsSliding && len(w.Calls) > 0:
		w.Shut = w.Calls[0].At.Add(r.length)
	default:
		w.Shut = w.start(r, now).Add(r.length)
	}
}

// Counts are the windows of one API key, or of one client address. A key counts
// nothing in the windows of limits per address, and an address nothing in those
// per key.
type Counts struct {
	Windows [spec.LimitCount]Window `json:"windows"` // in the order of spec.Limits
	Last    time.Time               `json:"last"`    // the time of the newest counted call
}

func (c *Counts) clone() *Counts {
	copied := *c
	for i := range copied.Windows {
		calls := &copied.Windows[i].Calls
		*calls = append([]Tally(nil), *calls...)
	}
	return &copied
}

// isAhead reports whether now comes from another clock: a bubble starts in the
// year 2000. A day is the longest window, and a test does not set its clock back
// by more.
func (c *Counts) isAhead(now time.Time) bool { return c.Last.After(now.Add(spec.Day)) }

// takeRequest counts a call without a key against its address.
func (s *State) takeRequest(ip netip.Addr, now time.Time) {
	nobody, counts := &Key{Counts: new(Counts)}, s.countsOf(ip, now)
	for i, l := range spec.Limits {
		if l.PerIP && l.Counts == spec.Requests {
			s.limit(i, nobody, counts).take(now)
		}
	}
}

// limit is a limit for one key: what it allows, and who counts the calls.
type limit struct {
	rate
	counts *Counts // of the key or the address
	window *Window // of counts
	shut   time.Time
}

// limit finds limit i for a key. ip is asked only for a limit per address.
func (s *State) limit(i int, k *Key, ip *Counts) limit {
	plan, _ := spec.PlanNamed(k.Plan)
	l := limit{rate: s.rate, counts: k.Counts, shut: k.Counts.Windows[i].Shut}
	l.length, l.max = spec.Limits[i].Window, cmp.Or(s.limits.Maxima[i], plan.Max(i))
	if spec.Limits[i].PerIP {
		l.counts = ip
	}
	l.window = &l.counts.Windows[i]
	return l
}

func (l limit) take(now time.Time) {
	l.window.take(l.rate, now)
	if now.After(l.counts.Last) {
		l.counts.Last = now
	}
}

func (l limit) opens(now time.Time) time.Time {
	if opens := l.window.opens(l.rate, now); opens.After(l.shut) {
		return opens
	}
	return l.shut
}

// spending is a set of limits, in the order of spec.Limits.
type spending [spec.LimitCount]bool

// costs says which limits may refuse a call, and which it spends. Without a flaw
// these are the limits on what the endpoint counts as in its row of spec, and on
// BYOK sets with llm.api_key (interface 4.6, rule 2). By the fake's own decisions
// a call with a flaw spends the limits on requests alone.
func (c *call) costs(flaw *Refusal) (asks, spends spending) {
	by, e := c.state.by, c.req.Endpoint
	_, setsBYOK := c.req.Fields[spec.LLMAPIKey]
	succeeds, limited := flaw == nil, e.Counts(spec.Requests, false)
	badBody := flaw != nil && flaw.As == BadRequest
	for i, l := range spec.Limits {
		switch {
		case l.Counts == spec.Requests && !limited:
			spends[i] = by.RequestsSpend[statusCalls]
		case l.Counts == spec.Requests:
			asks[i] = succeeds || by.limitComesBefore(flaw)
			spends[i] = succeeds || by.spendsDespite(flaw)
		case e.Counts(l.Counts, setsBYOK):
			asks[i] = succeeds || badBody && !by.BodyBeforeOperation
			spends[i] = succeeds || badBody && by.OperationsSpend
		}
	}
	return asks, spends
}

// spend takes a call's cost from its limits, or returns the 429 that refuses it
// and takes nothing. Without a 429 it returns the flaw. It looks at the limits of
// the operation even when one on requests refuses: after the wait that the 429
// names, the same call must pass.
func (c *call) spend(flaw *Refusal) (refused *Refusal, twoClocks bool) {
	asks, spends := c.costs(flaw)
	if asks == (spending{}) && spends == (spending{}) {
		return flaw, false
	}
	if twoClocks = c.key.Counts.isAhead(c.now); twoClocks {
		// A wait from the year 2000 of a bubble until today would be 26 years.
		c.key.Counts = new(Counts)
	}
	ip := c.state.countsOf(c.req.IP, c.now)
	if limited := c.limited(asks, ip); limited != nil {
		return limited, twoClocks
	}
	for i, spent := range spends {
		if spent {
			c.state.limit(i, c.key, ip).take(c.now)
		}
	}
	return flaw, twoClocks
}

// limited returns the 429 for the exhausted limit that opens last, and nil if
// none is exhausted. Of limits that open at the same time it names the first in
// the order of interface 8.1.
func (c *call) limited(asks spending, ip *Counts) *Refusal {
	named, latest := -1, c.now
	for i, asked := range asks {
		if !asked {
			continue
		}
		if opens := c.state.limit(i, c.key, ip).opens(c.now); opens.After(latest) && (named < 0 || c.state.by.NamesTheLastToOpen) {
			named, latest = i, opens
		}
	}
	if named < 0 {
		return nil
	}
	r := Refuse(RateLimited)
	r.Key, r.Limit, r.Wait, r.State = c.key.Label, spec.Limits[named].Key, waitSeconds(c.now, latest), c.state.limitState(named, c.key, ip, c.now)
	if spec.Limits[named].PerIP {
		r.IP = c.req.IP
	}
	if !c.state.by.ExactRetryAfter {
		r.Wait = max(1, r.Wait-1)
	}
	return r
}

// waitSeconds is how long until opens, for Retry-After: whole seconds, rounded
// up so that the wait is enough.
func waitSeconds(now, opens time.Time) int {
	return int((opens.Sub(now) + time.Second - 1) / time.Second)
}

// Exhaust closes limit i for a key.
func (s *State) Exhaust(k *Key, i int, now time.Time) {
	l := s.limit(i, k, new(Counts))
	k.Counts.Windows[i].exhaust(l.rate, now)
	if now.After(k.Counts.Last) {
		k.Counts.Last = now
	}
}

// LimitState is one limit at one moment.
type LimitState struct {
	Limit     spec.LimitKey
	Max, Used int
	Opens     time.Time // when the next call passes; zero where one passes now
}

// LimitStates describes the limits of a key, and those of an address if ip is
// valid. Looking spends nothing.
func (s *State) LimitStates(k *Key, ip netip.Addr, now time.Time) (states []LimitState) {
	counts := s.ips[ip]
	if counts == nil {
		counts = new(Counts) // looked at, and not kept
	}
	for i, l := range spec.Limits {
		if !l.PerIP || ip.IsValid() {
			states = append(states, s.limitState(i, k, counts, now))
		}
	}
	return states
}

func (s *State) limitState(i int, k *Key, ip *Counts, now time.Time) LimitState {
	l := s.limit(i, k, ip)
	state := LimitState{Limit: spec.Limits[i].Key, Max: l.max, Used: l.window.used(l.rate, now)}
	if opens := l.opens(now); opens.After(now) {
		state.Opens = opens
	}
	return state
}
