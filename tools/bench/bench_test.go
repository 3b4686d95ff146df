package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
)

// lines are the results of what benchmarks print.
func lines(t *testing.T, text string) *results {
	t.Helper()
	r := newResults()
	require.NoError(t, r.add(benchfmt.NewReader(strings.NewReader(text), "test")))
	return r
}

const three = `suite: client
round: 1
BenchmarkCall/over=canned/call=post/subject=net-http-by-hand-2 10 1000 ns/op 2048 B/op 40 allocs/op
BenchmarkCall/over=canned/call=post/subject=agentmessaging-2 10 1200 ns/op 2048 B/op 44 allocs/op
BenchmarkExtra/on=none-2 10 1000 ns/op 40 allocs/op
BenchmarkExtra/on=call-info-2 10 1040 ns/op 43 allocs/op
round: 2
BenchmarkCall/over=canned/call=post/subject=net-http-by-hand-2 10 2000 ns/op 2048 B/op 40 allocs/op
BenchmarkCall/over=canned/call=post/subject=agentmessaging-2 10 2800 ns/op 2048 B/op 44 allocs/op
round: 3
BenchmarkCall/over=canned/call=post/subject=agentmessaging-2 10 9000 ns/op 2048 B/op 44 allocs/op
`

// Ratios are of values of one round, and the table is as the page has it.
func TestTable(t *testing.T) {
	assert.Equal(t, `| What | Of | Time | × floor | Allocations | × floor | Memory | × floor |
| --- | --- | --- | --- | --- | --- | --- | --- |
| POST | net/http by hand | 1.5 µs (1 to 2 µs) | 1.00 | 40 | 1.00 | 2 KiB | 1.00 |
| POST | agentmessaging | 2.8 µs (1.2 to 9 µs) | 1.30 (1.20 to 1.40) | 44 | 1.10 | 2 KiB | 1.00 |
`, tables[0].markdown(lines(t, three)))
}

// Each target says what the fixture lets it say.
func TestTargets(t *testing.T) {
	said := targetTable(lines(t, three))
	assert.Contains(t, said, "| WithCallInfo: time, of a call without | at most 1.05 | 1.04 | met |")
	assert.Contains(t, said, "| WithCallInfo: allocations more | at most 2 | 3 | missed |")
	assert.Contains(t, said, "| A logger at Info: time | at most 1.03 | not measured | not measured |")
	assert.Equal(t, "missed, within the noise", atMost(2).verdict(figure{mid: 3, low: 1, high: 4, rounds: 2}))
	assert.Equal(t, "met", atLeast(2).verdict(figure{mid: 3, low: 2, high: 4, rounds: 2}))
}

// Ten rounds have an interval: the second and the ninth value.
func TestFigure(t *testing.T) {
	s := series{}
	for i, v := range []float64{10, 2, 9, 3, 8, 4, 7, 5, 6, 1} {
		s[i] = v
	}
	assert.Equal(t, figure{mid: 5.5, low: 2, high: 9, rounds: 10}, s.figure())
}

// The page and its pictures show what results.txt has, and all is measured.
func TestDocument(t *testing.T) {
	r, err := load(resultsFile)
	require.NoError(t, err)
	before, err := os.ReadFile(page)
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "performance.md")
	require.NoError(t, os.WriteFile(copied, before, 0o600))
	require.NoError(t, r.draw(copied))
	for _, file := range []string{".md", ".svg", "-extras.svg"} {
		is, err := os.ReadFile(strings.TrimSuffix(page, ".md") + file)
		require.NoError(t, err)
		want, err := os.ReadFile(strings.TrimSuffix(copied, ".md") + file)
		require.NoError(t, err)
		assert.True(t, string(is) == string(want), "performance%s is not what results.txt says: go run . -draw", file)
	}
	assert.NotContains(t, string(before), "not measured")
	assert.NotRegexp(t, `missed(, within the noise)? \|`, string(before), "a target that is missed says why, in targets.go")
	assert.Error(t, r.draw("bench_test.go"), "a page without marks")
}

// A suite that cannot be built is an error, and the others are measured.
func TestMeasure(t *testing.T) {
	all := []suite{{name: "gone", folder: "gone"}, {name: "start", folder: "client", bench: "^BenchmarkPath$/^case=error$"}}
	r, err := measure(t.Context(), options{rounds: 2, benchtime: "1x"}, all)
	assert.ErrorContains(t, err, "gone, round 1: not built")
	assert.Len(t, r.order, 3)
	assert.Len(t, r.lines, 6)
	file := filepath.Join(t.TempDir(), "results.txt")
	require.NoError(t, r.save(file))
	again, err := load(file)
	require.NoError(t, err)
	assert.Equal(t, r.series, again.series)
}
