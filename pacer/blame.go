package pacer

// refusal is a 429, as the state machine is told of it.
type refusal struct {
	kinds   kinds // what the call counted as
	granted int64 // when it was let go
	wait    int64 // Retry-After
	key     string
	late    bool // it arrived long after it was let go
}

// leastRefusal is how long a refusal without Retry-After holds.
const leastRefusal = second

// refused shuts a gate, and lets the limit that is to blame learn.
//
// What is known for certain: a call that counts as what the refused one did,
// or as more, would be refused too. Only these wait; whatever the limit is
// called, no other call is held back that the service would have accepted. If
// the guess is wrong, the next plain request is refused, and shuts the gate of
// all. The one exception is a name of ours for a limit on requests of less than
// an hour, if its window is as long as the wait: a wrong name costs that wait.
func (m *machine) refused(f refusal) {
	wait := max(f.wait, leastRefusal)
	blamed := f.kinds
	if blamed != request && m.namesRequests(f.key, wait) {
		blamed &= request
	}
	m.shut(blamed, m.now+wait, f.key)
	if blamed != request {
		blamed &^= request
	}
	if i := m.blame(blamed, wait); i >= 0 {
		m.learn(i, f, m.now+wait)
	}
}

// namesRequests reports whether the key is that of a short limit on requests.
func (m *machine) namesRequests(key string, wait int64) bool {
	for _, r := range m.rules {
		if r.key == key && r.counts == request && !r.long() {
			return wait <= r.window+second
		}
	}
	return false
}

// shut closes the gate of the kinds, and never opens one earlier.
func (m *machine) shut(k kinds, opens int64, key string) {
	for i := range m.gates {
		if g := &m.gates[i]; g.kinds == k {
			if opens > g.opens {
				g.opens, g.key = opens, key
			}
			return
		}
	}
	m.gates = append(m.gates, gate{k, opens, key})
}

// gate is when the gates let a call go that counts as k; 0 if none is shut.
func (m *machine) gate(k kinds) (opens int64) {
	for _, g := range m.gates {
		if g.kinds&^k == 0 {
			opens = max(opens, g.opens)
		}
	}
	return opens
}

// blame is the limit that is to blame for a refusal: of those that count the
// kinds and whose window can be that long, the one that is fullest; a long limit
// only if its count explains the refusal, or no short one can. -1 means none.
func (m *machine) blame(k kinds, wait int64) int {
	best, fullest := -1, -1.0
	for i := range m.rules {
		if r := &m.rules[i]; r.counts&k == 0 || wait > r.window+second {
			continue
		}
		if full := m.full(i); full > fullest {
			best, fullest = i, full
		}
	}
	return best
}

// full is how much of a limit is used; of a long one that has not refused, it
// is negative.
func (m *machine) full(i int) float64 {
	r, l := &m.rules[i], &m.limits[i]
	if !r.long() {
		return float64(l.forget(r, m.now, m.guard(r))) / l.allowed(r, m.now)
	}
	if l.used(r) {
		return 0.95
	}
	return float64(l.sent)/r.max/1e6 - 0.5
}

// learn lets a limit learn from a refusal. A level is learned only where the
// calls of a whole window are known, from a call that was not held up on its
// way, and for limits on single operations only where most of it was used: else
// others may be to blame.
func (m *machine) learn(i int, f refusal, opens int64) {
	r, l := &m.rules[i], &m.limits[i]
	if r.long() {
		l.long.refused(r, m.now, opens, f.granted)
		m.calm(r.counts, opens)
		return
	}
	known := m.lonely || m.now-m.fresh >= r.window
	if !known || f.late || r.counts != request && m.full(i) < 0.5 {
		l.due = max(l.due, opens+l.credit(r, m.now, m.guard(r), true))
		return
	}
	l.short.refused(r, m.now, opens, f.granted, m.guard(r), m.hold)
}
