package fakeserver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

var start = time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)

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
			w := &window{length: time.Minute, sliding: sliding}
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
	fixed, sliding := &window{length: time.Minute}, &window{length: time.Minute, sliding: true}
	for _, w := range []*window{fixed, sliding} {
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
		w := &window{length: time.Minute, sliding: sliding}
		w.take(start)
		w.take(start.Add(-time.Second))
		assert.Equal(t, start.Add(time.Minute), w.opens(start, 2))
		assert.Equal(t, start.Add(time.Minute), w.opens(start.Add(-time.Second), 2))
	}
}

func TestSlidingLogIsPruned(t *testing.T) {
	w := &window{length: time.Minute, sliding: true}
	for i := range 10_000 {
		w.take(start.Add(time.Duration(i) * time.Second))
		require.LessOrEqual(t, len(w.calls), 60)
	}
	assert.Less(t, cap(w.calls), 300)
}

func TestAddressesWithClosedWindowsAreDropped(t *testing.T) {
	for _, sliding := range []bool{false, true} {
		w := newWorld(config{sliding: sliding}, time.Time{})
		for i := range 20_000 {
			now := start.Add(time.Duration(i) * time.Second)
			b := &budget{key: newCounts(false), maxima: [limitCount]int{1: 2}, ip: w.countsOf(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now, sliding), now: now}
			require.Nil(t, b.spend(cost{asks: spending{1: true}, spends: spending{1: true}}, new(decided))) // ip_minute
			require.LessOrEqual(t, len(w.ips), minSweep)
		}
	}
	w := newWorld(config{}, time.Time{})
	for i := range 5 * minSweep { // all open: none may be dropped
		b := &budget{key: newCounts(false), maxima: [limitCount]int{1: 2}, ip: w.countsOf(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), start, false), now: start}
		require.Nil(t, b.spend(cost{asks: spending{1: true}, spends: spending{1: true}}, new(decided)))
	}
	assert.Len(t, w.ips, 5*minSweep)
}

func TestLimitTableHasItsSize(t *testing.T) {
	require.Len(t, spec.Limits, limitCount)
	for i := range routes {
		e := routes[i].spec
		assert.Same(t, spec.Endpoints[i], e)
		assert.Equal(t, e.Method+" "+e.Path, string(routes[i].name))
		assert.Equal(t, e.Lists(429), e.Counts(spec.Requests, false), "what lists no 429 spends nothing")
	}
	assert.Len(t, routes, len(spec.Endpoints))
	for _, mode := range spec.SMSModes {
		assert.Contains(t, spec.SMSStatuses, newDecided().smsStatus[mode])
	}
}
