package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
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

// String leaves out what is usual: one request, and no wait.
func (c cell) String() string {
	if c.outcome == eitherWay {
		return c.outcome
	}
	text := c.outcome
	if c.requests != 1 {
		text = fmt.Sprintf("%d requests, %s", c.requests, c.outcome)
	}
	if c.elapsed > 0 {
		text += ", " + c.elapsed.String()
	}
	return text
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

// page is one table of docs/faults.md, between two marks; the first row is its
// head.
type page struct{ rows [][]string }

func newPage(columns ...string) *page { return &page{[][]string{columns}} }

// row adds a row, or joins its first cell to the row that ends alike.
func (p *page) row(cells ...string) {
	for _, row := range p.rows {
		if slices.Equal(row[1:], cells[1:]) {
			row[0] += "; " + cells[0]
			return
		}
	}
	p.rows = append(p.rows, cells)
}

func (p *page) String() string {
	var b strings.Builder
	for i, row := range p.rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

// hold compares the table with the page, or writes it there under the flag.
func (p *page) hold(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(faultsPage)
	require.NoError(t, err)
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, hasBegin := strings.Cut(string(text), begin)
	table, after, hasEnd := strings.Cut(rest, end)
	require.True(t, hasBegin && hasEnd, "%s has no table %s", faultsPage, name)
	if *updateFaults {
		require.NoError(t, os.WriteFile(faultsPage, []byte(before+begin+p.String()+end+after), 0o644))
		return
	}
	assert.Equal(t, p.String(), table, "%s is out of date; to rewrite it: go test ./internal/e2e -run Matrix -update-faults", faultsPage)
}
