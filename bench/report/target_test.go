package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each target's last figure that keeps its bound, and the first that does not.
func TestBounds(t *testing.T) {
	t.Parallel()
	bounds := []struct{ kept, broken float64 }{
		{1.25, 1.26}, {1.25, 1.26}, {1.15, 1.16}, {1.15, 1.16}, // go-retryablehttp
		{0.99, 1}, {0.99, 1}, {0.99, 1}, {0.99, 1}, // every SDK
		{1.05, 1.06}, {1.05, 1.06}, // loopback
		{1, 1.01}, {1, 1.01}, // writes, connections
		{1.2, 1.21}, {1.2, 1.21}, // 1,000 callers
		{1, 1.01},                            // the cool-down
		{2, 2.01}, {1.3, 1.31}, {1.15, 1.16}, // a first call
		{0.85, 0.84},                          // calls/s of the fake
		{1.3, 1.31}, {1.3, 1.31}, {1.3, 1.31}, // with much in it
		{1023, 1024}, // B/agent
		{19.9, 20},   // ms
		{5, 4.99},    // calls/s of the program
		{384, 385},   // KiB
		{3, 4},       // modules
	}
	require.Len(t, targets, len(bounds))
	for i, b := range bounds {
		assert.Equal(t, "met", targets[i].verdict(Figure{Mid: b.kept, High: 2000, Rounds: 1}), targets[i].what)
		assert.Equal(t, "missed", targets[i].verdict(Figure{Mid: b.broken, Rounds: 1}), targets[i].what)
		assert.Equal(t, "not measured", targets[i].verdict(Figure{}), targets[i].what)
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
		finding{Figure{0.8, 0.8, 0.8, 1}, "the nearest is quick; not measured against absent"},
		greatest("A", "ns/op", "own", all)(r))
	assert.Equal(t,
		finding{Figure{2, 2, 2, 1}, "the nearest is quick; not measured against absent"},
		least("A", "calls/s", "own", all)(r))
	assert.Equal(t, finding{}, least("A", "B/op", "own", all)(r))
}

// Each target looks at figures of its own: without them it is not measured,
// and with them it is.
func TestTargetsRead(t *testing.T) {
	t.Parallel()
	_, f := readFixture(t)
	for i, c := range []string{
		cannedPost, cannedGet, cannedPost, cannedGet, cannedPost, cannedGet, cannedPost, cannedGet,
		"Call/over=loopback/call=post", "Call/over=loopback/call=get",
		"Connection/subject=agentmessaging", "Connection/subject=agentmessaging", "Callers/over=canned/callers=1000/subject=agentmessaging", "Callers/over=loopback/callers=1000/subject=agentmessaging", "Limiter/limiter=cool-down/callers=1",
		"Fresh/direct", "Fresh/wire", "Fresh/loopback",
		"Throughput", "Scale/agents=1000/keys=1", "", "Scale/agents=1/keys=100000", "Memory",
		"Program/subject=agentmessaging-fake", "Program/subject=agentmessaging-fake",
		"Weight/subject=agentmessaging", "Weight/subject=agentmessaging",
	} {
		if c == "" { // the fixture lacks it
			continue
		}
		with, err := Read(f)
		require.NoError(t, err)
		assert.NotZero(t, targets[i].measure(with).figure.Rounds, targets[i].what)
		without, err := Read(f.without(c))
		require.NoError(t, err)
		assert.Zero(t, targets[i].measure(without).figure.Rounds, targets[i].what)
	}
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
