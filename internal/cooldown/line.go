package cooldown

import (
	"container/list"
	"context"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// line is where the callers that a cool-down holds up wait: a queue for each
// class, and one for callers of the class that have no attempt after this one.
type line struct {
	came    int
	waiting [2]int
	queues  [2][maxClasses]list.List // of *caller; the second for last attempts
}

// caller is one of them.
type caller struct {
	ctx     context.Context
	seat    *Seat
	maxWait time.Duration
	hurried bool      // its deadline is nearer than the end of the jitter
	slept   time.Time // it has slept until then, even if the clock stands still
	key     string    // of the limit that held it up
	came    int
	in      *list.Element // nil: it is in no queue
	passed  bool
	alarm   context.Context // of its pause: ctx, and while it waits for its turn, one that wake ends
	wake    context.CancelFunc
}

// maxClasses bounds the classes of attempts that are told apart: two for each
// endpoint.
const maxClasses = 32

// classOf is the class of an attempt. Limits cover classes: each endpoint has
// one, and another for calls that also spend the BYOK set limit, so that this
// limit does not stop the rest.
func classOf(endpoint *spec.Endpoint, setsBYOK bool) int {
	class := 2 * slices.Index(spec.Endpoints, endpoint)
	if setsBYOK {
		class++
	}
	return class
}

// Longest is how long one wait may be, by the policy and the deadline.
func Longest(ctx context.Context, longest time.Duration) time.Duration {
	if deadline, has := ctx.Deadline(); has {
		longest = min(longest, time.Until(deadline)-1) // until the deadline would be too long
	}
	return longest
}

// pauseAt is how long the caller sleeps before a gate that is shut.
func (w *caller) pauseAt(shut *gate, now time.Time) (time.Duration, error) {
	w.key = shut.key
	left, longest := shut.end.Sub(now), Longest(w.ctx, w.maxWait)
	if left > longest {
		return 0, &Refusal{LimitKey: shut.key, TraceID: shut.trace, RetryAfter: left}
	}
	later := min(shut.jitter(), (longest-left)/2)
	w.hurried = later < shut.jitter()
	return min(left+later, shut.nextLook.Sub(now)), nil
}

func (w *caller) lookAgain() {
	if w.wake != nil {
		w.wake()
	}
}

func (w *caller) lastAttempt() int {
	if w.seat.left <= 0 {
		return 1
	}
	return 0
}

func (l *line) queue(w *caller) *list.List { return &l.queues[w.lastAttempt()][w.seat.class] }

func head(queue *list.List) *caller {
	if queue.Len() == 0 {
		return nil
	}
	return queue.Front().Value.(*caller)
}

func (l *line) join(w *caller) {
	if w.in == nil {
		l.came++
		w.came = l.came
		w.in = l.queue(w).PushBack(w)
		l.waiting[w.lastAttempt()]++
	}
}

// await prepares the caller to be woken for its turn. The pause after which it
// looks by itself grows with its distance from the head of its queue: only the
// head must see soon that an answer takes long.
func (l *line) await(w *caller, wait time.Duration) (pause time.Duration) {
	w.alarm, w.wake = context.WithCancel(w.ctx)
	return wait + patience*time.Duration(w.came-head(l.queue(w)).came)
}

// leave takes a caller out. Who comes to the head looks again: only the head
// is sure to do so by itself before long.
func (l *line) leave(w *caller) {
	if w.in == nil {
		return
	}
	queue := l.queue(w)
	wasHead := head(queue) == w
	queue.Remove(w.in)
	w.in = nil
	l.waiting[w.lastAttempt()]--
	if next := head(queue); wasHead && next != nil {
		next.lookAgain()
	}
}

// first is the caller that goes next, nil if none may: the first last attempt
// that may go, else the first caller that may.
func (l *line) first(may func(class int, last bool) bool) (first *caller) {
	for _, last := range []int{1, 0} {
		if l.waiting[last] == 0 {
			continue
		}
		for class := range maxClasses {
			w := head(&l.queues[last][class])
			if w != nil && (first == nil || w.came < first.came) && may(class, last == 1) {
				first = w
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}

// several reports whether more than one waits in the classes.
func (l *line) several(classes uint32) bool {
	waiting := 0
	for class := range maxClasses {
		if classes&(1<<class) != 0 {
			waiting += l.queues[0][class].Len() + l.queues[1][class].Len()
		}
	}
	return waiting > 1
}

// wake makes all who wait for their turn look again.
func (l *line) wake() {
	for i := range l.queues {
		for class := range l.queues[i] {
			for e := l.queues[i][class].Front(); e != nil; e = e.Next() {
				e.Value.(*caller).lookAgain()
			}
		}
	}
}
