package loadsim

import (
	"cmp"
	"slices"
	"time"
)

// Model is a way of counting calls.
type Model string

// The usual ones. A leaky bucket lets one call go at a time, as nginx's limit_req
// does without a burst.
const (
	Fixed   Model = "fixed window"
	FromUse Model = "window from first use"
	Log     Model = "sliding log"
	Counter Model = "sliding counter"
	Bucket  Model = "token bucket"
	Burst   Model = "token bucket, burst of 10"
	Leaky   Model = "leaky bucket"

	Refusing Model = "refuses everything"
)

// Models are those that allow a window's calls at once; Strict ones do not.
var (
	Models = []Model{Fixed, FromUse, Log, Bucket, Counter}
	Strict = []Model{Burst, Leaky}
	All    = slices.Concat(Models, Strict)
)

// window makes an empty window of the model.
func (m Model) window(s *size) window {
	switch m {
	case Fixed, FromUse:
		return &fixedWindow{size: s, fromUse: m == FromUse}
	case Log:
		return &slidingLog{size: s}
	case Counter:
		return &slidingCounter{size: s}
	case Burst:
		return &tokenBucket{size: s, burst: 10}
	case Refusing:
		return refusing{}
	case Leaky:
		return &tokenBucket{size: s, burst: 1}
	}
	return &tokenBucket{size: s}
}

// size is how many calls a window allows.
type size struct {
	max    int
	length time.Duration
}

// A window is the rule by which a service counts one limit. Times are since
// midnight, UTC, of the first day.
type window interface {
	// wait is how long until a call would be accepted; 0 if now.
	wait(now time.Duration) time.Duration
	// spend counts a call, whether or not there was room for it.
	spend(now time.Duration)
}

// fixedWindow counts in windows that follow each other.
type fixedWindow struct {
	*size
	// fromUse begins a window at the first call after the last window ended;
	// otherwise windows are aligned with the clock.
	fromUse bool
	ends    time.Duration
	used    int
}

func (w *fixedWindow) wait(now time.Duration) time.Duration {
	if now >= w.ends || w.used < w.max {
		return 0
	}
	return w.ends - now
}

func (w *fixedWindow) spend(now time.Duration) {
	if now >= w.ends {
		w.used, w.ends = 0, w.end(now)
	}
	w.used++
}

func (w *fixedWindow) end(now time.Duration) time.Duration {
	if w.fromUse {
		return now + w.length
	}
	return now - now%w.length + w.length
}

// slidingLog remembers each call for as long as the window.
type slidingLog struct {
	*size
	calls []time.Duration // oldest first
}

func (w *slidingLog) wait(now time.Duration) time.Duration {
	if len(w.calls) < w.max {
		return 0
	}
	return max(0, w.calls[len(w.calls)-w.max]+w.length-now)
}

func (w *slidingLog) spend(now time.Duration) {
	w.calls = append(w.calls, now)
	w.calls = w.calls[max(0, len(w.calls)-w.max):]
}

// tokenBucket is GCRA: a bucket of burst tokens that refills evenly.
type tokenBucket struct {
	*size
	burst int           // 0: max
	due   time.Duration // when the bucket will be full again
}

func (w *tokenBucket) every() time.Duration { return w.length / time.Duration(w.max) }

func (w *tokenBucket) wait(now time.Duration) time.Duration {
	return max(0, w.due-time.Duration(cmp.Or(w.burst, w.max)-1)*w.every()-now)
}

func (w *tokenBucket) spend(now time.Duration) { w.due = max(w.due, now) + w.every() }

// slidingCounter weighs the count of the window before by how much of it still
// lies within the last length.
type slidingCounter struct {
	*size
	begins         time.Duration
	before, within int
}

func (w *slidingCounter) wait(now time.Duration) time.Duration {
	w.roll(now)
	if w.within < w.max {
		return max(0, w.room(w.before, w.within)-(now-w.begins))
	}
	return w.length - (now - w.begins) + w.room(w.within, 0)
}

// room is how far into a window one more call fits.
func (w *slidingCounter) room(before, within int) time.Duration {
	free := w.max - within - 1 // without the call itself
	if before <= free {
		return 0
	}
	return time.Duration(float64(w.length)*(1-float64(free)/float64(before))) + 1
}

func (w *slidingCounter) spend(now time.Duration) {
	w.roll(now)
	w.within++
}

func (w *slidingCounter) roll(now time.Duration) {
	switch begins := now - now%w.length; begins - w.begins {
	case 0:
	case w.length:
		w.begins, w.before, w.within = begins, w.within, 0
	default:
		w.begins, w.before, w.within = begins, 0, 0
	}
}

// refusing lets nobody through, and has everybody come back in a second.
type refusing struct{}

func (refusing) wait(time.Duration) time.Duration { return time.Second }
func (refusing) spend(time.Duration)              {}
