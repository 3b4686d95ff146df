package pacer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	minute  = 60 * second
	someday = 1_763_700_000 * second
)

// The kinds of the calls of interface 8.1.
const (
	message  = request
	creation = request | 2
	byokSet  = request | 4
	withKey  = request | 2 | 4 // a creation with llm.api_key
	warmUp   = request | 8
)

var calls = []kinds{message, creation, byokSet, withKey, warmUp}

func rulesFor(t testing.TB, limits ...Limit) []rule {
	t.Helper()
	rules, err := rulesOf(limits)
	require.NoError(t, err)
	return rules
}

func perMinute(most int) Limit { return Limit{Key: "ours", Max: most, Window: time.Minute} }

// TestNeverMoreThanTheLimit is the property that everything else rests on:
// whatever is asked when, no window holds more calls than its limit, counted
// from any moment.
func TestNeverMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		most := 1 + random.IntN(80)
		rules := rulesFor(t, perMinute(most), Limit{Key: "creations", Max: 1 + random.IntN(10), Window: 20 * time.Second, Counts: CountsAgentCreations})
		now := someday
		s := newState(rules, now, 1)
		s.Limits[0].Patience, s.Limits[1].Patience = hour, hour // or it tries whether more is allowed
		sent := make([][]int64, len(rules))
		for range 3000 {
			now += random.Int64N(int64(1) << random.IntN(25))
			k := calls[random.IntN(2)]
			a := ask{member: random.Int64N(4), kinds: k, batch: random.IntN(2) == 0, waits: 1 + random.Int64N(3), ahead: random.Int64N(2) * claimAhead}
			got := s.at(rules, now).ask(a)
			for _, g := range got.grants[:got.n] {
				for i, r := range rules {
					if r.counts&k != 0 {
						sent[i] = append(sent[i], g.at)
						wantWithin(t, sent[i], r, seed)
					}
				}
			}
		}
		require.NotEmpty(t, sent[0])
	}
}

// wantWithin looks at the window that ends with each of the last calls.
func wantWithin(t *testing.T, sent []int64, r rule, seed uint64) {
	t.Helper()
	last, n := sent[len(sent)-1], 0
	for _, at := range sent {
		if at > last-r.window && at <= last {
			n++
		}
	}
	require.LessOrEqual(t, n, int(r.max), "seed %d, limit %s", seed, r.key)
}

// TestEvenPace: a few at once, then evenly, without a pause at the end of the
// window.
func TestEvenPace(t *testing.T) {
	rules := rulesFor(t, perMinute(60))
	s := newState(rules, someday, 1)
	var sent []int64
	for now := someday; now < someday+5*minute; {
		got := s.at(rules, now).ask(ask{kinds: message, waits: 2})
		if got.n > 0 {
			sent = append(sent, now-someday)
		}
		now = max(got.due, now)
	}
	assert.InDelta(t, sent[0], sent[atOnceAtFirst-1], 50_000, "three at once")
	for i := atOnceAtFirst; i < len(sent); i++ {
		gap := sent[i] - sent[i-1]
		assert.GreaterOrEqual(t, gap, int64(900_000), "call %d", i)
		assert.LessOrEqual(t, gap, int64(1_300_000), "call %d", i)
	}
	assert.InDelta(t, 5*60, len(sent), 5)
}

// TestBurstAfterQuiet of 9 calls, or less for small limits.
func TestBurstAfterQuiet(t *testing.T) {
	for most, want := range map[int]int{60: 9, 600: 9, 30: 4, 12: 2, 3: 2} {
		rules := rulesFor(t, perMinute(most))
		s := newState(rules, someday, 1)
		got := 0
		for s.at(rules, someday+10*minute).ask(ask{kinds: message, waits: 1}).n == 1 {
			got++
		}
		assert.Equal(t, want, got, "%d a minute", most)
	}
}

// serviceOf is a service of interface 8.1 whose one spent limit refuses until
// it opens, under names of its own.
type serviceOf struct {
	spent rule
	opens int64
	name  func(random *rand.Rand) string
}

func (s serviceOf) accepts(k kinds, now int64) bool { return s.spent.counts&k == 0 || now >= s.opens }

// names are what a service may call its limits.
func names(rules []rule, spent int) map[string]func(*rand.Rand) string {
	always := func(name string) func(*rand.Rand) string { return func(*rand.Rand) string { return name } }
	return map[string]func(*rand.Rand) string{
		"ours":         always(rules[spent].key),
		"others":       always(fmt.Sprint("limiter-", spent)),
		"none":         always(""),
		"one for all":  always("rate"),
		"swapped":      always(rules[(spent+3)%len(rules)].key),
		"all the same": always(rules[0].key),
		"changing":     func(random *rand.Rand) string { return rules[random.IntN(len(rules))].key },
	}
}

// TestNeverPunishesTheInnocent: whatever the service calls its limits, and
// whichever of them is spent, a call that it would have accepted waits no longer
// than one Retry-After of a minute limit.
func TestNeverPunishesTheInnocent(t *testing.T) {
	rules := rulesFor(t, PreviewLimits()...)
	for spent, r := range rules {
		for naming, name := range names(rules, spent) {
			for seed := range uint64(20) {
				random := rand.New(rand.NewPCG(seed, uint64(spent)))
				service := serviceOf{spent: r, name: name, opens: someday + minute + 1 + random.Int64N(r.window)}
				longest := playInnocent(service, rules, random)
				require.LessOrEqual(t, longest, minute+second, "%s is spent, names: %s, seed %d", r.key, naming, seed)
			}
		}
	}
}

// playInnocent is how long a call waited at most that would have been accepted.
func playInnocent(service serviceOf, rules []rule, random *rand.Rand) (longest int64) {
	now := someday
	s := newState(rules, now, 1)
	for range 120 {
		now += 20*second + random.Int64N(minute)
		k := calls[min(random.IntN(9), 4)%len(calls)]
		if random.IntN(3) > 0 {
			k = message
		}
		m := s.at(rules, now)
		got := m.ask(ask{kinds: k, waits: 1})
		m.withdraw(ask{kinds: k})
		switch accepts := service.accepts(k, now); {
		case got.n == 0 && accepts && !countsFull(m, k):
			longest = max(longest, got.due-now)
		case got.n > 0 && !accepts:
			wait := (service.opens - now + second - 1) / second * second
			m.refused(refusal{kinds: k, granted: now, wait: wait, key: service.name(random)})
		case got.n > 0 && got.grants[0].probe:
			m.accepted(k)
		}
	}
	return longest
}

// countsFull reports whether our own count keeps the call back: not innocent.
func countsFull(m *machine, k kinds) bool {
	for i := range m.rules {
		if r := &m.rules[i]; r.counts&k != 0 && m.budget(i).full() >= 0.9 {
			return true
		}
	}
	return false
}

// TestAWrongGuessCostsOneCall: after a creation is refused because of the day
// limit, one message is refused, and then none.
func TestAWrongGuessCostsOneCall(t *testing.T) {
	rules := rulesFor(t, PreviewLimits()...)
	s := newState(rules, someday, 1)
	refused := map[kinds]int{}
	for i := range int64(50) {
		k := []kinds{creation, message}[i%2]
		now := someday + i*10*second
		m := s.at(rules, now)
		if m.ask(ask{kinds: k, waits: 1}).n > 0 {
			refused[k]++
			m.refused(refusal{kinds: k, granted: now, wait: someday + 8*hour - now, key: "day"})
		}
	}
	assert.Equal(t, map[kinds]int{creation: 1, message: 1}, refused)
	assert.Equal(t, someday+8*hour, s.at(rules, someday+hour).Gates.opens(warmUp), "a refused message holds back all")
}

// TestARaisedLimit is looked for after a quarter of an hour of use without a
// refusal; and less often where it is refused.
func TestARaisedLimit(t *testing.T) {
	rules := rulesFor(t, perMinute(60))
	s := newState(rules, someday, 1)
	now := fill(s, rules, someday, 15*minute)
	l := &s.Limits[0].short
	assert.Equal(t, 60.0, allowed(s, rules, now))
	now = fill(s, rules, now, 3*minute/2)
	assert.InDelta(t, 66, allowed(s, rules, now), 0.1)
	s.at(rules, now).refused(refusal{kinds: message, granted: now, wait: second})
	assert.LessOrEqual(t, allowed(s, rules, now), 60.0, "back to what held")
	assert.Equal(t, int64(2*firstPatience), l.Patience)
}

// TestALongLimitOpensCalmly: no burst, since a sliding window frees its room as
// evenly as it was used.
func TestALongLimitOpensCalmly(t *testing.T) {
	rules := rulesFor(t, perMinute(60), Limit{Key: "hour", Max: 20, Window: time.Hour})
	s := newState(rules, someday, 1)
	now := fill(s, rules, someday, 30*second)
	s.at(rules, now).refused(refusal{kinds: message, granted: now, wait: hour})
	for _, opens := range []int64{now + hour, 0} {
		if opens == 0 { // the next time nobody is refused
			opens = s.Limits[1].Begins + s.Limits[1].Lasts
		}
		got := 0
		for s.at(rules, opens).ask(ask{kinds: message, waits: 1}).n > 0 {
			got++
		}
		assert.Equal(t, 1, got)
		fill(s, rules, opens, 30*second)
	}
}

// TestAGateNeverOpensEarlier than the longest wait that was asked for.
func TestAGateNeverOpensEarlier(t *testing.T) {
	rules := rulesFor(t, PreviewLimits()...)
	m := newState(rules, someday, 1).at(rules, someday)
	for _, wait := range []int64{minute, hour, second} {
		m.refused(refusal{kinds: warmUp, granted: someday, wait: wait})
	}
	assert.Equal(t, someday+hour, m.Gates.opens(warmUp))
	assert.Zero(t, m.Gates.opens(message))
}

// TestLevel is what a refusal teaches, and how it is forgotten.
func TestLevel(t *testing.T) {
	rules := rulesFor(t, perMinute(60))
	s := newState(rules, someday, 1)
	now := fill(s, rules, someday, 2*minute)
	m := s.at(rules, now)
	m.refused(refusal{kinds: message, granted: now, wait: 15 * second})
	assert.InDelta(t, 44, allowed(s, rules, now), 1, "as many as in the window that ends with the wait")
	held := allowed(s, rules, now)
	assert.Equal(t, held, allowed(s, rules, now+2*minute), "it holds")
	assert.InDelta(t, 1.25*held, allowed(s, rules, now+11*minute/4), 0.1, "it climbs")
	assert.Equal(t, 60.0, allowed(s, rules, now+4*minute))

	m.refused(refusal{kinds: message, granted: now - second, wait: 15 * second})
	assert.Equal(t, held, allowed(s, rules, now), "a call that was under way teaches nothing")
}

// fill sends as many calls as may go.
func fill(s *state, rules []rule, now, during int64) int64 {
	for end := now + during; now < end; {
		got := s.at(rules, now).ask(ask{kinds: message, waits: 2})
		now = max(got.due, now)
	}
	return now
}

// TestRefusalsThatTeachNothing about the level, though they close the limit.
func TestRefusalsThatTeachNothing(t *testing.T) {
	rules := rulesFor(t, PreviewLimits()...)
	for name, test := range map[string]struct {
		after   int64 // since the start
		refusal refusal
	}{
		"in the first minute":    {30 * second, refusal{kinds: message, wait: 20 * second}},
		"of a late call":         {2 * minute, refusal{kinds: message, wait: 20 * second, late: true}},
		"of a single operation":  {2 * minute, refusal{kinds: creation, wait: 20 * second}},
		"too long for the limit": {2 * minute, refusal{kinds: message, wait: 2 * hour}},
	} {
		s := newState(rules, someday, 1)
		now := fill(s, rules, someday, test.after)
		test.refusal.granted = now
		m := s.at(rules, now)
		m.refused(test.refusal)
		for i := range rules {
			if !rules[i].isLong() {
				assert.Equal(t, rules[i].max, m.budget(i).allowed, "%s: %s", name, rules[i].key)
			}
		}
		assert.Positive(t, m.Gates.opens(test.refusal.kinds), name)
	}
}

// TestLongLimits: Max calls, one that finds out, and from then on as many
// calls in each period without another refusal.
func TestLongLimits(t *testing.T) {
	rules := rulesFor(t, Limit{Key: "hour", Max: 3, Window: time.Hour})
	s := newState(rules, someday, 1)
	opens, left, refused, accepted := someday+hour, 3, 0, 0
	for now := someday; now < someday+10*hour; now += 5 * second {
		if now >= opens {
			opens, left = opens+hour, 3
		}
		m := s.at(rules, now)
		got := m.ask(ask{kinds: message, waits: 1})
		switch {
		case got.n == 0:
		case left == 0:
			refused++
			assert.True(t, got.grants[0].probe)
			m.refused(refusal{kinds: message, granted: now, wait: opens - now})
		default:
			left--
			accepted++
		}
	}
	assert.Equal(t, 1, refused)
	assert.Equal(t, 30, accepted)
}

// TestALimitThatTheServiceDoesNotHave is not kept.
func TestALimitThatTheServiceDoesNotHave(t *testing.T) {
	rules := rulesFor(t, Limit{Key: "hour", Max: 3, Window: time.Hour})
	s := newState(rules, someday, 1)
	probes := 0
	for i := range int64(20) {
		m := s.at(rules, someday+i*second)
		got := m.ask(ask{kinds: message, waits: 1})
		require.Equal(t, 1, got.n, "call %d", i)
		if got.grants[0].probe {
			assert.Zero(t, m.ask(ask{kinds: message, waits: 1}).n, "one finds out, the others wait for it")
			m.accepted(message)
			probes++
		}
	}
	assert.Equal(t, 6, probes, "each begins a new count")
}

// TestTicketsTakeTurns: two processes that want all get the same, though one
// asks ten times as often.
func TestTicketsTakeTurns(t *testing.T) {
	rules := rulesFor(t, perMinute(60))
	s := newState(rules, someday, 1)
	got := map[int64]int{}
	for now := someday; now < someday+10*minute; now += 100_000 {
		for member := range int64(2) {
			if member == 1 || now%second == 0 {
				got[member] += s.at(rules, now).ask(ask{member: member, kinds: message, waits: 2}).n
			}
		}
	}
	assert.InDelta(t, got[0], got[1], 10)
}

// TestBatchIsNotStarved: every eighth grant goes to a batch call.
func TestBatchIsNotStarved(t *testing.T) {
	rules := rulesFor(t, perMinute(60))
	s := newState(rules, someday, 1)
	got := map[bool]int{}
	for now := someday; now < someday+20*minute; now += 100_000 {
		for _, batch := range []bool{true, false} {
			got[batch] += s.at(rules, now).ask(ask{kinds: message, batch: batch, waits: 5}).n
		}
	}
	assert.InDelta(t, 7, float64(got[false])/float64(got[true]), 0.3)
}

// TestATicketLapses where its process does not come back for its turn.
func TestATicketLapses(t *testing.T) {
	rules := rulesFor(t, perMinute(6))
	s := newState(rules, someday, 1)
	now := someday
	for s.at(rules, now).ask(ask{member: 1, kinds: message, waits: 1}).n > 0 {
	}
	first := s.at(rules, now).ask(ask{member: 2, kinds: message, waits: 1}).due
	assert.Greater(t, first, s.Tickets[0].Due, "behind the first")
	now = s.Tickets[0].Due + ticketFor + 1
	assert.Equal(t, 1, s.at(rules, now).ask(ask{member: 2, kinds: message, waits: 1}).n)
}

func TestGiveBack(t *testing.T) {
	rules := rulesFor(t, PreviewLimits()...)
	s := newState(rules, someday, 1)
	s.at(rules, someday).ask(ask{kinds: creation, waits: 1})
	before := s.clone()
	m := s.at(rules, someday)
	m.spend(creation, someday)
	m.giveBack(creation, someday)
	assert.InDelta(t, before.Limits[0].Due, s.Limits[0].Due, 300_000)
	for i := range rules {
		assert.Equal(t, before.Limits[i].Sent, s.Limits[i].Sent)
		assert.Equal(t, m.budget(i).full(), before.at(rules, someday).budget(i).full())
	}
}

// TestClockSetBack takes all times with it.
func TestClockSetBack(t *testing.T) {
	rules := rulesFor(t, PreviewLimits()...)
	s := newState(rules, someday, 1)
	now := fill(s, rules, someday, 2*minute)
	wait := s.at(rules, now).ask(ask{kinds: message, waits: 2}).due - now
	back := s.clone().at(rules, now-3*hour)
	assert.Equal(t, now-3*hour, back.now)
	got := back.ask(ask{kinds: message, waits: 2})
	assert.InDelta(t, wait, got.due-back.now, 300_000)
	assert.Equal(t, back.budget(0).full(), s.at(rules, now).budget(0).full())
}

// allowed is the level of the first limit at a time.
func allowed(s *state, rules []rule, now int64) float64 {
	return (&machine{state: s, rules: rules, now: now, calls: 1}).budget(0).allowed
}
