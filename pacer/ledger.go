package pacer

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// state is the value in the store that the processes of one API key share, or what a process
// without the store counts alone. Its times are by the state's clock; 0 means never. With a
// store, this clock shows the store's time since 1970. Until the first step, and without a
// store, it shows the engine's time.
type state struct {
	Now     time.Duration           // the latest time so far; it never goes back
	Fresh   time.Duration           // since when the state counts the calls of all processes
	Limits  []usage                 // one for each of ledger.bounds, in that order
	Gates   map[costSet]gate        // by the costs of the refused call
	Members map[int64]time.Duration // when each process took its last step, by ledger.member
	Tickets []ticket
}

const memberTTL = 2 * time.Minute // how long a process stays a member after its last step

func newState(bounds []bound, now time.Duration) *state {
	s := &state{
		Now: now, Fresh: now, Limits: slices.Repeat([]usage{{Level: 1}}, len(bounds)),
		Gates: map[costSet]gate{}, Members: map[int64]time.Duration{},
	}
	l := ledger{state: s, bounds: bounds, callWeight: 1}
	for b := range l.budgets(everything) {
		b.pause(now - (atOnceAtFirst-1)*b.pace)
	}
	return s
}

// advance moves the state's time on, and drops old gates, tickets and calls.
func (s *state) advance(now time.Duration) {
	s.Now = max(s.Now, now)
	maps.DeleteFunc(s.Gates, func(_ costSet, g gate) bool { return g.Opens <= s.Now-quota.MaxGateBackoff })
	s.Tickets = slices.DeleteFunc(s.Tickets, func(t ticket) bool { return t.Due < s.Now-ticketTTL })
	for i := range s.Limits {
		s.Limits[i].forget(s.Now)
	}
}

// ledger decides which calls may go, from the state and its time. It reads no clock.
type ledger struct {
	*state
	bounds       []bound
	member       int64         // the key of this process in Members
	stepDuration time.Duration // an estimate of how long a step takes
	callWeight   int64         // how many calls one call counts as; see budget
}

// neverSawStore reports whether the process has never read the store, so that it does not know
// how many processes share it.
func (l *ledger) neverSawStore() bool { return len(l.Members) == 0 }

// budget returns the budget of a limit at the state's time.
func (l *ledger) budget(i int) budget {
	b := budget{bound: &l.bounds[i], usage: &l.Limits[i], now: l.Now, callWeight: l.callWeight}
	b.arrivalMargin, b.allowed = min(400*time.Millisecond, b.Window/20), b.level()
	least := float64(b.arrivalMargin) / float64(b.Window)
	b.spacing = max(b.Extra, least)
	b.evenGap = time.Duration(float64(b.Window) / b.allowed)
	b.slotLength, b.pace = b.Window/pacedSlots, time.Duration(float64(b.evenGap)*(1+b.spacing))
	if !b.paced() {
		b.slotLength, b.pace = b.Window/countedSlots, quota.TrialWait
	}
	if b.callWeight == 1 {
		atOnce := min(maxAtOnce, max(2, math.Floor(b.max/6)))
		// Smaller as Extra grows, because a service that spaces calls refuses bursts.
		b.burst = time.Duration((atOnce - 1) * float64(b.pace) * least / b.spacing)
	}
	return b
}

// budgets returns the budgets of the limits that a call with the costs k spends.
func (l *ledger) budgets(k costSet) iter.Seq[budget] {
	return func(yield func(budget) bool) {
		for i := range l.bounds {
			if l.bounds[i].operation&k != 0 && !yield(l.budget(i)) {
				return
			}
		}
	}
}

// unlimited reports whether no limit and no closed gate holds back a call with the costs k.
func (l *ledger) unlimited(k costSet) bool {
	return l.lastToOpen(k).Opens <= l.Now && !slices.ContainsFunc(l.bounds, func(b bound) bool { return b.operation&k != 0 })
}

// giveBack takes back the count of a call that was granted at the given time, but not sent. Due
// moves back too, but never before a gate opens, because Due may be the end of that gate's pause.
func (l *ledger) giveBack(k costSet, at time.Duration) {
	for b := range l.budgets(k) {
		b.add(at, -b.callWeight)
		b.Due = max(b.Due-time.Duration(b.callWeight)*b.pace, min(b.Due, l.lastToOpen(everything).Opens))
	}
}

// refused closes the gate of a call with the costs k that was granted at the given time, and
// learns from its refusal. It finds the limit that explains the refusal best, and pauses all
// limits on the same operations until the gate opens. Then their calls go at the pace, because
// a sliding window becomes free as fast as the calls filled it.
//
// A paced limit also learns its level or Extra from the refusal, if all of these hold. The
// state knows the calls of a whole window, or the process never saw the store. The call was
// not held up on its way. The limit counts requests, or was at least half used: otherwise
// another limit may explain the refusal. A limit that is only counted starts its count again.
func (l *ledger) refused(k costSet, granted time.Duration, o quota.Outcome) {
	l.closeGate(k, o)
	opens := l.lastToOpen(k).Opens
	if k != request {
		k &^= request // the operation's own limit may have refused it
	}
	b, fullest := budget{}, math.Inf(-1) // the limit that explains the refusal best, and which part of it is used
	for other := range l.budgets(k) {
		if full := other.usedPart(); o.RetryAfter <= other.Window+time.Second && full > fullest {
			fullest, b = full, other
		}
	}
	if b.bound == nil {
		return
	}
	for other := range l.budgets(b.operation) {
		other.pause(opens)
	}
	known := l.neverSawStore() || l.Now-l.Fresh >= b.Window
	switch {
	case !b.paced():
		b.Slots, b.Held, b.Trials = nil, 0, 1
	case known && granted >= l.Now-b.Window/2 && (b.operation == request || fullest >= 0.5):
		b.learn(l.Now+o.RetryAfter, granted, l.neverSawStore())
	}
}

// accepted learns that the service accepted a call with the costs k, granted at the given time,
// and when the answer came. The next refusal of these calls then counts as the first, also if
// another one has closed their gate before the answer came. If the service spaces calls, the next
// call may go one evenGap after the answer, instead of a whole pace after the accepted call. This
// holds only for the newest call, because its answer proves that it has arrived.
func (l *ledger) accepted(k costSet, granted, answered time.Duration) {
	if g, has := l.Gates[k]; has {
		l.Gates[k] = gate{Opens: g.Opens, Key: g.Key, Trace: g.Trace}
	}
	for b := range l.budgets(k) {
		if early := answered + b.evenGap; b.spaced() && early < b.Due && b.Due < granted+2*b.pace {
			b.Due, b.Early = early, early
		}
	}
}

// reopen removes all gates and ends all pauses.
func (l *ledger) reopen() {
	clear(l.Gates)
	for b := range l.budgets(everything) {
		b.Due = min(b.Due, l.Now)
	}
}

// gate is closed by a refusal. Until it opens, it holds back all calls that spend at least the
// limits that the refused call spent. It stays in the state for quota.MaxGateBackoff after that.
type gate struct {
	Opens        time.Duration // when calls may go again
	Key          string        // the limit_key of the refusal
	Trace        string        // the trace_id of the refusal
	RefusedSince time.Duration // when the first refusal came after the last call that passed, in any process; 0: none since that call, or since a merge
	LastOpened   time.Duration // when the gate last opened before a refusal closed it again; 0: it has closed only once
	// Backoff is the shortest time for which the next refusal closes the gate, so that a service
	// that refuses every call is asked less often: after the second refusal in a row the gate is
	// closed for at least 1 s, then for 2 s, 4 s and so on, up to 64 s. A refusal counts if it
	// closes the gate for longer.
	Backoff time.Duration
}

// closeGate closes the gate of calls with the costs k after a refusal. It reports whether the
// calls now wait at least a second longer than before. If several calls that were under way
// together are refused, only the first refusal does that.
//
// A refusal makes only one thing certain: the service would also refuse a call that spends at
// least the limits of the refused call. Only such calls wait, whatever the limit's name, so the
// gate holds no call back that the service would accept. If a plain request is then refused as
// well, its gate holds back all calls that count as requests.
func (s *state) closeGate(k costSet, o quota.Outcome) (closedLonger bool) {
	g, opens, last := s.Gates[k], s.Now+o.RetryAfter, s.lastToOpen(k).Opens
	if g.RefusedSince == 0 {
		g.RefusedSince = s.Now
	} else if g.Opens <= s.Now {
		g.LastOpened = g.Opens
	}
	if closedLonger = opens-max(s.Now, last) >= time.Second; closedLonger {
		opens = max(opens, s.Now+g.Backoff)
		g.Backoff = min(max(time.Second, 2*g.Backoff), quota.MaxGateBackoff)
	}
	if opens > last {
		g.Opens, g.Key, g.Trace = opens, o.LimitKey, o.TraceID
	}
	s.Gates[k] = g
	return closedLonger
}

// lastToOpen returns, of the gates that apply to a call with the costs k, the one that opens
// last. It returns the zero gate if no gate applies. If two open at the same time, their texts
// decide, not the order of the map.
func (s *state) lastToOpen(k costSet) (last gate) {
	for costs, g := range s.Gates {
		if costs&^k == 0 && cmp.Or(cmp.Compare(g.Opens, last.Opens), cmp.Compare(g.Key, last.Key), cmp.Compare(g.Trace, last.Trace)) > 0 {
			last = g
		}
	}
	return last
}

// merge adds the gates, counts and levels of another ledger. For each limit it keeps the larger
// count, and the level that was learned last.
//
// A process on its share counts each call as several, and learns the level of a share. Both would
// mislead here. So of its ledger, merge takes only the counts of limits that are not paced. Until
// a window has passed, only the pace keeps the service's limit from overflowing.
func (l *ledger) merge(other *ledger, wasOnShare bool) {
	ahead := l.Now - other.Now
	for costs, g := range other.Gates {
		if opens := g.Opens + ahead; opens > l.lastToOpen(costs).Opens {
			l.Gates[costs] = gate{Opens: opens, Key: g.Key, Trace: g.Trace}
		}
	}
	l.Fresh = l.Now
	for b := range l.budgets(everything) {
		for o := range other.budgets(b.operation) {
			if o.Key != b.Key || o.Window != b.Window || wasOnShare && b.paced() {
				continue
			}
			if o.Held > b.Held {
				b.Slots, b.Held = slices.Clone(o.Slots), o.Held
				for i := range b.Slots {
					b.Slots[i].Leaves += ahead
				}
			}
			if o.Corrected > 0 && o.Corrected+ahead > b.Corrected && o.max == b.max {
				b.Level, b.Extra, b.Corrected, b.Quiet = o.Level, o.Extra, o.Corrected+ahead, o.Quiet+ahead
			}
		}
		b.pause(max(l.Now, l.lastToOpen(noCosts).Opens))
	}
}

// ticket is the place of a process among all processes, for the calls of one class. Tickets go by
// rank, and within a rank in the order in which they were taken.
//
// For example, calls wait in the processes A and B, and one may go each second. A's ticket is due
// in a second, B's in two. When A's call has gone, A takes a new ticket for its next call. It goes
// after B's.
type ticket struct {
	quota.Class
	Member int64
	Passed int           // how many interactive calls went while this was the first batch ticket
	Calls  int64         // how many calls the process will get at once
	Due    time.Duration // when the process is expected to ask again
}

const (
	ticketTTL  = 1500 * time.Millisecond // a ticket is dropped this long after its Due
	batchEvery = 8                       // every eighth grant goes to a batch call
	maxGrants  = 10                      // the most grants at once for one class
)

// grant lets some of the waiting calls of a class go, and keeps a ticket for the rest. Its
// times are by the state's clock. It grants several calls at once if the store is slow:
// processes that took single calls would then delay each other. Without a store stepDuration is 0,
// so calls go one at a time.
func (l *ledger) grant(class quota.Class, waiting int64) (s quota.Schedule) {
	// Calls is one more than the pace allows in a step. With other numbers, up to two of three Swaps
	// of 16 processes failed, at 600 calls a minute and with a store 30 to 100 ms away.
	first, _ := l.earliest(costSet(class.ID), nil)
	inStep := l.stepDuration / max(1, first.Gap)
	t := ticket{Class: class, Member: l.member, Calls: min(waiting, maxGrants, int64(inStep)+1)}
	var grants []quota.Grant
	for int64(len(grants)) < t.Calls {
		if s = l.placeTicket(t); s.Turn > l.Now+6*l.stepDuration { // a later step can still grant the call in time
			break
		}
		grants = append(grants, quota.Grant{At: s.Turn, Mark: s.Turn, ReportSuccess: l.spend(t, s.Turn)})
	}
	granted := int64(len(grants))
	if granted > 0 { // the next ticket of the process goes after those of the others
		l.withdraw(class)
	}
	if t.Calls = min(t.Calls, waiting-granted); t.Calls > 0 {
		s = l.placeTicket(t)
	}
	s.Grants = grants
	return s
}

// spend counts a call of a ticket that goes at the given time. It reports whether accepted may
// learn anything from the call.
func (l *ledger) spend(t ticket, at time.Duration) (teaches bool) {
	k := costSet(t.ID)
	teaches = l.Gates[k].RefusedSince > 0
	for b := range l.budgets(k) {
		b.spend(at)
		teaches = teaches || b.spaced()
	}
	first := slices.IndexFunc(l.Tickets, func(t ticket) bool { return t.Batch })
	if first >= 0 && !t.Batch {
		l.Tickets[first].Passed++
	}
	return teaches
}

func (t ticket) same(o ticket) bool {
	return o.Member == t.Member && o.Class == t.Class
}

func (l *ledger) withdraw(class quota.Class) {
	l.Tickets = slices.DeleteFunc(l.Tickets, ticket{Class: class, Member: l.member}.same)
}

// placeTicket stores a ticket in the state, in its old place if it has one, and returns when it
// is its turn: after the tickets in front of it that are due by then. Gap is the time between
// one turn of this process and the next.
func (l *ledger) placeTicket(t ticket) quota.Schedule {
	if !slices.ContainsFunc(l.Tickets, t.same) {
		l.Tickets = append(l.Tickets, t)
	}
	slices.SortStableFunc(l.Tickets, func(a, b ticket) int { return a.rank() - b.rank() })
	place := slices.IndexFunc(l.Tickets, t.same)
	ahead := map[costSet]int64{}
	s, slowest := l.earliest(costSet(t.ID), ahead)
	rivals := time.Duration(1)
	for i, other := range l.Tickets {
		if i != place && costSet(other.ID)&slowest != 0 {
			rivals++
		}
		if i < place && other.Due <= s.Turn+s.Gap {
			for operation := request; operation < uncounted; operation <<= 1 {
				if costSet(other.ID)&operation != 0 {
					ahead[operation] += other.Calls
				}
			}
			s, slowest = l.earliest(costSet(t.ID), ahead)
		}
	}
	l.Tickets[place].Calls, l.Tickets[place].Due = t.Calls, s.Turn
	s.Gap *= rivals
	return s
}

// rank puts interactive tickets before batch tickets. But a batch ticket goes first once
// batchEvery-1 interactive calls went before it.
func (t ticket) rank() int {
	switch {
	case t.Passed >= batchEvery-1:
		return 0
	case !t.Batch:
		return 1
	}
	return 2
}

// earliest returns when all limits of a call with the costs k let it go. ahead counts the calls
// that go before it, for each operation. Opens ignores learned levels, because they delay calls
// but close no limit. Key is the limit that lets the call go last, and slowest is its operation.
// If a gate opens later than the limits, Key and TraceID come from the refusal that closed it.
func (l *ledger) earliest(k costSet, ahead map[costSet]int64) (s quota.Schedule, slowest costSet) {
	last := l.lastToOpen(k)
	s.Turn, s.Opens = max(l.Now, last.Opens), last.Opens
	for b := range l.budgets(k) {
		at := b.next(ahead[b.operation])
		if at > s.Turn || slowest == 0 {
			s.Turn, s.LimitKey, slowest = max(at, s.Turn), b.Key, b.operation
		}
		if b.paced() {
			s.Gap, s.Opens = max(s.Gap, b.pace*time.Duration(b.callWeight)), max(s.Opens, b.roomAt(b.max))
		}
	}
	if s.Turn == last.Opens {
		s.LimitKey, s.TraceID = last.Key, last.Trace
	}
	return s, slowest
}
