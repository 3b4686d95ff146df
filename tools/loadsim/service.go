package loadsim

import (
	"cmp"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// service answers the calls of one API key. Times are since midnight of the
// first day.
type service struct {
	mu     sync.Mutex
	limits []limit
}

type limit struct {
	*pacer.Limit
	Rule
}

// service returns a service with these limits, which are unused.
func (m Model) service(limits []pacer.Limit) *service {
	s := &service{}
	for _, l := range limits {
		s.limits = append(s.limits, limit{&l, m(&l)})
	}
	return s
}

// call counts a call against all its limits. If a limit is used up, call counts nothing,
// and returns the wait until that limit has room.
func (s *service) call(endpoint *spec.Endpoint, now time.Duration) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.limits {
		if l.counts(endpoint) {
			wait = max(wait, l.Wait(now))
		}
	}
	for _, l := range s.limits {
		if wait == 0 && l.counts(endpoint) {
			l.Spend(now)
		}
	}
	return wait
}

func (l limit) counts(e *spec.Endpoint) bool {
	return l.Counts == "" || e.Counts(spec.Counted(l.Counts), false)
}

// allowed returns the quota that pacers could use between from and to: the number of messages
// that an unused service accepts if a caller without latency sends one whenever there is room,
// from begins on.
func (s *service) allowed(begins, from, to time.Duration) (accepted int) {
	for now := begins; now < to; {
		wait := s.call(spec.SendMessage, now)
		if wait == 0 && now >= from {
			accepted++
		}
		now += wait
	}
	return accepted
}

// A Model is a way of counting calls. It makes the Rule of a limit.
type Model func(*pacer.Limit) Rule

// A Rule counts the calls of one limit. Times are since midnight, UTC, of the first day.
type Rule interface {
	// Wait returns the time until the limit has room for a call; 0: it has room now.
	Wait(now time.Duration) time.Duration
	// Spend counts a call, even if there was no room for it.
	Spend(now time.Duration)
}

// Models are the models that allow all calls of a window at once.
var Models = []Model{Aligned, Fixed, Sliding, Bucket, Weighted}

// Strict are the models that allow only some of a window's calls at once.
var Strict = []Model{Burst, Leaky}

// Aligned windows follow the clock.
func Aligned(l *pacer.Limit) Rule { return &windows{Limit: l} }

// Fixed begins a window at the first call after the end of the last window.
func Fixed(l *pacer.Limit) Rule { return &windows{Limit: l, fixed: true} }

// Weighted is a sliding counter.
func Weighted(l *pacer.Limit) Rule { return &windows{Limit: l, weighted: true} }

// Sliding is a sliding log.
func Sliding(l *pacer.Limit) Rule { return &slidingLog{Limit: l} }

// Bucket is a token bucket that holds the calls of a whole window.
func Bucket(l *pacer.Limit) Rule { return &tokenBucket{Limit: l} }

// Burst is a token bucket that holds 10 calls.
func Burst(l *pacer.Limit) Rule { return &tokenBucket{Limit: l, burst: 10} }

// Leaky lets one call go at a time, as nginx's limit_req does without a burst.
func Leaky(l *pacer.Limit) Rule { return &tokenBucket{Limit: l, burst: 1} }

// Refusing refuses every call, with a Retry-After of a second.
func Refusing(*pacer.Limit) Rule { return Fixed(&pacer.Limit{Max: 0, Window: time.Second}) }

// windows follow each other, and count the calls in them.
type windows struct {
	*pacer.Limit
	fixed bool
	// weighted also counts the previous window, weighted by the share of it that lies within
	// the last Window.
	weighted       bool
	begins         time.Duration
	before, within int
}

func (w *windows) Wait(now time.Duration) time.Duration {
	w.roll(now)
	if w.within < w.Max {
		return max(0, w.room(w.before, w.within)-(now-w.begins))
	}
	return w.Window - (now - w.begins) + w.room(w.within, 0)
}

// room returns the time from the beginning of a window until there is room for one more
// call.
func (w *windows) room(before, within int) time.Duration {
	free := w.Max - within - 1 // without the call itself
	if !w.weighted || before <= free {
		return 0
	}
	return time.Duration(float64(w.Window)*(1-float64(free)/float64(before))) + 1
}

func (w *windows) Spend(now time.Duration) {
	w.roll(now)
	w.within++
}

// roll moves on to the window of now.
func (w *windows) roll(now time.Duration) {
	if w.fixed && (w.within == 0 || now >= w.begins+w.Window) {
		w.begins, w.within = now, 0
	}
	for now >= w.begins+w.Window {
		w.begins += w.Window
		w.before, w.within = w.within, 0
	}
}

// slidingLog remembers each call for the length of the window.
type slidingLog struct {
	*pacer.Limit
	calls []time.Duration // oldest first
}

func (l *slidingLog) Wait(now time.Duration) time.Duration {
	if len(l.calls) < l.Max {
		return 0
	}
	return max(0, l.calls[len(l.calls)-l.Max]+l.Window-now)
}

func (l *slidingLog) Spend(now time.Duration) {
	l.calls = append(l.calls, now)
	l.calls = l.calls[max(0, len(l.calls)-l.Max):]
}

// tokenBucket is GCRA: a bucket of burst tokens that refills evenly.
type tokenBucket struct {
	*pacer.Limit
	burst int           // 0: max
	due   time.Duration // when the bucket will be full again
}

func (b *tokenBucket) every() time.Duration { return b.Window / time.Duration(b.Max) }

func (b *tokenBucket) Wait(now time.Duration) time.Duration {
	return max(0, b.due-time.Duration(cmp.Or(b.burst, b.Max)-1)*b.every()-now)
}

func (b *tokenBucket) Spend(now time.Duration) { b.due = max(b.due, now) + b.every() }
