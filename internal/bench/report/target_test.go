package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each target's last figure that keeps its bound, and the first that does not.
func TestBounds(t *testing.T) {
	t.Parallel()
	bounds := map[string]struct{ kept, broken float64 }{
		"POST in memory: allocations, of go-retryablehttp's":                                             {1.25, 1.26},
		"GET in memory: allocations, of go-retryablehttp's":                                              {1.25, 1.26},
		"POST in memory: time, of go-retryablehttp's":                                                    {1.15, 1.16},
		"GET in memory: time, of go-retryablehttp's":                                                     {1.15, 1.16},
		"POST in memory: allocations, of every SDK's":                                                    {0.99, 1},
		"GET in memory: allocations, of every SDK's":                                                     {0.99, 1},
		"POST in memory: time, of every SDK's":                                                           {0.99, 1},
		"GET in memory: time, of every SDK's":                                                            {0.99, 1},
		"POST over loopback: time, of the floor's":                                                       {1.05, 1.06},
		"GET over loopback: time, of the floor's":                                                        {1.05, 1.06},
		"Writes to the connection for a request":                                                         {1, 1.01},
		"Connections across 429s":                                                                        {1, 1.01},
		"Processor time of a call of 1,000 callers in memory, of that of 8":                              {1.2, 1.21},
		"Processor time of a call of 1,000 callers over loopback, of that of 8":                          {1.2, 1.21},
		"Growth of a call's processor time from 8 to 1,000 callers over loopback, of the floor's growth": {1.1, 1.11},
		"Allocations of a call with the cool-down, of one without":                                       {1, 1.01},
		"A fake's first call, direct, of the floor's":                                                    {2, 2.01},
		"A fake's first call, on the wire, of the floor's":                                               {1.3, 1.31},
		"A fake's first call, over loopback, of the floor's":                                             {1.15, 1.16},
		"The fake under 64 connections, of the floor's calls/s":                                          {0.85, 0.84},
		"A call with 1,000 agents, of that with one":                                                     {1.3, 1.31},
		"A call with 1,000,000 agents, of that with one":                                                 {1.3, 1.31},
		"A call with 100,000 keys, of that with one":                                                     {1.3, 1.31},
		"Memory of an agent in the fake":                                                                 {1023, 1024},
		"Start of the fake's program":                                                                    {19.9, 20},
		"The program's calls/s, of every other program's":                                                {5, 4.99},
		"The program's processor time of a call, of every other program's":                               {0.99, 1},
		"What the client adds to a program over net/http":                                                {384, 385},
		"Modules compiled in, the client's own among them":                                               {3, 4},
	}
	require.Len(t, targets, len(bounds))
	for _, target := range targets {
		b, found := bounds[target.what]
		require.True(t, found, target.what)
		assert.Equal(t, "met", target.verdict(figureOf(b.kept, b.kept, b.kept, 1)), target.what)
		assert.Equal(t, "missed", target.verdict(figureOf(b.broken, b.broken, b.broken, 1)), target.what)
		assert.Equal(t, "not measured", target.verdict(Figure{}), target.what)
	}
}

// The median decides, and an interval with values on both sides says so.
func TestVerdictsWithinTheNoise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bound          bound
		mid, low, high float64
		want           string
	}{
		{atMost(1.2), 1.1, 1, 1.2, "met"},
		{atMost(1.2), 1.1, 1, 1.21, "met, within the noise"},
		{atMost(1.2), 1.3, 1.21, 1.4, "missed"},
		{atMost(1.2), 1.3, 1.2, 1.4, "missed, within the noise"},
		{below(1), 0.9, 0.8, 0.99, "met"},
		{below(1), 0.9, 0.8, 1, "met, within the noise"},
		{below(1), 1.1, 1, 1.2, "missed"},
		{below(1), 1.1, 0.99, 1.2, "missed, within the noise"},
		{atLeast(5), 6, 5, 7, "met"},
		{atLeast(5), 6, 4.9, 7, "met, within the noise"},
		{atLeast(5), 4, 3, 4.9, "missed"},
		{atLeast(5), 4, 3, 5, "missed, within the noise"},
		{exactly(1), 1, 1, 1.004, "met"},
		{exactly(1), 1, 1, 2, "met, within the noise"},
		{exactly(1), 1.5, 1.4, 2, "missed"},
		{exactly(1), 1.5, 0.5, 2, "missed, within the noise"},
	} {
		assert.Equal(t, c.want, target{bound: c.bound}.verdict(figureOf(c.mid, c.low, c.high, 9)), "%s: %v", c.bound.words, c)
	}
}

// Nothing at all, and it is said of each.
func TestTargetsOfNothing(t *testing.T) {
	t.Parallel()
	for _, row := range targetTable(newResults(t)).Rows {
		assert.Equal(t, []string{"not measured", "not measured"}, row[2:], row[0])
	}
}

const peers = `BenchmarkA/subject=own-2 1 100 ns/op 100 calls/s
BenchmarkA/subject=slow-2 1 400 ns/op 10 calls/s
BenchmarkA/subject=quick-2 1 125 ns/op 50 calls/s
`

// Of many peers the best counts: for times it has the least, for calls the most.
func TestNearest(t *testing.T) {
	t.Parallel()
	all := func(*Results) []string { return []string{"slow", "absent", "quick"} }
	r := newResults(t, peers)
	assert.Equal(t,
		finding{figureOf(0.8, 0.8, 0.8, 1), "the nearest is quick; not measured against absent"},
		greatest("A", "ns/op", "own", all)(r))
	assert.Equal(t,
		finding{figureOf(2, 2, 2, 1), "the nearest is quick; not measured against absent"},
		least("A", "calls/s", "own", all)(r))
	assert.Equal(t, finding{}, least("A", "B/op", "own", all)(r))
}

// The machine is slower with each round, and the floor grows too: what is left
// is what the client grows beyond it.
func TestGrowth(t *testing.T) {
	t.Parallel()
	var rounds []string
	for _, slower := range []int{1, 7, 3} {
		rounds = append(rounds, fmt.Sprintf(
			"BenchmarkC/n=8/subject=own-2 1 %d ns\nBenchmarkC/n=9/subject=own-2 1 %d ns\nBenchmarkC/n=8/subject=floor-2 1 %d ns\nBenchmarkC/n=9/subject=floor-2 1 %d ns\n",
			100*slower, 300*slower, 80*slower, 160*slower))
	}
	measure := growth(id{"C/n=8", "own"}, id{"C/n=9", "own"}, id{"C/n=8", "floor"}, id{"C/n=9", "floor"}, "ns")
	assert.Equal(t, finding{figure: figureOf(1.5, 1.5, 1.5, 3)}, measure(newResults(t, rounds...)))
	assert.Equal(t, finding{}, measure(newResults(t, "BenchmarkC/n=8/subject=own-2 1 1 ns\n")))
}

// Each target looks at figures of its own: without them it is not measured,
// and with them it is.
func TestTargetsRead(t *testing.T) {
	t.Parallel()
	read := map[string]string{
		"POST in memory: allocations, of go-retryablehttp's":                                             cannedPost,
		"GET in memory: allocations, of go-retryablehttp's":                                              cannedGet,
		"POST in memory: time, of go-retryablehttp's":                                                    cannedPost,
		"GET in memory: time, of go-retryablehttp's":                                                     cannedGet,
		"POST in memory: allocations, of every SDK's":                                                    cannedPost,
		"GET in memory: allocations, of every SDK's":                                                     cannedGet,
		"POST in memory: time, of every SDK's":                                                           cannedPost,
		"GET in memory: time, of every SDK's":                                                            cannedGet,
		"POST over loopback: time, of the floor's":                                                       "Call/over=loopback/call=post",
		"GET over loopback: time, of the floor's":                                                        "Call/over=loopback/call=get",
		"Writes to the connection for a request":                                                         "Connection/subject=agentmessaging",
		"Connections across 429s":                                                                        "Connection/subject=agentmessaging",
		"Processor time of a call of 1,000 callers in memory, of that of 8":                              "Callers/over=canned/callers=1000/subject=agentmessaging",
		"Processor time of a call of 1,000 callers over loopback, of that of 8":                          "Callers/over=loopback/callers=1000/subject=agentmessaging",
		"Growth of a call's processor time from 8 to 1,000 callers over loopback, of the floor's growth": "Callers/over=loopback/callers=1000/subject=net-http-by-hand",
		"Allocations of a call with the cool-down, of one without":                                       "Limiter/limiter=cool-down/callers=1",
		"A fake's first call, direct, of the floor's":                                                    "Fresh/direct",
		"A fake's first call, on the wire, of the floor's":                                               "Fresh/wire",
		"A fake's first call, over loopback, of the floor's":                                             "Fresh/loopback",
		"The fake under 64 connections, of the floor's calls/s":                                          "Throughput",
		"A call with 1,000 agents, of that with one":                                                     "Scale/agents=1000/keys=1",
		"A call with 1,000,000 agents, of that with one":                                                 "", // the fixture lacks it
		"A call with 100,000 keys, of that with one":                                                     "Scale/agents=1/keys=100000",
		"Memory of an agent in the fake":                                                                 "Memory",
		"Start of the fake's program":                                                                    "Program/subject=agentmessaging-fake",
		"The program's calls/s, of every other program's":                                                "Program/subject=agentmessaging-fake",
		"The program's processor time of a call, of every other program's":                               "Program/subject=agentmessaging-fake",
		"What the client adds to a program over net/http":                                                "Weight/subject=agentmessaging",
		"Modules compiled in, the client's own among them":                                               "Weight/subject=agentmessaging",
	}
	_, f := readFixture(t)
	for _, target := range targets {
		c, found := read[target.what]
		require.True(t, found, target.what)
		if c != "" {
			wantReads(t, target, f, c)
		}
	}
}

func wantReads(t *testing.T, of target, f *File, bench string) {
	t.Helper()
	with, err := Read(f)
	require.NoError(t, err)
	assert.NotZero(t, of.measure(with).figure.Rounds, of.what)
	without, err := Read(f.without(bench))
	require.NoError(t, err)
	assert.Zero(t, of.measure(without).figure.Rounds, of.what)
}

// without drops a benchmark's lines.
func (f *File) without(name string) *File {
	out := &File{}
	for _, b := range f.Blocks {
		var kept strings.Builder
		for line := range strings.Lines(b.Output) {
			if !strings.HasPrefix(line, "Benchmark"+name+"-") && !strings.HasPrefix(line, "Benchmark"+name+"/") {
				kept.WriteString(line)
			}
		}
		out.Blocks = append(out.Blocks, Block{b.Suite, b.Round, kept.String()})
	}
	return out
}
