package cooldown

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
)

// gates are the limits that have refused something, at most maxKeys by their
// limit_key, and one for each class, for 429s that name none.
type gates []gate

// maxKeys bounds what is remembered of limit_keys, which the service chooses.
const maxKeys = 64

// gate is one limit. Which classes it covers is learned from where it was
// seen, and kept beyond the end of a cool-down: the interface shows neither the
// values of limit_key nor what each of them covers.
type gate struct {
	key      string
	trace    string        // of the answer that shut it
	covers   uint32        // a bit for each class
	isShut   bool          // until somebody has seen that the time has come
	begun    time.Time     // when the cool-down began
	end      time.Time     // when it ends, as told
	told     time.Duration // for how long, when that was news
	random   float64       // for the jitter, which is the same for all callers of this process
	due      int           // callers that were refused and come back with their last attempt
	reported time.Time     // the end that was last called news
	nextLook time.Time     // when a caller may look whether it is open already

	turns turns
}

// turns lets callers go in turn behind a gate that has opened, so that few
// meet the refusal that shows where the limit is, and none meets it again and
// again. Sure are as many as it let pass when it was open last, less those that
// it refused, and one at least. Those go at once, but first the last attempts of
// their calls. When they have passed, others try: one, and two more for each
// that passes.
type turns struct {
	opening int       // since when; 0: everybody goes
	sure    int       // to be let pass
	misled  bool      // by that: a window slides, or others use the key
	sent    int       // since the opening
	passed  int       // of them
	refused int       // of them
	due     int       // last attempts that were refused before, and have not come back
	lastOut int       // last attempts that are due or not answered
	at      time.Time // of the opening, or when the last one was sent
}

// patience is how long an answer is waited for before the next caller goes
// all the same: services refuse quickly, but replies can take minutes.
const patience = time.Second

// allow reports whether the next caller may go. A last attempt, which a refusal
// would end, only goes where that is sure, unless there are no others to try.
func (t *turns) allow(last, others bool, now time.Time) bool {
	switch {
	case t.opening == 0:
		return true
	case last && others:
		return t.sent < t.sure
	case now.Sub(t.at) >= patience:
		return true
	case t.lastOut > 0 && !last:
		return false
	case t.passed < t.sure || t.misled && last:
		return t.sent < t.sure
	}
	return t.sent <= t.sure+2*(t.passed-t.sure)
}

// next are the turns after those that a refusal has ended.
func (t *turns) next(opening, due int, now time.Time) turns {
	next := turns{opening: opening, sure: 1, due: due, lastOut: due, at: now, misled: t.misled || t.passed < t.sure && t.refused > 1}
	if !next.misled {
		next.sure = max(1, t.passed-t.refused)
	}
	return next
}

// otherClock is how far a clock must be behind the begin of a cool-down to be
// another one: that of a synctest bubble, where it says nothing. Goroutines
// that read the same clock and then take the lock in another order are closer.
const otherClock = time.Second

func (g *gate) jitter() time.Duration { return Jitter(g.told, leastBackoff, longestShut, g.random) }

// leastBackoff is the client's default wait between attempts.
const leastBackoff = 500 * time.Millisecond

// Jitter spreads out callers that were refused together: by half of the
// backoff, and by a tenth of a long Retry-After, within half of the room.
func Jitter(told, backoff, room time.Duration, random float64) time.Duration {
	return min(time.Duration(random*(float64(told)/10+float64(backoff)/2)), room/2)
}

func (g *gate) over(now time.Time) bool {
	return !g.isShut || !now.Before(g.end.Add(g.jitter())) || g.ofOtherClock(now)
}

func (g *gate) ofOtherClock(now time.Time) bool { return g.begun.Sub(now) > otherClock }

const (
	// LeastShut is for a 429 that does not tell how long.
	LeastShut = time.Second
	// longestShut is the longest that is believed.
	longestShut = retryafter.Longest
	// lookEvery is how often one caller goes through a gate that is shut for
	// longer than that: the plan may have been upgraded.
	lookEvery = time.Hour
)

// shut closes the gate of key, or of the class if key is empty, for told from
// now on, but never opens one earlier than it would have opened.
func (gs *gates) shut(key string, class int, now time.Time, told time.Duration, random float64) (g *gate, news bool) {
	if told <= 0 {
		told = LeastShut
	}
	told = min(told, longestShut)
	g = gs.find(key, class, now)
	g.covers |= 1 << class
	end := now.Add(told)
	switch {
	case g.over(now):
		g.isShut, g.begun, g.end, g.nextLook = true, now, end, now.Add(lookEvery)
		news = true
	case end.After(g.end):
		g.end = end
		news = end.Sub(g.reported) >= time.Second
	}
	if news {
		g.reported, g.told, g.random = end, told, random
	}
	return g, news
}

// find returns the gate of key; a new key takes the place of the one that
// ended first. Where all are closed, or key is empty, it is that of the class.
func (gs *gates) find(key string, class int, now time.Time) *gate {
	var free *gate
	keys := 0
	for i := range *gs {
		g := &(*gs)[i]
		switch {
		case g.key == key && (key != "" || g.covers == 1<<class):
			return g
		case g.key == "":
			continue
		case g.over(now) && (free == nil || g.end.Before(free.end)):
			free = g
		}
		keys++
	}
	switch {
	case key == "" || keys < maxKeys:
		*gs = append(*gs, gate{key: key})
		return &(*gs)[len(*gs)-1]
	case free == nil:
		return gs.find("", class, now)
	}
	*free = gate{key: key}
	return free
}

// covering calls do for the gates that cover the class.
func (gs gates) covering(class int, do func(*gate)) {
	for i := range gs {
		if gs[i].covers&(1<<class) != 0 {
			do(&gs[i])
		}
	}
}

// last is the gate of the class that is the last to open; nil if none is shut.
func (gs gates) last(class int, now time.Time) (last *gate) {
	gs.covering(class, func(g *gate) {
		if !g.over(now) && (last == nil || g.end.After(last.end)) {
			last = g
		}
	})
	return last
}

// open begins the turns of the gates whose time has come.
func (gs gates) open(now time.Time, openings *int) {
	for i := range gs {
		if g := &gs[i]; g.isShut && g.over(now) && !g.ofOtherClock(now) {
			g.open(openings, now)
		}
	}
}

func (g *gate) open(openings *int, now time.Time) {
	*openings++
	g.isShut = false
	g.turns = g.turns.next(*openings, g.due, now)
	g.due = 0
}

// allow reports whether all gates of the class let the next caller pass.
func (gs gates) allow(class int, last, others bool, now time.Time) bool {
	may := true
	gs.covering(class, func(g *gate) {
		may = may && g.over(now) && (g.ofOtherClock(now) || g.turns.allow(last, others, now))
	})
	return may
}

// sent counts a caller that is let pass in turn.
func (gs gates) sent(seat *Seat, now time.Time) {
	gs.inTurn(seat, func(t *turns) {
		t.sent++
		t.at = now
		switch {
		case seat.left > 0:
		case t.due > 0:
			t.due--
		default:
			t.lastOut++
		}
	})
}

// settle counts what became of it. What let it pass is open.
func (gs gates) settle(seat *Seat, outcome Outcome, openings *int, now time.Time) {
	gs.inTurn(seat, func(t *turns) {
		if seat.left == 0 {
			t.lastOut--
		}
		switch {
		case outcome.Refused:
			t.refused++
		case outcome.Sent:
			t.passed++
		default:
			t.sent--
		}
	})
	if !seat.looks || !outcome.Sent || outcome.Refused {
		return
	}
	gs.covering(seat.class, func(g *gate) {
		if g.isShut {
			g.open(openings, now)
		}
	})
}

// inTurn calls do for the gates that have let the caller pass in turn.
func (gs gates) inTurn(seat *Seat, do func(*turns)) {
	gs.covering(seat.class, func(g *gate) {
		if g.turns.opening != 0 && g.turns.opening <= seat.opening {
			do(&g.turns)
		}
	})
}

// rest ends the turns of the gates at which nobody waits and from which nobody
// is on the way, and counts the others and those that are shut.
func (gs gates) rest(anybody func(classes uint32) bool) (busy int32) {
	for i := range gs {
		g := &gs[i]
		switch {
		case g.isShut:
			busy++
		case g.turns.opening == 0:
		case g.turns.sent == g.turns.passed+g.turns.refused && !anybody(g.covers):
			g.turns = turns{}
		default:
			busy++
		}
	}
	return busy
}
