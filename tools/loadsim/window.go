package loadsim

import (
	"cmp"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
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
func (m Model) window(l *pacer.Limit) window {
	switch m {
	case Fixed, FromUse:
		return &fixedWindow{Limit: l, fromUse: m == FromUse}
	case Log:
		return &slidingLog{Limit: l}
	case Counter:
		return &slidingCounter{Limit: l}
	case Burst:
		return &tokenBucket{Limit: l, burst: 10}
	case Refusing:
		return refusing{}
	case Leaky:
		return &tokenBucket{Limit: l, burst: 1}
	}
	return &tokenBucket{Limit: l}
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
	*pacer.Limit
	// fromUse begins a window at the first call after the last window ended;
	// otherwise windows are aligned with the clock.
	fromUse bool
	ends    time.Duration
	used    int
}

func (w *fixedWindow) wait(now time.Duration) time.Duration {
	if now >= w.ends || w.used < w.Max {
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
		return now + w.Window
	}
	return now - now%w.Window + w.Window
}

// slidingLog remembers each call for as long as the window.
type slidingLog struct {
	*pacer.Limit
	calls []time.Duration // oldest first
}

func (w *slidingLog) wait(now time.Duration) time.Duration {
	if len(w.calls) < w.Max {
		return 0
	}
	return max(0, w.calls[len(w.calls)-w.Max]+w.Window-now)
}

func (w *slidingLog) spend(now time.Duration) {
	w.calls = append(w.calls, now)
	w.calls = w.calls[max(0, len(w.calls)-w.Max):]
}

// tokenBucket is GCRA: a bucket of burst tokens that refills evenly.
type tokenBucket struct {
	*pacer.Limit
	burst int           // 0: max
	due   time.Duration // when the bucket will be full again
}

func (w *tokenBucket) every() time.Duration { return w.Window / time.Duration(w.Max) }

func (w *tokenBucket) wait(now time.Duration) time.Duration {
	return max(0, w.due-time.Duration(cmp.Or(w.burst, w.Max)-1)*w.every()-now)
}

func (w *tokenBucket) spend(now time.Duration) { w.due = max(w.due, now) + w.every() }

// slidingCounter weighs the count of the window before by how much of it still
// lies within the last length.
type slidingCounter struct {
	*pacer.Limit
	begins         time.Duration
	before, within int
}

func (w *slidingCounter) wait(now time.Duration) time.Duration {
	w.roll(now)
	if w.within < w.Max {
		return max(0, w.room(w.before, w.within)-(now-w.begins))
	}
	return w.Window - (now - w.begins) + w.room(w.within, 0)
}

// room is how far into a window one more call fits.
func (w *slidingCounter) room(before, within int) time.Duration {
	free := w.Max - within - 1 // without the call itself
	if before <= free {
		return 0
	}
	return time.Duration(float64(w.Window)*(1-float64(free)/float64(before))) + 1
}

func (w *slidingCounter) spend(now time.Duration) {
	w.roll(now)
	w.within++
}

func (w *slidingCounter) roll(now time.Duration) {
	switch begins := now - now%w.Window; begins - w.begins {
	case 0:
	case w.Window:
		w.begins, w.before, w.within = begins, w.within, 0
	default:
		w.begins, w.before, w.within = begins, 0, 0
	}
}

// refusing lets nobody through, and has everybody come back in a second.
type refusing struct{}

func (refusing) wait(time.Duration) time.Duration { return time.Second }
func (refusing) spend(time.Duration)              {}
