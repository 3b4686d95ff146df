package cooldown

import (
	"container/list"
	"context"
)

// line are the callers that a cool-down holds up: a queue for each class, and
// one for those of the class that have no attempt after this one.
type line struct {
	came    int
	waiting [2]int
	queues  [2][maxClasses]list.List // of *caller; the second for last attempts
}

// caller is one of them.
type caller struct {
	ctx     context.Context
	seat    *Seat
	hurried bool // its deadline is nearer than the end of the jitter
	came    int
	in      *list.Element // nil: it is in no queue
	passed  bool
	place   int             // in its queue, when it last looked
	woken   context.Context // of its wait for its turn
	wake    context.CancelFunc
}

func (w *caller) lastAttempt() int {
	if w.seat.left <= 0 {
		return 1
	}
	return 0
}

func (l *line) queue(w *caller) *list.List { return &l.queues[w.lastAttempt()][w.seat.class] }

func (l *line) join(w *caller) {
	if w.in == nil {
		l.came++
		w.came = l.came
		w.in = l.queue(w).PushBack(w)
		l.waiting[w.lastAttempt()]++
	}
}

// leave takes a caller out. Who comes to the head looks again: only the head
// is sure to do so by itself before long.
func (l *line) leave(w *caller) {
	if w.in == nil {
		return
	}
	queue := l.queue(w)
	wasHead := queue.Front() == w.in
	queue.Remove(w.in)
	w.in = nil
	l.waiting[w.lastAttempt()]--
	if head := queue.Front(); wasHead && head != nil {
		head.Value.(*caller).lookAgain()
	}
}

// first is the caller that goes next: of those that may go, the first that has
// no other attempt, else the first; nil if none may.
func (l *line) first(may func(class int, last, others bool) bool) (first *caller) {
	others := l.waiting[0] > 0
	for _, last := range []int{1, 0} {
		for class := range maxClasses {
			head := l.queues[last][class].Front()
			if head != nil && (first == nil || head.Value.(*caller).came < first.came) && may(class, last == 1, others) {
				first = head.Value.(*caller)
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}

// anybody reports whether anybody waits in one of the classes.
func (l *line) anybody(classes uint32) bool {
	for class := range maxClasses {
		if classes&(1<<class) != 0 && l.queues[0][class].Len()+l.queues[1][class].Len() > 0 {
			return true
		}
	}
	return false
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

func (w *caller) lookAgain() {
	if w.wake != nil {
		w.wake()
	}
}

// await prepares the caller for its turn.
func (l *line) await(w *caller) {
	w.place = 1 + w.came - l.queue(w).Front().Value.(*caller).came
	w.woken, w.wake = context.WithCancel(w.ctx)
}
