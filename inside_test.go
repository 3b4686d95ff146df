package agentmessaging

import (
	"fmt"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRetryTableIsThatOfTheDocumentation holds the table in the package
// documentation, row by row, to that of the code.
func TestRetryTableIsThatOfTheDocumentation(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	require.NoError(t, err)
	_, table, found := strings.Cut(file.Doc.Text(), "---------------\n")
	require.True(t, found)
	var rows []string
	for line := range strings.Lines(table) {
		if strings.TrimSpace(line) == "" {
			break
		}
		rows = append(rows, regexp.MustCompile(`  +`).ReplaceAllString(strings.TrimSpace(line), "|"))
	}
	var want []string
	for _, row := range retryTable {
		want = append(want, fmt.Sprintf("%s|%s|%s", row.name, row.idempotent, row.post))
	}
	assert.Equal(t, want, rows)
}

func TestBackoffDoublesUpToEightSeconds(t *testing.T) {
	var waits []time.Duration
	for attempt := range 7 {
		waits = append(waits, RetryPolicy{}.withDefaults().backoff(1+attempt))
	}
	assert.Equal(t, []time.Duration{time.Second / 2, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second, 8 * time.Second}, waits)
}

// TestWaitLaws checks over many policies and answers that a wait is never
// shorter than asked or than the floor, and never longer than what may be waited.
func TestWaitLaws(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	duration := func() time.Duration {
		return time.Duration(math.Exp(random.Float64() * math.Log(math.MaxInt64)))
	}
	for range 10_000 {
		policy := RetryPolicy{MinWait: duration()}.withDefaults()
		attempt, asked, longest := 1+random.IntN(100), duration(), duration()
		wait, ok := policy.wait(attempt, asked, longest, random.Float64())
		if !ok {
			require.True(t, asked > longest || policy.backoff(attempt) > longest, "%+v: %v, %v, %v", policy, attempt, asked, longest)
			continue
		}
		require.GreaterOrEqual(t, wait, asked)
		require.GreaterOrEqual(t, wait, min(policy.MinWait, maxBackoff))
		require.LessOrEqual(t, wait, longest)
	}
}
