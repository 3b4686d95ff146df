package fakeserver

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

var start = time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)

// naive is the same limit written down another way: it keeps every call ever
// counted, and looks through all of them.
type naive struct {
	sliding bool
	length  time.Duration
	calls   []time.Duration
}

func (n *naive) counting(now time.Duration) int {
	if n.sliding {
		count := 0
		for _, at := range n.calls {
			if now-at < n.length {
				count++
			}
		}
		return count
	}
	first, count := time.Duration(-1), 0
	for _, at := range n.calls {
		if first < 0 || at-first >= n.length {
			first, count = at, 0
		}
		count++
	}
	if first < 0 || now-first >= n.length {
		return 0
	}
	return count
}

// waits is the shortest whole number of seconds after which a call passes.
func (n *naive) waits(now time.Duration, limit int) int {
	for s := 0; ; s++ {
		if n.counting(now+time.Duration(s)*time.Second) < limit {
			return s
		}
	}
}

func TestWindowsAgreeWithANaiveModel(t *testing.T) {
	for seed := range uint64(40) {
		for _, sliding := range []bool{false, true} {
			r := rand.New(rand.NewPCG(seed, 7))
			length, limit := time.Duration(1+r.IntN(20))*time.Second, 1+r.IntN(6)
			w, model := newWindow(length, sliding), &naive{sliding: sliding, length: length}
			now := time.Duration(0)
			for i := range 400 {
				// Half of the steps end on a whole second, so that edges are hit.
				now += time.Duration(r.Int64N(int64(length)/2 + 1))
				if r.IntN(2) == 0 {
					now = now.Truncate(time.Second)
				}
				if len(model.calls) > 0 {
					now = max(now, model.calls[len(model.calls)-1])
				}
				at := start.Add(now)
				opens := w.opens(at, limit)
				passes := !opens.After(at)
				name := fmt.Sprintf("seed %d sliding %v step %d", seed, sliding, i)
				require.Equal(t, model.counting(now) < limit, passes, name)
				if passes {
					w.take(at)
					model.calls = append(model.calls, now)
				} else {
					require.Equal(t, model.waits(now, limit), waitSeconds(at, opens), name)
				}
			}
		}
	}
}

func TestWindowEdges(t *testing.T) {
	for _, sliding := range []bool{false, true} {
		for _, row := range []struct {
			after time.Duration
			want  bool
		}{
			{time.Minute - time.Nanosecond, false},
			{time.Minute, true},
			{time.Minute + time.Nanosecond, true},
		} {
			w := newWindow(time.Minute, sliding)
			w.take(start)
			at := start.Add(row.after)
			assert.Equal(t, row.want, !w.opens(at, 1).After(at), "sliding %v after %v", sliding, row.after)
			assert.Equal(t, row.want, !w.ends(at).After(at), "sliding %v after %v", sliding, row.after)
		}
	}
}

// A fixed window starts with its first call and not with the clock's minute,
// and a lower limit counts what was taken under a higher one.
func TestFixedAndSlidingDiffer(t *testing.T) {
	fixed, sliding := newWindow(time.Minute, false), newWindow(time.Minute, true)
	for _, w := range []window{fixed, sliding} {
		w.take(start.Add(30 * time.Second))
		w.take(start.Add(80 * time.Second))
		assert.Equal(t, start.Add(90*time.Second), w.opens(start.Add(80*time.Second), 2))
	}
	at := start.Add(90 * time.Second)
	assert.Equal(t, at, fixed.opens(at, 1))
	assert.Equal(t, start.Add(140*time.Second), sliding.opens(at, 1))
}

// Concurrent calls may be counted in another order than they read the clock.
func TestWindowsTakeLateCalls(t *testing.T) {
	for _, sliding := range []bool{false, true} {
		w := newWindow(time.Minute, sliding)
		w.take(start)
		w.take(start.Add(-time.Second))
		assert.Equal(t, start.Add(time.Minute), w.opens(start, 2))
		assert.Equal(t, start.Add(time.Minute), w.opens(start.Add(-time.Second), 2))
	}
}

func TestWaitSeconds(t *testing.T) {
	for wait, want := range map[time.Duration]int{
		0:                              1,
		1:                              1,
		time.Second:                    1,
		time.Second + 1:                2,
		2 * time.Second:                2,
		time.Hour - 1:                  3600,
		24*time.Hour + time.Nanosecond: 86401,
	} {
		assert.Equal(t, want, waitSeconds(start, start.Add(wait)), wait)
	}
}

func TestSlidingLogIsPruned(t *testing.T) {
	w := &slidingWindow{length: time.Minute}
	for i := range 10_000 {
		w.take(start.Add(time.Duration(i) * time.Second))
		require.LessOrEqual(t, len(w.log), 60)
	}
	assert.Less(t, cap(w.log), 300)
}

func TestAddressesWithClosedWindowsAreDropped(t *testing.T) {
	for _, sliding := range []bool{false, true} {
		w := newWorld(config{sliding: sliding}, time.Time{})
		for i := range 20_000 {
			now := start.Add(time.Duration(i) * time.Second)
			b := &budget{key: newCounts(false, false), maxima: [limitCount]int{1: 2}, ip: w.countsOf(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now, sliding), now: now}
			require.Nil(t, b.spend(cost{asks: spending{1: true}, spends: spending{1: true}}, new(decided))) // ip_minute
			require.LessOrEqual(t, len(w.ips), minSweep)
		}
	}
	w := newWorld(config{}, time.Time{})
	for i := range 5 * minSweep { // all open: none may be dropped
		b := &budget{key: newCounts(false, false), maxima: [limitCount]int{1: 2}, ip: w.countsOf(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), start, false), now: start}
		require.Nil(t, b.spend(cost{asks: spending{1: true}, spends: spending{1: true}}, new(decided)))
	}
	assert.Len(t, w.ips, 5*minSweep)
}

// Interface 8.1 and 8.2, in their own digits.
func TestMaximaOfPlans(t *testing.T) {
	s, err := Open(WithLimit(LimitWarmUpKeyHour, 4))
	require.NoError(t, err)
	for plan, want := range map[Plan]string{
		PlanPreview: "[60 120 1000 50 10 5 4]",
		PlanFree:    "[60 120 1000 50 10 5 4]",
		PlanPro:     "[300 500 10000 50 10 5 4]",
		PlanBYOK:    "[600 1000 50000 50 10 5 4]",
	} {
		req := &request{world: s.world, key: &apiKey{plan: plan.spec(""), counts: newCounts(false, false)}, now: start}
		if got := fmt.Sprint(s.budget(req).maxima); got != want {
			t.Errorf("plan %s has the maxima %s, interface 8.1 and 8.2 say %s", plan, got, want)
		}
	}
}

func TestLimitTableHasItsSize(t *testing.T) {
	require.Len(t, spec.Limits, limitCount)
	for i := range routes {
		e := routes[i].spec
		assert.Same(t, spec.Endpoints[i], e)
		assert.Equal(t, e.Method+" "+e.Path, string(routes[i].name))
	}
	assert.Len(t, routes, len(spec.Endpoints))
	for _, mode := range spec.SMSModes {
		assert.Contains(t, spec.SMSStatuses, newDecided().smsStatus[mode])
	}
}
