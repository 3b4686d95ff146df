package pacing

import (
	"cmp"
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

const (
	// guard is added to every window, because calls arrive at the service
	// closer together or farther apart than they were sent. It covers a median
	// latency of 40 ms with its tail, and costs its part of the window.
	guard = 400_000
	// slack is the part of the even distance that calls keep when they are
	// many: a little faster than the limit, so that a gap is made good.
	slack = 0.97
	// crowdBurst is how many even distances of credit a limit keeps while
	// somebody waits.
	crowdBurst = 1.5
	// longWindow is the length from which a window is not smoothed, and its
	// kind is learned instead.
	longWindow = 3600 * second
	// recall is how long a call is known by its id.
	recall = 60 * second
)

// kind is what has been learned of a long window.
type kind int

const (
	unknown kind = iota
	sliding      // each call comes free a window after it was made
	fixed        // all come free at once
	paced        // one comes free at a time, as in a token bucket
)

// entry is a call in the log of a limit.
type entry struct {
	at int64
	id uint64
}

// limit is one limit's part of the state.
type limit struct {
	tuning Tuning
	key    string
	max    int
	window int64

	log              []entry // calls within the window, oldest first
	credit, creditAt int64   // time saved up for the next calls
	cool             int64   // when the service's last refusal ends

	level     float64 // how many calls a window allows, as far as is known
	burst     int     // how many calls may go at once
	burstMost int     // what burst grows to
	corrected int64   // when level or burst were last lowered
	grown     int64   // when they were last raised, or lowered
	failed    float64 // the level at which the service refused
	failedAt  int64
	halvedAt  int64 // when burstMost was lowered

	kind    kind
	end     int64   // of the current window, where it is fixed
	pace    float64 // in even distances, where it is paced
	probe   uint64  // the call that finds out
	probeAt int64
}

func newLimit(l quota.Limit, tuning Tuning) limit {
	most, window := max(1, l.Max), max(1000, l.Window.Microseconds())
	burst := mostBurst(most, tuning)
	return limit{
		tuning: tuning, key: l.Key, max: most, window: window,
		level: float64(most), burst: burst, burstMost: burst, pace: 1,
	}
}

func mostBurst(most int, tuning Tuning) int {
	if tuning.Burst != 0 {
		return tuning.Burst
	}
	return min(most, max(10, most/6))
}

func (l *limit) start(now int64) {
	l.credit = int64(l.burst)*l.distance() - int64(l.tuning.Late*float64(l.distance()))
	l.creditAt, l.grown, l.corrected = now, now, now-2*l.window
}

func (l *limit) long() bool { return l.window >= longWindow }

// settle brings the limit to the time now.
func (l *limit) settle(now int64) {
	l.grow(now)
	begin := now - l.window - l.guard()
	if l.kind == fixed {
		for l.end+l.guard() <= now {
			l.end += l.window
		}
		begin = l.end - l.window
	}
	l.forgetBefore(begin)
}

func (l *limit) forgetBefore(begin int64) {
	old := 0
	for old < len(l.log) && l.log[old].at < begin {
		old++
	}
	l.log = l.log[old:]
}

func (l *limit) guard() int64 {
	if l.tuning.NoGuard {
		return 0
	}
	return guard
}

// allowed is how many calls a window may hold.
func (l *limit) allowed() int {
	if l.level >= float64(l.max) {
		return l.max // which a float64 may not hold
	}
	return max(1, int(l.level))
}

// earliest is when a call may go that lets ahead others go first. crowded is
// true where somebody was turned away.
func (l *limit) earliest(now int64, ahead int, crowded bool) int64 {
	at := now
	if !l.tuning.NoCoolDown {
		at = max(at, l.cool)
	}
	at = max(at, l.opens(now, ahead))
	if l.smooth() {
		missing := int64(ahead+1)*l.distance() - l.saved(now, crowded)
		at = max(at, now+missing)
	}
	return at
}

// opens is when the window has room for ahead calls and one more.
func (l *limit) opens(now int64, ahead int) int64 {
	n := l.allowed()
	rounds, rest := int64(ahead/n), ahead%n
	switch {
	case l.kind == paced:
		return now
	case l.probing(now) && len(l.log)+rest >= n:
		return now + second // what the probe finds out is worth the wait
	case l.kind == fixed && len(l.log)+rest >= n:
		return l.end + l.guard() + rounds*l.window
	case l.kind != fixed && len(l.log)+rest >= n:
		return l.log[len(l.log)+rest-n].at + (rounds+1)*(l.window+l.guard())
	case rounds > 0:
		return now + rounds*l.window
	}
	return now
}

// smooth reports whether calls keep a distance.
func (l *limit) smooth() bool {
	if l.tuning.NoSmoothing {
		return false
	}
	return !l.long() || l.kind == paced
}

// distance is the time between two calls when they are many.
func (l *limit) distance() int64 {
	if l.kind == paced {
		return int64(l.pace*float64(l.window)/float64(l.max)) + l.guard()
	}
	return int64(slack * float64(l.window) / l.level)
}

// gap is the least time between two calls that wait for this limit.
func (l *limit) gap() int64 {
	if l.smooth() {
		return l.distance()
	}
	return 0
}

// saved is the credit at the time now. While somebody waits it is kept small,
// so that a queue drains evenly; an idle limit may burst.
func (l *limit) saved(now int64, crowded bool) int64 {
	most := int64(l.burst) * l.distance()
	if crowded && l.kind != paced {
		most = min(most, int64(crowdBurst*float64(l.distance())))
	}
	return min(most, l.credit+now-l.creditAt)
}

func (l *limit) take(now int64, id uint64, crowded, probe bool) {
	l.credit, l.creditAt = l.saved(now, crowded)-l.distance(), now
	l.log = append(l.log, entry{now, id})
	if probe && l.mayLearn() && len(l.log) > l.allowed() {
		l.probe, l.probeAt = id, now
	}
}

// find returns the index of a call of late, or -1.
func (l *limit) find(now int64, id uint64) int {
	for i := len(l.log) - 1; i >= 0 && l.log[i].at >= now-recall; i-- {
		if l.log[i].id == id {
			return i
		}
	}
	return -1
}

func (l *limit) giveBack(now int64, id uint64) {
	i := l.find(now, id)
	if i < 0 {
		return
	}
	l.log = slices.Delete(l.log, i, i+1)
	l.credit += l.distance()
	if l.probe == id {
		l.probe = 0
	}
}

// replay adds calls of the past that are not in the log yet.
func (l *limit) replay(now int64, calls []entry) {
	if len(calls) == 0 {
		return
	}
	known := make(map[uint64]bool, len(l.log))
	for _, e := range l.log {
		known[e.id] = true
	}
	for _, e := range calls {
		if e.at >= now-l.window-l.guard() && !known[e.id] {
			known[e.id] = true
			l.log = append(l.log, e)
		}
	}
	slices.SortStableFunc(l.log, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
}
