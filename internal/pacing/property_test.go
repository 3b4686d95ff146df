package pacing

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// player plays random histories: callers that ask, wait, give up, give back.
type player struct {
	*machine
	*rand.Rand
	waiting []quota.Step
	grants  []grant
}

type grant struct {
	at     int64
	spends quota.Set
	id     uint64
}

func newPlayer(t *testing.T, seed uint64) *player {
	r := newRand(seed)
	kinds := []quota.Limit{
		limitOf("a", 60, time.Minute), limitOf("b", 7, 12_345*time.Millisecond), limitOf("c", 1, 2*time.Second),
		limitOf("d", 200, time.Minute), limitOf("e", 25, 5*time.Minute),
	}
	r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	return &player{machine: newMachine(t, Tuning{}, kinds[:1+r.IntN(3)]...), Rand: r}
}

func (p *player) play(steps int) {
	for range steps {
		p.now += p.Int64N(int64(1) << (10 + p.IntN(14)))
		switch n := p.IntN(20); {
		case n == 0 && len(p.waiting) > 0: // gives up
			p.drop(p.IntN(len(p.waiting)), quota.Unused)
		case n == 1 && len(p.grants) > 0: // never sent
			p.giveBack()
		case n < 10 && len(p.waiting) > 0:
			p.retry(p.IntN(len(p.waiting)))
		default:
			spends := 1 + quota.Set(p.Uint32N(uint32(p.all())))
			p.waiting = append(p.waiting, quota.Step{Kind: quota.Ask, ID: p.newID(), Spends: spends, Batch: p.IntN(3) == 0})
			p.retry(len(p.waiting) - 1)
		}
	}
}

func (p *player) retry(i int) {
	step := p.waiting[i]
	before := p.used()
	if p.step(step).Granted {
		p.grants = append(p.grants, grant{p.now, step.Spends, step.ID})
		p.drop(i, "")
		return
	}
	assert.Equal(p.t, before, p.used(), "a denied ask consumes nothing")
}

// used are the calls in the windows; asking lets old ones go, so that is done
// first.
func (p *player) used() (used []int) {
	p.step(quota.Step{Kind: quota.Replay, ID: 1 << 32})
	for i := range p.State.limits {
		used = append(used, len(p.State.limits[i].log))
	}
	return used
}

func (p *player) drop(i int, kind quota.Kind) {
	if kind != "" {
		p.tell(kind, p.waiting[i].ID)
	}
	p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
}

func (p *player) giveBack() {
	last := len(p.grants) - 1
	if g := p.grants[last]; g.at == p.now || p.now-g.at < recall {
		p.step(quota.Step{Kind: quota.Unused, ID: g.id, Spends: g.spends})
		p.grants = p.grants[:last]
	}
}

// TestNoWindowHoldsMore, wherever it begins; so it holds for windows that are
// aligned, that slide, and for token buckets of that size.
func TestNoWindowHoldsMore(t *testing.T) {
	for seed := range uint64(60) {
		p := newPlayer(t, seed)
		p.play(1500)
		for i, l := range p.limits {
			var times []int64
			for _, g := range p.grants {
				if g.spends.Has(i) {
					times = append(times, g.at)
				}
			}
			require.LessOrEqual(t, most(times, l.Window.Microseconds()+guard), l.Max, "seed %d, limit %+v", seed, l)
			require.LessOrEqual(t, bucketRefuses(times, l), 0, "seed %d, limit %+v", seed, l)
		}
	}
}

// bucketRefuses counts what a token bucket of the limit's size refuses.
func bucketRefuses(times []int64, l quota.Limit) (refused int) {
	tokens, last := float64(l.Max), int64(0)
	for _, at := range times {
		if last != 0 {
			tokens = min(float64(l.Max), tokens+float64(at-last)*float64(l.Max)/float64(l.Window.Microseconds()))
		}
		last = at
		if tokens < 1-1e-6 {
			refused++
			continue
		}
		tokens--
	}
	return refused
}

// TestQuotaIsUsed: one who always asks gets nearly all that there is.
func TestQuotaIsUsed(t *testing.T) {
	for _, l := range []quota.Limit{
		limitOf("a", 1, time.Minute), limitOf("a", 7, time.Minute), limitOf("a", 60, time.Minute),
		limitOf("a", 600, time.Minute), limitOf("a", 25, 5*time.Minute), limitOf("a", 5, time.Hour),
	} {
		m := newMachine(t, Tuning{NoLearning: true}, l)
		got := len(m.saturate(30 * l.Window.Microseconds()))
		assert.GreaterOrEqual(t, float64(got), 0.98*30*float64(l.Max), "%+v", l)
	}
}

// TestFleetUsesTheQuota: and each process gets as much as the others.
func TestFleetUsesTheQuota(t *testing.T) {
	for _, processes := range []int{2, 5, 16} {
		m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
		due, ids, got := make([]int64, processes), make([]uint64, processes), make([]int, processes)
		for ; m.now < epoch+30*minute; m.now += 20_000 {
			for i := range processes {
				if due[i] > m.now {
					continue
				}
				answer := m.ask(uint64(i+1)<<32 | ids[i])
				due[i] = m.now + min(answer.Wait.Microseconds(), patience)
				if answer.Granted {
					ids[i]++
					got[i]++
				}
			}
		}
		sum := 0
		for _, n := range got {
			assert.InDelta(t, 1800/processes, n, float64(1800/processes)*0.06+2, "%d of %d", n, processes)
			sum += n
		}
		assert.GreaterOrEqual(t, sum, 1764, "%d", processes)
	}
}

// TestWaitIsExact: who is alone and asks again just then is granted, and is
// not a microsecond earlier.
func TestWaitIsExact(t *testing.T) {
	for seed := range uint64(200) {
		p := newPlayer(t, seed)
		p.play(300)
		for _, step := range p.waiting {
			p.tell(quota.Unused, step.ID)
		}
		answer := p.ask(1 << 40)
		if answer.Granted {
			continue
		}
		begin := p.now
		for wait := answer.Wait.Microseconds(); wait > patience+lease; wait -= patience {
			p.now += patience
			p.ask(1 << 40)
		}
		if answer.Wait > time.Millisecond {
			p.now = begin + answer.Wait.Microseconds() - 1
			require.False(t, p.ask(1<<40).Granted, "seed %d", seed)
		}
		p.now = begin + answer.Wait.Microseconds()
		require.True(t, p.ask(1<<40).Granted, "seed %d", seed)
	}
}

// TestNobodyStarves: in a queue that is always full every one gets a turn, in
// the order of arrival, batch ones a minute late.
func TestNobodyStarves(t *testing.T) {
	for seed := range uint64(10) {
		m, r := newMachine(t, Tuning{}, limitOf("a", 20, time.Minute)), newRand(seed)
		type caller struct {
			step  quota.Step
			since int64
		}
		var waiting []caller
		longest, newest := map[bool]int64{}, map[bool]uint64{}
		for m.now < epoch+20*minute {
			m.now += 200_000
			if r.IntN(16) == 0 && len(waiting) < 30 {
				waiting = append(waiting, caller{quota.Step{Kind: quota.Ask, ID: m.newID(), Batch: r.IntN(4) == 0}, m.now})
			}
			for i := 0; i < len(waiting); i++ {
				c := waiting[i]
				if !m.step(c.step).Granted {
					continue
				}
				longest[c.step.Batch] = max(longest[c.step.Batch], m.now-c.since)
				require.Greater(t, c.step.ID, newest[c.step.Batch], "seed %d", seed)
				newest[c.step.Batch] = c.step.ID
				waiting = append(waiting[:i], waiting[i+1:]...)
				i--
			}
		}
		assert.Less(t, longest[false], 100*second, "seed %d", seed)
		assert.Less(t, longest[true], 160*second, "seed %d", seed)
	}
}
