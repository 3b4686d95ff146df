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

// WithRandom fixes the jitter for tests; random returns values in [0, 1).
func WithRandom(random func() float64) Option {
	return func(s *settings) error {
		s.random = random
		return nil
	}
}

// TestRetryTableIsThatOfTheDocumentation holds the table in the package
// documentation to the one in the code, row by row.
func TestRetryTableIsThatOfTheDocumentation(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "client.go", nil, parser.ParseComments|parser.PackageClauseOnly)
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
		want = append(want, fmt.Sprintf("%s|%s|%s", row.outcome, row.idempotent, row.post))
	}
	assert.Equal(t, want, rows)
}

// TestWaitLaws checks over many policies and answers that a wait is never
// shorter than told or than the floor, and never longer than what may be waited.
func TestWaitLaws(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	duration := func() time.Duration {
		return time.Duration(math.Exp(random.Float64() * math.Log(math.MaxInt64)))
	}
	for range 100_000 {
		policy := RetryPolicy{MinWait: duration()}.withDefaults()
		attempt, told, longest := 1+random.IntN(100), duration(), duration()
		wait, ok := policy.wait(attempt, told, longest, random.Float64())
		if !ok {
			require.True(t, told > longest || policy.backoff(attempt) > longest)
			continue
		}
		require.GreaterOrEqual(t, wait, told)
		require.GreaterOrEqual(t, wait, min(policy.MinWait, maxBackoff))
		require.LessOrEqual(t, wait, longest)
	}
}
