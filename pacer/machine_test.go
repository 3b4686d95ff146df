package pacer

import (
	"context"
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

// play is a state machine that is played by a test.
type play struct {
	*state
	rules []rule
}

func newPlay(t testing.TB, limits ...Limit) play {
	t.Helper()
	rules, err := rulesOf(limits)
	require.NoError(t, err)
	return play{newState(rules, someday, 1), rules}
}

func (p play) at(now int64) *machine { return p.state.at(p.rules, now) }

// sends asks for one message, and reports whether it may go.
func (p play) sends(now int64) bool { return p.at(now).ask(ask{kinds: message, waits: 1}).n == 1 }

// fill sends as many messages as may go.
func (p play) fill(now, during int64) int64 {
	for end := now + during; now < end; {
		now = max(now, p.at(now).ask(ask{kinds: message, waits: 2}).due)
	}
	return now
}

// level returns the level of the first limit.
func (p play) level(now int64) float64 { return p.clone().at(p.rules, now).budget(0).allowed }

func perMinute(most int) Limit { return Limit{Key: "ours", Max: most, Window: time.Minute} }

// TestNeverMoreThanTheLimit is the property that everything else rests on:
// whatever is asked when, no window holds more calls than its limit, counted
// from any moment.
func TestNeverMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		p := newPlay(t, perMinute(1+random.IntN(80)), Limit{Max: 1 + random.IntN(10), Window: 20 * time.Second, Counts: CountsAgentCreations})
		p.Limits[0].Patience, p.Limits[1].Patience = hour, hour // or it tries whether more is allowed
		sent, now := make([][]int64, len(p.rules)), someday
		for range 3000 {
			now += random.Int64N(int64(1) << random.IntN(25))
			k := []kinds{message, creation}[random.IntN(2)]
			got := p.at(now).ask(ask{
				member: random.Int64N(4), kinds: k, batch: random.IntN(2) == 0,
				waits: 1 + random.Int64N(3), ahead: random.Int64N(2) * claimAhead, took: random.Int64N(2 * second),
			})
			for _, g := range got.grants[:got.n] {
				for i, r := range p.rules {
					if r.counts&k != 0 {
						sent[i] = append(sent[i], g.at)
						require.LessOrEqual(t, within(sent[i], g.at-r.window, g.at), int(r.max), "seed %d, limit %d", seed, i)
					}
				}
			}
		}
		require.NotEmpty(t, sent[0])
	}
}

func within(sent []int64, after, until int64) (n int) {
	for _, at := range sent {
		if at > after && at <= until {
			n++
		}
	}
	return n
}

// TestBurstAfterQuiet of 9 calls, or less for small limits.
func TestBurstAfterQuiet(t *testing.T) {
	for most, want := range map[int]int{60: 9, 600: 9, 30: 4, 12: 2, 3: 2} {
		p, got := newPlay(t, perMinute(most)), 0
		for p.sends(someday + 10*minute) {
			got++
		}
		assert.Equal(t, want, got, "%d a minute", most)
	}
}

// names are what a service may call its limits, of which one is spent.
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
	rules := newPlay(t, PreviewLimits()...).rules
	for spent := range rules {
		for naming, name := range names(rules, spent) {
			for seed := range uint64(20) {
				random := rand.New(rand.NewPCG(seed, uint64(spent)))
				longest := playInnocent(newPlay(t, PreviewLimits()...), spent, func() string { return name(random) }, random)
				require.LessOrEqual(t, longest, minute+second, "%s is spent, names: %s, seed %d", rules[spent].key, naming, seed)
			}
		}
	}
}

// playInnocent is how long a call waited at most that would have been accepted
// by a service of which one limit is spent for a while.
func playInnocent(p play, spent int, name func() string, random *rand.Rand) (longest int64) {
	now, opens := someday, someday+minute+1+random.Int64N(p.rules[spent].window)
	for range 120 {
		now += 20*second + random.Int64N(minute)
		k := []kinds{message, creation, byokSet, withKey, warmUp}[min(random.IntN(9), 4)]
		if random.IntN(3) > 0 {
			k = message
		}
		m := p.at(now)
		got := m.ask(ask{kinds: k, waits: 1})
		m.withdraw(ask{kinds: k})
		switch accepts := p.rules[spent].counts&k == 0 || now >= opens; {
		case got.n == 0 && accepts && !countsFull(m, k):
			longest = max(longest, got.due-now)
		case got.n > 0 && !accepts:
			m.refused(refusal{kinds: k, granted: now, wait: (opens - now + second - 1) / second * second, key: name()})
		case got.n > 0 && got.grants[0].probe:
			m.accepted(k)
		}
	}
	return longest
}

// countsFull reports whether our own count keeps the call back: not innocent.
func countsFull(m *machine, k kinds) bool {
	for b := range m.spent(k) {
		if b.full() >= 0.9 {
			return true
		}
	}
	return false
}

// TestAWrongGuessCostsOneCall: after a creation is refused because of the day
// limit, one message is refused, and then none.
func TestAWrongGuessCostsOneCall(t *testing.T) {
	p, refused := newPlay(t, PreviewLimits()...), map[kinds]int{}
	for i := range int64(50) {
		k, now := []kinds{creation, message}[i%2], someday+i*10*second
		if m := p.at(now); m.ask(ask{kinds: k, waits: 1}).n > 0 {
			refused[k]++
			m.refused(refusal{kinds: k, granted: now, wait: someday + 8*hour - now, key: "day"})
		}
	}
	assert.Equal(t, map[kinds]int{creation: 1, message: 1}, refused)
	assert.Equal(t, someday+8*hour, p.at(someday+hour).Gates.opens(warmUp), "a refused message holds back all")
}

// TestNames of ours tell a refusal of requests from one of the operation, if the
// wait is no longer than the limit's window.
func TestNames(t *testing.T) {
	for _, test := range []struct {
		key     string
		wait    int64
		message int64 // held back for so long
	}{
		{"key_minute", 30 * second, 30 * second},
		{"key_minute", 2 * minute, 0},
		{"key_day", 30 * second, 0},
		{"agent_create_ip_minute", 30 * second, 0},
		{"", 30 * second, 0},
	} {
		m := newPlay(t, PreviewLimits()...).at(someday)
		m.refused(refusal{kinds: creation, granted: someday, wait: test.wait, key: test.key})
		assert.Equal(t, someday+test.wait, m.Gates.opens(creation), test.key)
		assert.Equal(t, test.message, max(0, m.Gates.opens(message)-someday), test.key)
	}
}

// TestAGateNeverOpensEarlier than the longest wait that was asked for.
func TestAGateNeverOpensEarlier(t *testing.T) {
	m := newPlay(t, PreviewLimits()...).at(someday)
	for _, wait := range []int64{minute, hour, second} {
		m.refused(refusal{kinds: warmUp, granted: someday, wait: wait})
	}
	assert.Equal(t, someday+hour, m.Gates.opens(warmUp))
	assert.Zero(t, m.Gates.opens(message))
}

// TestLevel is what a refusal teaches, and how it is forgotten.
func TestLevel(t *testing.T) {
	p := newPlay(t, perMinute(60))
	now := p.fill(someday, 2*minute)
	p.at(now).refused(refusal{kinds: message, granted: now, wait: 15 * second})
	held := p.level(now)
	assert.InDelta(t, 44, held, 1, "as many as in the window that ends with the wait")
	assert.Equal(t, held, p.level(now+2*minute), "it holds")
	assert.InDelta(t, 1.25*held, p.level(now+11*minute/4), 0.1, "it climbs")
	assert.Equal(t, 60.0, p.level(now+4*minute))
	p.at(now).refused(refusal{kinds: message, granted: now - second, wait: 15 * second})
	assert.Equal(t, held, p.level(now), "a call that was under way teaches nothing")
	later := now + 2*minute
	p.at(later).refused(refusal{kinds: message, granted: later, wait: 15 * second})
	assert.InDelta(t, held/2, p.level(later), 0.1, "never more than half at once")
}

// TestARaisedLimit is looked for after a quarter of an hour of use without a
// refusal; and less often where it is refused.
func TestARaisedLimit(t *testing.T) {
	p := newPlay(t, perMinute(60))
	now := p.fill(someday, 15*minute)
	assert.Equal(t, 60.0, p.level(now))
	now = p.fill(now, 3*minute/2)
	assert.InDelta(t, 66, p.level(now), 0.1)
	p.at(now).refused(refusal{kinds: message, granted: now, wait: second})
	assert.LessOrEqual(t, p.level(now), 60.0, "back to what held")
	assert.Equal(t, int64(2*firstPatience), p.Limits[0].Patience)
}

// TestRefusalsThatTeachNothing about the level, though they close the limit.
func TestRefusalsThatTeachNothing(t *testing.T) {
	for name, test := range map[string]struct {
		after   int64 // since the start
		refusal refusal
	}{
		"in the first minute":    {30 * second, refusal{kinds: message, wait: 20 * second}},
		"of a late call":         {2 * minute, refusal{kinds: message, wait: 20 * second, late: true}},
		"of a single operation":  {2 * minute, refusal{kinds: creation, wait: 20 * second}},
		"too long for the limit": {2 * minute, refusal{kinds: message, wait: 2 * hour}},
	} {
		p := newPlay(t, PreviewLimits()...)
		test.refusal.granted = p.fill(someday, test.after)
		m := p.at(test.refusal.granted)
		m.refused(test.refusal)
		for b := range m.spent(everything) {
			if !b.isLong() {
				assert.Equal(t, b.max, b.level(), "%s: %s", name, b.key)
			}
		}
		assert.Equal(t, m.now+test.refusal.wait, m.Gates.opens(test.refusal.kinds), name)
	}
}

// TestLongLimits: Max calls, one that finds out, and from then on as many
// calls in each period without another refusal.
func TestLongLimits(t *testing.T) {
	p := newPlay(t, Limit{Max: 3, Window: time.Hour})
	opens, left, refused, accepted := someday+hour, 3, 0, 0
	for now := someday; now < someday+10*hour; now += 5 * second {
		if now >= opens {
			opens, left = opens+hour, 3
		}
		m := p.at(now)
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
	assert.Equal(t, [2]int{1, 30}, [2]int{refused, accepted})
}

// TestALimitThatTheServiceDoesNotHave is not kept.
func TestALimitThatTheServiceDoesNotHave(t *testing.T) {
	p, probes := newPlay(t, Limit{Max: 3, Window: time.Hour}), 0
	for i := range int64(20) {
		m := p.at(someday + i*second)
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

// TestTicketsTakeTurns: of two processes that want all, each gets half, though
// one asks ten times as often; and of 8 grants one goes to a batch call.
func TestTicketsTakeTurns(t *testing.T) {
	p, got := newPlay(t, perMinute(60)), map[ask]int{}
	asks := []ask{{member: 1, batch: true}, {member: 2, batch: true}, {member: 1}, {member: 2}}
	for now := someday; now < someday+20*minute; now += 100_000 {
		for _, a := range asks {
			if a.member == 1 || now%second == 0 {
				got[a] += p.at(now).ask(ask{member: a.member, batch: a.batch, kinds: message, waits: 5}).n
			}
		}
	}
	assert.InEpsilon(t, got[asks[2]], got[asks[3]], 0.06)
	assert.InDelta(t, 7, float64(got[asks[2]]+got[asks[3]])/float64(got[asks[0]]+got[asks[1]]), 0.3)
}

// TestAShareCountsForAll: a call of one of four processes that do not hear of each
// other counts as four, and its next is four turns later.
func TestAShareCountsForAll(t *testing.T) {
	p := newPlay(t, perMinute(60))
	m := p.at(someday + minute)
	m.calls = 4
	got := m.ask(ask{kinds: message, waits: 2})
	assert.Equal(t, 1, got.n)
	assert.Equal(t, int64(4), m.budget(0).sent())
	assert.InDelta(t, 4*second, got.due-m.now, 100_000)
}

// TestATicketLapses where its process does not come back for its turn.
func TestATicketLapses(t *testing.T) {
	p := newPlay(t, perMinute(6))
	for p.sends(someday) {
	}
	second := ask{member: 2, kinds: message, waits: 1}
	due := p.Tickets[0].Due
	behind := p.at(someday).ask(second)
	assert.Greater(t, behind.due, due, "behind the first")
	assert.Equal(t, 2*p.at(someday).budget(0).pace, behind.gap, "they take turns")
	assert.Zero(t, p.at(due).ask(second).n)
	assert.Equal(t, 1, p.at(due+ticketFor+1).ask(second).n)
}

func TestGiveBack(t *testing.T) {
	p := newPlay(t, PreviewLimits()...)
	m := p.at(someday)
	before := play{p.clone(), p.rules}
	m.giveBack(creation, m.ask(ask{kinds: creation, waits: 1}).grants[0].at)
	assert.InDelta(t, before.Limits[0].Due, p.Limits[0].Due, 300_000)
	for i := range p.rules {
		assert.Equal(t, before.Limits[i].Sent, p.Limits[i].Sent)
		assert.Equal(t, before.at(someday).budget(i).full(), m.budget(i).full())
	}
}

// TestClockSetBack takes all times with it.
func TestClockSetBack(t *testing.T) {
	p := newPlay(t, PreviewLimits()...)
	now := p.fill(someday, 2*minute)
	back := play{p.clone(), p.rules}.at(now - 3*hour)
	assert.Equal(t, now-3*hour, back.now)
	wait := p.at(now).ask(ask{kinds: message, waits: 2}).due - now
	assert.Equal(t, wait, back.ask(ask{kinds: message, waits: 2}).due-back.now)
}

// TestStopwatch goes forward only, whatever the clock does.
func TestStopwatch(t *testing.T) {
	clock := &setClock{time.Unix(1000, 0)}
	s := stopwatch{clock: clock, last: clock.Now()}
	for _, step := range []struct{ seconds, want int64 }{{5, 5}, {-500, 5}, {2, 7}, {-3, 7}, {1, 8}} {
		clock.Time = clock.Add(time.Duration(step.seconds) * time.Second)
		assert.Equal(t, hour+step.want*second, s.now())
	}
}

type setClock struct{ time.Time }

func (c *setClock) Now() time.Time                           { return c.Time }
func (*setClock) Sleep(context.Context, time.Duration) error { return nil }

// TestJoin: of each limit the fuller count holds, and nobody goes for a moment
// when a process returns from an outage.
func TestJoin(t *testing.T) {
	limits := []Limit{perMinute(60), {Max: 1000, Window: 24 * time.Hour}}
	for _, test := range []struct {
		store, mine int64 // minutes of use
		fuller      int64 // of both
		fleet       fleet
	}{{2, 1, 2, fleet{}}, {1, 2, 2, fleet{}}, {1, 2, 2, fleet{down: true}}} {
		store, mine := newPlay(t, limits...), newPlay(t, limits...)
		store.fill(someday, test.store*minute)
		mine.fill(someday, test.mine*minute)
		m := store.at(someday + 2*minute)
		m.join(mine.at(m.now), &test.fleet)
		assert.InDelta(t, 60*test.fuller, m.Limits[1].Sent, 3)
		assert.InDelta(t, 59, m.budget(0).sent(), 1)
		wait := m.ask(ask{kinds: message, waits: 1}).due - m.now
		assert.Equal(t, test.fleet.down, wait >= returnHold)
	}
}
