package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
)

// newResults reads one block for each round.
func newResults(t *testing.T, rounds ...string) *Results {
	t.Helper()
	f := &File{}
	for i, output := range rounds {
		f.Blocks = append(f.Blocks, Block{"client", i + 1, output})
	}
	r, err := Read(f)
	require.NoError(t, err)
	return r
}

func TestNames(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]id{
		"Call/over=canned/call=post/subject=stripe-go-2": {"Call/over=canned/call=post", "stripe-go"},
		"Weight/subject=agentmessaging":                  {"Weight", "agentmessaging"},
		"Fresh/direct-16":                                {"Fresh/direct", ""},
		"Scale/agents=1/keys=1-2":                        {"Scale/agents=1/keys=1", ""},
		"Suite":                                          {"Suite", ""},
	} {
		assert.Equal(t, want, idOf(benchfmt.Name(in)), in)
	}
}

// Nanoseconds stay what they are, whatever the unit is called.
func TestUnits(t *testing.T) {
	t.Parallel()
	r := newResults(t, "BenchmarkA-2 10 1500 ns/op 40 cpu-ns/op 7 MB/s 3 allocs/op 0.5 x-floor\n")
	for unit, want := range map[string]float64{"ns/op": 1500, "cpu-ns/op": 40, "MB/s": 7, "allocs/op": 3, "x-floor": 0.5} {
		assert.InDelta(t, want, r.figure(id{"A", ""}, unit).Mid, 1e-9, unit)
	}
}

// The machine gets slower and slower while both are measured, and by more than
// they differ: the ratio is the same in each round, and so it is in the end.
func TestDriftCancels(t *testing.T) {
	t.Parallel()
	var rounds []string
	for i, slower := range []int{1, 2, 10, 3, 7, 5, 4, 30} {
		out := fmt.Sprintf("BenchmarkA/subject=floor-2 10 %d ns/op\nBenchmarkA/subject=own-2 10 %d ns/op\n", 100*slower, 150*slower)
		if i == 2 { // a failure: without both there is no ratio
			out = fmt.Sprintf("BenchmarkA/subject=floor-2 10 %d ns/op\n", 100*slower)
		}
		rounds = append(rounds, out)
	}
	r := newResults(t, rounds...)
	ownID, floorID := id{"A", "own"}, id{"A", "floor"}
	assert.Equal(t, figureOf(1.5, 1.5, 1.5, 7), r.ratio(ownID, floorID, "ns/op"))
	assert.InDelta(t, 1/1.5, r.ratio(floorID, ownID, "ns/op").Mid, 1e-9)
	assert.Equal(t, figureOf(600, 150, 4500, 7), r.figure(ownID, "ns/op"))
	assert.Equal(t, Figure{}, r.ratio(ownID, id{"A", "nobody"}, "ns/op"))
	assert.Equal(t, Figure{}, r.ratio(ownID, floorID, "B/op"))
}

// A figure tells that rounds are missing, and so does a ratio where either has
// failed in some.
func TestFewerRoundsAreSaid(t *testing.T) {
	t.Parallel()
	both := "BenchmarkA/subject=own-2 10 150 ns/op\nBenchmarkA/subject=floor-2 10 100 ns/op\n"
	r := newResults(t, both, both, "BenchmarkA/subject=own-2 10 150 ns/op\n")
	r.file.Header = []Pair{Measured("client", "2026-05-01, 3 rounds of 1x")}
	ownID, floorID := id{"A", "own"}, id{"A", "floor"}
	assert.Equal(t, "150 ns", nanoseconds.cell(r.figure(ownID, "ns/op")))
	assert.Equal(t, "100 ns, of 2 rounds", nanoseconds.cell(r.figure(floorID, "ns/op")))
	assert.Equal(t, "1.50, of 2 rounds", times.cell(r.ratio(ownID, floorID, "ns/op")))
	assert.Equal(t, notMeasured, times.cell(r.ratio(ownID, id{"A", "nobody"}, "ns/op")))
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"BenchmarkA-2 10 1 ns/op\nBenchmarkA-2 10 2 ns/op\n": "round 7 has A-2 twice",
		"BenchmarkA-2 ten 1 ns/op\n":                         "round 7 of fake:1: parsing iteration count",
	} {
		_, err := Read(&File{Blocks: []Block{{"fake", 7, in}}})
		assert.ErrorContains(t, err, want)
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	r := newResults(t, "BenchmarkCall/subject=own-2 1 1 ns/op\nBenchmarkCall/subject=peer-2 1 1 ns/op\nBenchmarkOther/subject=else-2 1 1 ns/op\n")
	assert.Equal(t, []string{"missing", "own", "peer"}, r.subjects("Call", "missing", "own"))
}

// Clients that were not measured are there all the same, and one that nobody
// expects is too.
func TestClients(t *testing.T) {
	t.Parallel()
	expected := []string{
		"net-http-by-hand", "go-retryablehttp", "go-retryablehttp-with-a-deadline",
		"agentmessaging", "agentmessaging-with-a-deadline",
		"anthropic-sdk-go", "go-github", "oapi-codegen", "openai-go", "resend-go", "slack-go", "stripe-go", "vault-api",
	}
	nothing := newResults(t)
	assert.Equal(t, expected, clients(nothing))
	assert.Equal(t, expected[5:], sdks(nothing))
	assert.Equal(t, append([]string{"go-retryablehttp", "agentmessaging"}, expected[5:]...), weighed(nothing))
	more := newResults(t, "BenchmarkCall/over=canned/subject=newest-2 1 1 ns/op\n")
	assert.Equal(t, append(expected, "newest"), clients(more))
}
