package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

var updateFaults = flag.Bool("update-faults", false, "write what the fault matrix finds into docs/faults.md")

const faultsPage = "../../docs/faults.md"

// cell is what came of one call.
type cell struct {
	requests int
	outcome  string
	elapsed  time.Duration // virtual time only
}

// eitherWay is what becomes of a POST where the client may notice the failure
// before or after it has written the request's header: both are right.
const eitherWay = "tried again or outcome unknown"

func (c cell) String() string {
	text := fmt.Sprintf("%d requests, %s, %s", c.requests, c.outcome, c.elapsed)
	if c.outcome == eitherWay {
		text = fmt.Sprintf("%d requests, %s", c.requests, c.outcome)
	}
	return strings.Replace(text, "1 requests", "1 request", 1)
}

// columns makes the calls, and returns what becomes of GET, PUT and DELETE and of
// POST, where all must agree. A POST is sent once, unless it repeats.
func columns(t *testing.T, what string, calls []clienttest.Call, repeats bool, run func(call clienttest.Call, first bool) cell) (found [2]string) {
	t.Helper()
	for _, call := range calls {
		column := &found[0]
		if call.IsPost() {
			column = &found[1]
		}
		c := run(call, *column == "")
		if *column == "" {
			*column = c.String()
		}
		assert.Equal(t, *column, c.String(), "%s, %s: the endpoints differ", call.Name, what)
		assert.True(t, repeats || !call.IsPost() || c.requests <= 1, "%s, %s: a POST is never doubled, but here are %d", call.Name, what, c.requests)
	}
	return found
}

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
	require.True(t, found, "table %s of %s has no end", name, faultsPage)
	want := strings.Join(p.lines, "\n") + "\n"
	if *updateFaults {
		require.NoError(t, os.WriteFile(faultsPage, []byte(before+begin+want+end+after), 0o644))
		return
	}
	for _, line := range p.lines {
		assert.True(t, strings.Contains(table, line+"\n"), "%s lacks: %s", faultsPage, line)
	}
	assert.Equal(t, len(want), len(table), "%s is not what happens; after a change that is meant: go test ./internal/e2e -run Matrix -update-faults", faultsPage)
}
