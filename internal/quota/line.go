package quota

// line holds waiting calls in the order of their turns: tenants by turns, each with
// a call in every round. Arriving, leaving and counting who is before take
// logarithmic time: a Fenwick tree counts the calls of the rounds.
type line struct {
	rounds  [][]*Waiter // with calls that have left
	round   int         // that is being served
	last    map[string]int
	counts  []int
	waiting int
}

// roundOf is the round in which a call goes. A new one does not go in the round
// that is being served, or new tenants could keep all others waiting; one that the
// service has refused does, since it waited before.
func (l *line) roundOf(w *Waiter) int {
	if w.Refused {
		return l.round
	}
	return max(l.round, l.last[w.Tenant]) + 1
}

// before counts who would go before a call.
func (l *line) before(w *Waiter) (n int) {
	for i := min(l.roundOf(w)+1, len(l.rounds)); i > 0; i -= i & -i {
		n += l.counts[i]
	}
	return n
}

func (l *line) count(round, n int) {
	l.waiting += n
	for i := round + 1; i < len(l.counts); i += i & -i {
		l.counts[i] += n
	}
}

func (l *line) push(w *Waiter) {
	if l.roundOf(w)+1 >= len(l.counts) {
		l.renumber()
	}
	w.waits = true
	l.put(w, l.roundOf(w))
	if !w.Refused {
		l.last[w.Tenant] = w.round
	}
}

func (l *line) put(w *Waiter, round int) {
	for len(l.rounds) <= round {
		l.rounds = append(l.rounds, nil)
	}
	l.rounds[round] = append(l.rounds[round], w)
	w.round = round
	l.count(round, 1)
}

// renumber drops the rounds that are over or empty, and tenants without calls.
func (l *line) renumber() {
	calls, was := l.all(), l.round
	*l = line{last: map[string]int{}, counts: make([]int, 2*len(calls)+64)}
	next := 0
	for _, w := range calls {
		if w.round > was {
			was, next = w.round, next+1
		}
		l.put(w, next)
		l.last[w.Tenant] = next
	}
}

// first is the call that goes next; nil if nobody waits. Its round is not being served
// before it has gone, so that another tenant can still come into it.
func (l *line) first() *Waiter {
	for l.waiting > 0 {
		for _, round := range []int{l.round, l.round + 1} {
			for i, w := range l.rounds[round] {
				if w.waits {
					l.rounds[round] = l.rounds[round][i:]
					return w
				}
			}
		}
		l.rounds[l.round] = nil
		l.round++
	}
	return nil
}

func (l *line) pop() *Waiter {
	w := l.first()
	if w != nil {
		l.remove(w)
		if w.round > l.round {
			l.rounds[l.round] = nil
		}
		l.round = w.round
		l.rounds[l.round] = l.rounds[l.round][1:] // it may come again
	}
	return w
}

// remove reports false where the call waits no more.
func (l *line) remove(w *Waiter) (waited bool) {
	if waited = w.waits; waited {
		w.waits = false
		l.count(w.round, -1)
	}
	return waited
}

// all are those who wait, in order.
func (l *line) all() (calls []*Waiter) {
	for _, round := range l.rounds[min(l.round, len(l.rounds)):] {
		for _, w := range round {
			if w.waits {
				calls = append(calls, w)
			}
		}
	}
	return calls
}
