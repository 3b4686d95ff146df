package pacer

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
)

// state is all that the processes of one API key share: the value in the store.
// Times are in microseconds of the state's clock; 0 means never.
type state struct {
	Format  int
	Now     int64 // the latest time that was seen
	Fresh   int64 // since when the calls of all processes are in it
	Limits  []count
	Gates   []gate
	Members map[int64]int64 // when each process asked last
	Tickets []ticket
}

const memberFor = 120 * second // a process is counted, after its last step

func newState(bounds []bound, now int64) *state {
	unused := count{Level: 1}
	s := &state{Format: format, Now: now, Fresh: now, Members: map[int64]int64{}, Limits: slices.Repeat([]count{unused}, len(bounds))}
	l := ledger{state: s, bounds: bounds, calls: 1}
	for b := range l.budgets(everything) {
		b.pause(now - (atOnceAtFirst-1)*b.pace)
	}
	return s
}

// at brings the state to a time.
func (s *state) at(now int64) {
	s.Now = max(s.Now, now)
	s.Gates = slices.DeleteFunc(s.Gates, func(g gate) bool { return g.Opens <= s.Now })
	s.Tickets = slices.DeleteFunc(s.Tickets, func(t ticket) bool { return t.Due < s.Now-ticketFor })
}

// ledger is the state machine: state, time and a question give an answer.
type ledger struct {
	*state
	bounds       []bound
	member       int64 // this process
	took         int64 // how long a step takes: microseconds of the last one
	calls        int64 // what each counts as: more than 1 for a process on its share
	peersUnknown bool  // the number of processes is not known
}

func (l *ledger) budget(i int) budget {
	b := budget{bound: &l.bounds[i], count: &l.Limits[i], index: i, now: l.Now, calls: l.calls}
	b.slot, b.guard, b.allowed = b.window/pacedSlots, min(400_000, b.window/20), b.level()
	if !b.paced() {
		b.slot = b.window / countedSlots
	}
	least := float64(b.guard) / float64(b.window)
	b.extra = max(b.Extra, least)
	b.pace = int64(float64(b.window) / b.allowed * (1 + b.extra))
	if most := b.max; b.calls == 1 {
		if l.peersUnknown { // others may have begun with a part too
			most = b.allowed
		}
		atOnce := min(maxAtOnce, max(2, math.Floor(most/6)))
		b.credit = int64((atOnce - 1) * float64(b.pace) * least / b.extra) // who spaces calls wants no burst
	}
	return b
}

// budgets are the limits that a call of a kind spends.
func (l *ledger) budgets(k costSet) iter.Seq[budget] {
	return func(yield func(budget) bool) {
		for i := range l.bounds {
			if l.bounds[i].counts&k != 0 && !yield(l.budget(i)) {
				return
			}
		}
	}
}

// free reports whether nothing holds back a call with the costs k.
func (l *ledger) free(k costSet) bool {
	return l.last(k).Opens == 0 && !slices.ContainsFunc(l.bounds, func(b bound) bool { return b.counts&k != 0 })
}

// giveBack takes back a call that was not sent.
func (l *ledger) giveBack(k costSet, at int64) {
	for b := range l.budgets(k) {
		b.add(at, -b.calls)
		b.Due -= b.calls * b.pace
	}
}

// refused lets the limit that is to blame learn: a call that counted as k, and was
// granted at a time, shall wait.
//
// When the limit opens again, the calls go at an even pace, as they did when they filled
// it: a sliding window frees its room at that pace. A level is learned only where the
// calls of a whole window are known, from a call that was not held up on its way, and for
// limits on single operations only where most of it was used: else others may be to
// blame. A limit that is only counted begins its count anew.
func (l *ledger) refused(k costSet, granted, wait int64) {
	if k != request {
		k &^= request // the operation's own limit may have refused it
	}
	var b budget // to blame
	fullest := math.Inf(-1)
	for o := range l.budgets(k) {
		if full := o.full(); wait <= o.window+second && full > fullest {
			fullest, b = full, o
		}
	}
	if b.bound == nil {
		return
	}
	for o := range l.budgets(b.counts) {
		o.pause(l.Now + wait)
	}
	known := l.peersUnknown || l.Now-l.Fresh >= b.window
	switch {
	case !b.paced():
		b.Slots, b.Held, b.Trials = nil, 0, 1
	case known && granted >= l.Now-b.window/2 && (b.counts == request || fullest >= 0.5):
		b.refused(l.Now+wait, granted, l.peersUnknown)
	}
}

// reopen forgets what refusals have shut.
func (l *ledger) reopen() {
	l.Gates = nil
	for b := range l.budgets(everything) {
		b.Due = min(b.Due, l.Now)
	}
}

// gate holds back all calls that spend at least the limits that a refused call
// spent.
type gate struct {
	Costs costSet
	Opens int64
	Key   string // the limit_key of the service's answer
}

// shut closes a gate, or keeps it closed for longer.
//
// A refusal makes only one thing certain: a call that spends at least the limits of
// the refused call would be refused too. Only such calls wait, however the limit is
// named, so no call is held back that the service would have accepted. If a plain
// request is then refused as well, it shuts the gate for all calls.
func (s *state) shut(k costSet, opens int64, key string) {
	if opens > s.last(k).Opens {
		s.Gates = slices.DeleteFunc(s.Gates, func(g gate) bool { return g.Costs == k })
		s.Gates = append(s.Gates, gate{k, opens, key})
	}
}

// last returns the gate that opens latest among the gates for a call with the costs
// k; the zero gate if there is none.
func (s *state) last(k costSet) (last gate) {
	for _, g := range s.Gates {
		if g.Costs&^k == 0 && g.Opens > last.Opens {
			last = g
		}
	}
	return last
}

// join adds the counts of another ledger: of each limit the larger count is kept. A
// level that a lonely process learned is a share of the limit, so it is left out.
func (l *ledger) join(other *ledger) {
	ahead := l.Now - other.Now
	for _, g := range other.Gates {
		l.shut(g.Costs, g.Opens+ahead, g.Key)
	}
	l.Fresh = l.Now
	for b := range l.budgets(everything) {
		for o := range other.budgets(b.counts) {
			if o.Key != b.Key || o.window != b.window {
				continue
			}
			if calls := o.sent(); calls > b.sent() {
				b.even(min(calls, int64(b.allowed)-1))
			}
			if o.Corrected > 0 && o.Corrected+ahead > b.Corrected && o.max == b.max && !other.peersUnknown {
				b.Level, b.Extra, b.Corrected, b.Quiet = o.Level, o.Extra, o.Corrected+ahead, o.Quiet+ahead
			}
		}
		b.pause(max(l.Now, l.last(nothing).Opens))
	}
}

// queueKey identifies the calls that wait in one queue.
type queueKey struct {
	Costs costSet
	Batch bool
}

// ticket is the place of a process's waiting calls of a class. Tickets go by rank,
// and then in the order in which they were taken.
type ticket struct {
	queueKey
	Member int64
	Passed int   // interactive calls that went before it, the first batch ticket
	Calls  int64 // that it will take at once
	Due    int64 // when the process is expected back
}

const (
	ticketFor = 1500 * int64(1000) // a ticket is dropped this long (1.5 s) after its Due
	batchTurn = 8                  // every eighth grant goes to a batch call
	maxGrants = 10
)

// turn says which calls may go, and when the others will, by the state's clock.
type turn struct {
	grants []int64
	due    int64   // the next of the others
	opens  int64   // when the limits or a Retry-After let the next call go
	gap    int64   // of the process's turns
	counts costSet // of the limit that keeps them waiting
	key    string  // of the limit, or the limit_key of the refusal that holds the calls back
}

// ask grants calls to a process in which waits calls wait, and keeps a ticket for
// the others. It grants more than one call if the store is so slow that processes
// that take single calls would delay each other.
func (l *ledger) ask(key queueKey, waits int64) turn {
	pace := max(1, l.earliest(key.Costs, new([maxLimits]int64)).gap)
	t := ticket{queueKey: key, Member: l.member, Calls: min(waits, maxGrants, max(1, l.took*l.took/pace/pace))}
	var got turn
	var grants []int64
	for int64(len(grants)) < t.Calls {
		if got = l.turn(t); got.due > l.Now+6*l.took { // so early that the way to the store is hidden
			break
		}
		at := max(got.due, l.Now)
		grants = append(grants, at)
		for b := range l.budgets(key.Costs) {
			b.spend(at)
		}
		first := slices.IndexFunc(l.Tickets, func(t ticket) bool { return t.Batch })
		if first >= 0 && !key.Batch {
			l.Tickets[first].Passed++
		}
	}
	granted := int64(len(grants))
	if granted > 0 { // a process with a grant goes to the end of the line
		l.withdraw(key)
	}
	if t.Calls = min(t.Calls, waits-granted); t.Calls > 0 {
		got = l.turn(t)
	}
	got.grants = grants
	return got
}

func (t ticket) same(o ticket) bool {
	return o.Member == t.Member && o.queueKey == t.queueKey
}

func (l *ledger) withdraw(key queueKey) {
	l.Tickets = slices.DeleteFunc(l.Tickets, ticket{queueKey: key, Member: l.member}.same)
}

// turn forecasts when a ticket comes to its turn: after the tickets that go before
// it and are due by then. It keeps the ticket, in its old place where it has one.
func (l *ledger) turn(t ticket) turn {
	if !slices.ContainsFunc(l.Tickets, t.same) {
		l.Tickets = append(l.Tickets, t)
	}
	slices.SortStableFunc(l.Tickets, func(a, b ticket) int { return a.rank() - b.rank() })
	place := slices.IndexFunc(l.Tickets, t.same)
	var before [maxLimits]int64 // calls that go first
	got, rivals := l.earliest(t.Costs, &before), int64(1)
	for i, other := range l.Tickets {
		if i != place && other.Costs&got.counts != 0 {
			rivals++
		}
		if i < place && other.Due <= got.due+got.gap {
			for b := range l.budgets(other.Costs) {
				before[b.index] += other.Calls
			}
			got = l.earliest(t.Costs, &before)
		}
	}
	l.Tickets[place].Calls, l.Tickets[place].Due = t.Calls, got.due
	got.gap *= rivals
	return got
}

// rank puts interactive tickets before batch ones, but the first batch ticket
// before all when its turn has come.
func (t ticket) rank() int {
	switch {
	case t.Passed >= batchTurn-1:
		return 0
	case !t.Batch:
		return 1
	}
	return 2
}

// earliest is when all limits of a call with the costs k let it go, after the calls in
// before. If a gate decides, the turn names the first limit and the gate's key. What was
// learned delays a call, but does not close a limit: that is for the service, and for Max.
func (l *ledger) earliest(k costSet, before *[maxLimits]int64) turn {
	shut := l.last(k)
	got := turn{due: max(l.Now, shut.Opens), opens: shut.Opens}
	for b := range l.budgets(k) {
		at := b.next(before[b.index])
		if at > got.due || got.counts == nothing {
			got.due, got.counts, got.key = max(at, got.due), b.counts, b.Key
		}
		if b.paced() {
			got.gap, got.opens = max(got.gap, b.pace*b.calls), max(got.opens, b.free(b.max))
		}
	}
	if got.due == shut.Opens {
		got.key = shut.Key
	}
	return got
}

// turnOf returns when this process would have been next. If it had no ticket, it
// picks a random time within a round.
func (l *ledger) turnOf(counts costSet, round int64) int64 {
	for _, t := range l.Tickets {
		if t.Member == l.member && t.Costs&counts != 0 {
			return t.Due
		}
	}
	return l.Now + rand.Int64N(round+1)
}

// format numbers the layout of a value. Raise it where decode would misread an
// older one.
const format = 7
