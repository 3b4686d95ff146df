package pacer

import "slices"

// queueKey identifies the calls that wait in one queue.
type queueKey struct {
	Kinds costSet
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
	ticketFor  = 1500 * int64(1000) // a ticket is dropped this long (1.5 s) after its Due
	batchTurn  = 8                  // every eighth grant goes to a batch call
	mostGrants = 10
)

// turn says which calls may go, and when the others will, by the state's clock.
type turn struct {
	grants []int64
	due    int64  // the next of the others
	opens  int64  // when the limits or a Retry-After let the next call go
	gap    int64  // of the process's turns
	limit  *rule  // that keeps them waiting
	key    string // of the limit, or the limit_key of the refusal that holds the calls back
}

// ask grants calls to a process in which waits calls wait, and keeps a ticket for
// the others. It grants more than one call if the store is so slow that processes
// that take single calls would delay each other.
func (l *ledger) ask(key queueKey, waits int64) turn {
	pace := int64(1)
	for b := range l.budgets(key.Kinds) {
		pace = max(pace, b.pace)
	}
	t := ticket{queueKey: key, Member: l.member, Calls: min(waits, mostGrants, max(1, l.took*l.took/pace/pace))}
	var got turn
	grants := l.grants[:0]
	for int64(len(grants)) < t.Calls {
		if got = l.turn(t); got.due > l.Now+6*l.took { // so early that the way to the store is hidden
			break
		}
		at := max(got.due, l.Now)
		grants = append(grants, at)
		l.spend(key.Kinds, at)
		if i := l.firstBatch(); i >= 0 && !t.Batch {
			l.Tickets[i].Passed++
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

// outlook is when a call would go if it came now, as far as limits decide.
func (l *ledger) outlook(k costSet) turn {
	got := l.earliest(k, new([maxLimits]int64))
	got.opens = max(got.due, l.last(k).Told)
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
	got := l.outlook(t.Kinds)
	opens, rivals := got.opens, int64(1)
	for i, other := range l.Tickets {
		if i != place && other.Kinds&got.limit.counts != 0 {
			rivals++
		}
		if i < place && other.Due <= got.due+got.gap {
			for b := range l.budgets(other.Kinds) {
				before[b.index] += other.Calls
			}
			got = l.earliest(t.Kinds, &before)
		}
	}
	l.Tickets[place].Calls, l.Tickets[place].Due = t.Calls, got.due
	got.opens, got.gap = opens, rivals*got.gap
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

func (l *ledger) firstBatch() int {
	return slices.IndexFunc(l.Tickets, func(t ticket) bool { return t.Batch })
}

// earliest is when all limits of a kind let a call go that has others before it.
// What a gate holds back is put down to the first of them, under the gate's key.
func (l *ledger) earliest(k costSet, before *[maxLimits]int64) turn {
	shut := l.last(k)
	got := turn{due: max(l.Now, shut.Opens), limit: &l.rules[0]}
	for b := range l.budgets(k) {
		at := b.next(before[b.index])
		if at > got.due || got.limit.counts&k == nothing {
			got.due, got.limit = max(at, got.due), b.rule
		}
		if !b.isLong() {
			got.gap = max(got.gap, b.pace*b.calls)
		}
	}
	if got.key = got.limit.Key; got.due == shut.Opens {
		got.key = shut.Key
	}
	return got
}
