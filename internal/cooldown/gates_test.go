package cooldown

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seen429 is a 429 in the naive model, which remembers all.
type seen429 struct {
	key   string
	class int
	told  time.Duration
	end   time.Time
}

// believed is how long a 429 shuts: at least a second where it does not say, and
// no longer than any window.
func believed(told time.Duration) time.Duration {
	if told <= 0 {
		return time.Second
	}
	return min(told, 24*time.Hour)
}

// naive is the end of the cool-down of a class: the latest that was told there, or
// for a minute at most elsewhere of a limit that was seen there so.
func naive(all []seen429, class int) (end time.Time) {
	shared := func(s seen429) bool { return s.key != "" && s.told <= time.Minute }
	for _, here := range all {
		for _, other := range all {
			same := other.class == class || here.key == other.key && shared(here) && shared(other)
			if here.class == class && same && other.end.After(end) {
				end = other.end
			}
		}
	}
	return end
}

// TestGatesFollowTheModel over many random schedules: never earlier, and
// never later.
func TestGatesFollowTheModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	keys := []string{"", "a", "b", "c"}
	odd := []time.Duration{-time.Minute, 0, 1, 24 * time.Hour, 24*time.Hour + 1, math.MaxInt64}
	for range 600 {
		var (
			gs  gates
			all []seen429
			now = epoch
		)
		for range 60 {
			now = now.Add(time.Duration(random.Int64N(int64(10 * time.Second))))
			class := random.IntN(4)
			if random.IntN(3) == 0 {
				key, told := keys[random.IntN(len(keys))], LeastShut+time.Duration(random.Int64N(int64(70*time.Second)))
				if random.IntN(100) == 0 {
					told = odd[random.IntN(len(odd))]
				}
				gs.shut(key, class, now, told, 0)
				all = append(all, seen429{key, class, told, now.Add(believed(told))})
			}
			closed := false
			for class := range 4 {
				end, _ := latest(gs, class, now)
				want := naive(all, class)
				if !want.After(now) {
					want = time.Time{}
				}
				if closed = closed || !want.IsZero(); !end.Equal(want) { // assert takes ten times as long
					t.Fatalf("class %d opens at %v, want %v, after %+v", class, end, want, all)
				}
			}
			if shut := shutGates(gs, now); shut > 0 != closed {
				t.Fatalf("%d gates are shut, want some: %v, after %+v", shut, closed, all)
			}
		}
	}
}

// latest is the end of the gate of the class that is the last to open.
func latest(gs gates, class int, now time.Time) (end time.Time, key string) {
	if last := gs.last(class, now); last != nil {
		return last.end, last.key
	}
	return time.Time{}, ""
}

func shutGates(gs gates, now time.Time) (n int) {
	for _, g := range gs {
		if !g.over(now) {
			n++
		}
	}
	return n
}

func TestGateOpensAtItsEnd(t *testing.T) {
	var gs gates
	g, _ := gs.shut("k", 3, epoch, time.Minute, 0.5)
	assert.Equal(t, 3125*time.Millisecond, g.jitter())
	for at, closed := range map[time.Duration]int{
		0: 1, time.Minute + g.jitter() - 1: 1, time.Minute + g.jitter(): 0, time.Hour: 0,
		-time.Second:     1, // a clock that was read before the lock was taken
		-time.Second - 1: 0, // the clock of another bubble
	} {
		assert.Equal(t, closed, shutGates(gs, epoch.Add(at)), at)
	}
}

// TestNewsOfGates: the begin, and each second that is added, in small steps
// too.
func TestNewsOfGates(t *testing.T) {
	var gs gates
	for _, step := range []struct {
		at, told time.Duration
		news     bool
	}{
		{0, 10 * time.Second, true},
		{0, 10 * time.Second, false},
		{400 * time.Millisecond, 10 * time.Second, false},
		{999 * time.Millisecond, 10 * time.Second, false},
		{time.Second, 10 * time.Second, true},
		{time.Second, 5 * time.Second, false},
		{1100 * time.Millisecond, 10 * time.Second, false},
		{3 * time.Second, 10 * time.Second, true},
		{13 * time.Second, time.Millisecond, true},
	} {
		_, news := gs.shut("k", 0, epoch.Add(step.at), step.told, 0)
		assert.Equal(t, step.news, news, step)
	}
}

// TestGatesAreBounded: of limit_keys without end, all that are open are
// forgotten; where all are shut, a further one shuts the class that sees it.
func TestGatesAreBounded(t *testing.T) {
	var gs gates
	last := func(class int, now time.Time) string {
		_, key := latest(gs, class, now)
		return key
	}
	for i := range 1000 {
		gs.shut(fmt.Sprint("key ", i), 0, epoch.Add(time.Duration(i)*time.Minute), time.Minute, 0)
		require.LessOrEqual(t, len(gs), maxKeys)
	}
	later := epoch.Add(1000 * time.Minute)
	for i := range maxKeys {
		gs.shut(fmt.Sprint("later ", i), 0, later, time.Hour+time.Duration(i)*time.Minute, 0)
	}
	for range 2 {
		gs.shut("one more", 5, later, 3*time.Hour, 0)
		assert.Len(t, gs, maxKeys+1)
	}
	assert.Empty(t, last(5, later), "that of the class")
	assert.Equal(t, "later 63", last(0, later), "it does not cover what it was not seen at")
	soon := later.Add(time.Hour + time.Minute) // the first two are over
	gs.shut("new", 8, soon, 100*time.Hour, 0)
	assert.Len(t, gs, maxKeys)
	assert.Equal(t, "new", last(8, soon))
	assert.Equal(t, "later 63", last(0, soon), "a new key covers nothing that the old one did")
}
