package report

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const golden = "testdata/tables.md"

var update = flag.Bool("update", false, "write "+golden+" anew")

func fixture(t *testing.T) *Results {
	t.Helper()
	_, f := readFixture(t)
	r, err := Read(f)
	require.NoError(t, err)
	return r
}

// Three rounds on a machine that is three times as slow in the second, without
// prism, most SDKs, two paths of the client, the largest fake and others. A GET
// of vault/api failed in the second.
func TestTables(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, table := range fixture(t).Tables() {
		got.WriteString("## " + table.Name + "\n\n" + table.Markdown() + "\n")
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got.String())
}

// A terminal gets the tables that have something, and those about all.
func TestMeasuredTables(t *testing.T) {
	t.Parallel()
	var names []string
	for _, table := range newResults(t, "BenchmarkMemory-2 1 1 B/agent\n").Measured() {
		names = append(names, table.Name)
	}
	assert.Equal(t, []string{"machine", "memory", "targets"}, names)
}

func TestWriteText(t *testing.T) {
	t.Parallel()
	table := &Table{Title: "Calls", Columns: []string{"Client", "Time"}}
	table.add("net/http", "4.1 µs")
	table.add("own", "10 µs")
	var b strings.Builder
	require.NoError(t, table.WriteText(&b))
	assert.Equal(t, "\nCalls\n\nClient    Time\nnet/http  4.1 µs\nown       10 µs\n", b.String())
}

func TestUnshown(t *testing.T) {
	t.Parallel()
	r := newResults(t, "BenchmarkNewest/case=odd/subject=a-2 1 1 ns/op\nBenchmarkNewest/case=odd/subject=b-2 1 1 ns/op\nBenchmarkMemory-2 1 1 B/agent\n")
	assert.Equal(t, []string{"Newest/case=odd"}, r.Unshown())
	assert.Empty(t, fixture(t).Unshown())
}

func TestPage(t *testing.T) {
	t.Parallel()
	r := fixture(t)
	empty := "# A page\n"
	for _, table := range r.Tables() {
		empty += "\n<!-- " + table.Name + ":begin -->\nstale rows\n<!-- " + table.Name + ":end -->\n"
	}
	page, err := r.Page(empty)
	require.NoError(t, err)
	assert.Contains(t, page, "\n<!-- connection:begin -->\n| Client | Writes per request | Connections across 429s |\n")
	assert.NotContains(t, page, "stale rows")
	again, err := r.Page(page)
	require.NoError(t, err)
	assert.Equal(t, page, again)

	for _, c := range []struct{ old, new, want string }{
		{"<!-- calls:begin -->\n", "", "the page lacks <!-- calls:begin -->"},
		{"<!-- calls:end -->\n", "", "the page lacks <!-- calls:end -->"},
		{"# A page\n", "<!-- called:begin -->\n", "marks for called, which is no table"},
	} {
		_, err := r.Page(strings.Replace(empty, c.old, c.new, 1))
		assert.ErrorContains(t, err, c.want)
	}
}
