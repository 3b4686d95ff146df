package programs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPrograms: each starts, and answers what the benchmark asks.
func TestPrograms(t *testing.T) {
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			if testing.Short() && !s.ours() {
				t.Skip("not in short mode")
			}
			p := start(t, s, s.program(t))
			prepare(t, p, s)
			assert.NoError(t, p.do(t.Context(), s.call))
			assert.Error(t, p.do(t.Context(), ask{method: "GET", path: "/no/such/path"}))
			p.stop()
			assert.Error(t, p.do(t.Context(), s.call), "it has ended")
		})
	}
}

// A load is no more than it says, of calls and of time.
func TestLoad(t *testing.T) {
	floor := subjects[0]
	p := start(t, floor, floor.program(t))
	o, err := p.put(t.Context(), load{calls: 100, within: time.Minute}, floor.call)
	require.NoError(t, err)
	assert.EqualValues(t, 100, o.calls)
	assert.Positive(t, o.took)
	o, err = p.put(t.Context(), load{calls: 100}, floor.call)
	require.NoError(t, err)
	assert.Zero(t, o.calls)
	_, err = p.put(t.Context(), load{calls: 100, within: time.Minute}, ask{method: "GET", path: "/no/such/path"})
	assert.EqualError(t, err, "status 404")
}

func TestOutcome(t *testing.T) {
	o := outcome{calls: 500, took: 250 * time.Millisecond}
	assert.InDelta(t, 2000, o.rate(), 0)
	assert.InDelta(t, 80, o.share(40*time.Millisecond), 0)
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		in   []float64
		want float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1}, 5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 9, 1, 2}, 3},
		{[]float64{5, 3, 1000, 4, 1}, 4},
	} {
		assert.InDelta(t, tt.want, median(tt.in), 0, "%v", tt.in)
	}
	in := []float64{3, 1, 2}
	median(in)
	assert.Equal(t, []float64{3, 1, 2}, in, "in the order of measurement")
}

func TestParseStat(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want time.Duration
	}{
		{"42 (name) S 1 42 42 0 -1 4194560 1 0 0 0 250 50 7 7 20 0 9 0 12345", 3 * time.Second},
		{"42 (a b) c) S 1 42 42 0 -1 4194560 1 0 0 0 1 2 7 7 20 0 9 0 12345", 30 * time.Millisecond},
	} {
		got, err := parseStat(tt.in)
		require.NoError(t, err)
		assert.Equal(t, tt.want, got, tt.in)
	}
	for _, in := range []string{"", "42 (name) S 1", "42 (name) S 1 42 42 0 -1 4194560 1 0 0 0 x 50 7", "42 (name) S 1 42 42 0 -1 4194560 1 0 0 0 5 x 7"} {
		_, err := parseStat(in)
		assert.Error(t, err, in)
	}
}

func TestParseRSS(t *testing.T) {
	got, err := parseRSS("Name:\tx\nVmHWM:\t   99999 kB\nVmRSS:\t   15872 kB\nThreads:\t7\n")
	require.NoError(t, err)
	assert.InDelta(t, 15.5, got, 0)
	for _, in := range []string{"", "Name:\tx\n", "\nVmRSS:\t15872", "\nVmRSS:\tx kB\n"} {
		_, err := parseRSS(in)
		assert.Error(t, err, in)
	}
}
