package agentmessaging

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// retryTable is the table of the package documentation.
var retryTable = []*outcome{
	outcomeSuccess, outcomeUnsent, outcomeLost, outcomeLimited, outcomeGatewayError, outcomeUnavailable, outcomeServerError, outcomeOther,
	outcomeDenied, outcomeEnded, outcomeEndedSent, outcomeRefusedHere,
}

// TestRetryTableMatchesTheDocumentation compares the table in the package documentation,
// row by row, with the outcomes in the code.
func TestRetryTableMatchesTheDocumentation(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(source), "---------------\n")
	table, _, _ = strings.Cut(table, "//\n")
	columns := regexp.MustCompile(`  +|\t`)
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		row := retryTable[i]
		assert.Equal(t, []string{"//", row.name, string(row.idempotent), string(row.post)}, columns.Split(line, -1), row.name)
	}
	assert.Equal(t, len(retryTable), strings.Count(table, "\n"), "rows")
	code, err := os.ReadFile("retry.go")
	require.NoError(t, err)
	assert.Equal(t, len(retryTable), strings.Count(string(code), "= &outcome{"), "outcomes in the code")
}

// TestRetryBudget checks that the budget gives ten retries at once, two more each second,
// and one for each five calls that succeeded, up to a hundred.
func TestRetryBudget(t *testing.T) {
	budget, now := new(retryBudget), time.Time{}
	for _, tt := range []struct {
		after     time.Duration
		successes int
		want      int // retries that the budget gives now
	}{
		{0, 0, 10}, {time.Second, 0, 2}, {0, 0, 0}, {4 * time.Second, 0, 8}, {time.Hour, 0, 10},
		{0, 4, 0}, {0, 1, 1}, {0, 10_000, 100}, {-time.Hour, 0, 0}, {time.Second, 4, 2},
	} {
		now = now.Add(tt.after)
		for range tt.successes {
			budget.succeed()
		}
		got := 0
		for budget.take(now) {
			got++
		}
		assert.Equal(t, tt.want, got, "%+v", tt)
	}
}
