package cooldown

import (
	"iter"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
)

// gates are the limits that have refused something, at most maxKeys by their
// limit_key, and one for each class, for 429s that name none.
type gates []*gate

// maxKeys bounds what is remembered of limit_keys, which the service chooses.
const maxKeys = 64

// gate is one limit. Which classes it covers is learned from where it was
// seen, and kept beyond the end of a cool-down: the interface shows neither the
// values of limit_key nor what each of them covers.
type gate struct {
	key      string
	own      bool          // of one class, whatever others share the key
	trace    string        // of the answer that shut it
	covers   uint32        // a bit for each class
	isShut   bool          // until somebody has seen that the time has come
	begun    time.Time     // when the cool-down began
	end      time.Time     // when it ends, as asked
	asked    time.Duration // for how long, when that was news
	random   float64       // for the jitter, which is the same for all callers of this process
	reported time.Time     // the end that was last called news
	nextLook time.Time     // when a caller may look whether it is open already

	turns *turns // since it has opened; nil: everybody goes
}

const (
	// LeastShut is for a 429 that does not tell how long.
	LeastShut = time.Second
	// longestShut is the longest that is believed.
	longestShut = retryafter.Longest
	// longestShared is the longest wait that holds for all classes of a key. A
	// service may give one name to several limits: a warm-up that is refused for
	// an hour must not hold up messages. A limit of a day then refuses one call of
	// each class.
	longestShared = time.Minute
	// lookEvery is how often one caller goes through a gate that is shut for
	// longer than that: the plan may have been upgraded.
	lookEvery = time.Hour
	// A clock that is further behind the begin of a cool-down than otherClock
	// belongs to a synctest bubble, where the cool-down does not count. Goroutines
	// that read the same clock and take the lock in another order are closer.
	otherClock = time.Second
)

func (g *gate) over(now time.Time) bool {
	return !g.isShut || !now.Before(g.end.Add(g.jitter())) || g.ofOtherClock(now)
}

func (g *gate) ofOtherClock(now time.Time) bool { return g.begun.Sub(now) > otherClock }

// open begins the turns behind the gate.
func (g *gate) open(now time.Time) {
	g.isShut = false
	g.turns = g.turns.next(now, now.Sub(g.begun))
}

// shut closes a gate for the wait that a 429 asked for: the gate of its key, or the
// gate of the class where the key is empty or the wait is long. A gate that is shut
// for longer already stays shut for longer.
func (gs *gates) shut(key string, class int, now time.Time, asked time.Duration, random float64) (g *gate, news bool) {
	if asked <= 0 {
		asked = LeastShut
	}
	asked = min(asked, longestShut)
	g = gs.find(key, class, key == "" || asked > longestShared, now)
	g.covers |= 1 << class
	end := now.Add(asked)
	switch {
	case g.over(now):
		g.isShut, g.begun, g.end, g.nextLook = true, now, end, now.Add(lookEvery)
		news = true
	case end.After(g.end):
		g.end = end
		news = end.Sub(g.reported) >= time.Second
	}
	if news {
		g.reported, g.asked, g.random = end, asked, random
	}
	return g, news
}

// find returns the gate of key, or the class's own. Where there are too many
// gates, it forgets all that are open. Where all are shut, it returns the gate of
// the class without a key.
func (gs *gates) find(key string, class int, own bool, now time.Time) *gate {
	for _, g := range *gs {
		if g.key == key && g.own == own && (!own || g.covers == 1<<class) {
			return g
		}
	}
	if key != "" && len(*gs) >= maxKeys {
		*gs = slices.DeleteFunc(*gs, func(g *gate) bool { return g.over(now) })
		if len(*gs) >= maxKeys {
			return gs.find("", class, true, now)
		}
	}
	g := &gate{key: key, own: own}
	*gs = append(*gs, g)
	return g
}

// covering are the gates that cover the class.
func (gs gates) covering(class int) iter.Seq[*gate] {
	return func(yield func(*gate) bool) {
		for _, g := range gs {
			if g.covers&(1<<class) != 0 && !yield(g) {
				return
			}
		}
	}
}

// last is the gate of the class that is the last to open; nil if none is shut.
func (gs gates) last(class int, now time.Time) (last *gate) {
	for g := range gs.covering(class) {
		if !g.over(now) && (last == nil || g.end.After(last.end)) {
			last = g
		}
	}
	return last
}

// open begins the turns of the gates whose time has come.
func (gs gates) open(now time.Time) {
	for _, g := range gs {
		if g.isShut && g.over(now) && !g.ofOtherClock(now) {
			g.open(now)
		}
	}
}

// allow reports whether all gates of the class let the next caller pass.
func (gs gates) allow(class int, last bool, now time.Time) bool {
	for g := range gs.covering(class) {
		if !g.over(now) || !g.ofOtherClock(now) && !g.turns.allow(last, now) {
			return false
		}
	}
	return true
}

// wait is how long the head of the class's line waits until it looks again.
func (gs gates) wait(class int, now time.Time) time.Duration {
	pause := patience
	for g := range gs.covering(class) {
		if g.turns != nil {
			pause = min(pause, g.turns.wait(now))
		}
	}
	return pause
}

// send counts a caller that is let pass in turn.
func (gs gates) send(seat *Seat, now time.Time) {
	for g := range gs.covering(seat.class) {
		if g.turns != nil {
			g.turns.send(seat.left, now)
			seat.turns = append(seat.turns, g.turns)
		}
	}
}

// found opens the gates of a class: a caller went through to look, and the limit
// was open.
func (gs gates) found(class int, now time.Time) {
	for g := range gs.covering(class) {
		if g.isShut {
			g.open(now)
		}
	}
}

// busy counts the gates that are shut or let callers go in turn. It ends the
// turns of a gate where one waits at most and all have been answered: a lone
// caller is not held up by the pace of many.
func (gs gates) busy(now time.Time, several func(classes uint32) bool) (busy int32) {
	for _, g := range gs {
		if !g.isShut && g.turns != nil && g.turns.over(now) && !several(g.covers) {
			g.turns = nil
		}
		if g.isShut || g.turns != nil {
			busy++
		}
	}
	return busy
}
