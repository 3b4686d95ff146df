package agentmessaging_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateFaults = flag.Bool("update-faults", false, "write what the fault matrix finds into docs/faults.md")

const faultsPage = "docs/faults.md"

// page is one table of docs/faults.md, between two marks.
type page struct{ lines []string }

func newPage(columns ...string) *page {
	p := &page{}
	p.row(columns...)
	p.lines = append(p.lines, strings.Repeat("|---", len(columns))+"|")
	return p
}

func (p *page) row(cells ...string) {
	p.lines = append(p.lines, "| "+strings.Join(cells, " | ")+" |")
}

// hold compares the table with the page, or writes it there under the flag.
func (p *page) hold(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(faultsPage)
	require.NoError(t, err)
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "%s has no table %s", faultsPage, name)
	table, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := strings.Join(p.lines, "\n") + "\n"
	if *updateFaults {
		require.NoError(t, os.WriteFile(faultsPage, []byte(before+begin+want+end+after), 0o644))
		return
	}
	for _, line := range p.lines {
		assert.True(t, strings.Contains(table, line+"\n"), "%s lacks: %s", faultsPage, line)
	}
	assert.Equal(t, len(want), len(table), "%s is not what happens; after a change that is meant: go test -run Matrix -update-faults .", faultsPage)
}
