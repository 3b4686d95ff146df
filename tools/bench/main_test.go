package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Ratios are of values of one round, and end in the table of the page.
func TestRun(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	require.Error(t, run(strings.NewReader(""), page), "no page")
	require.NoError(t, os.WriteFile(page, []byte("# Page\n<!-- targets:begin -->\nold\n<!-- targets:end -->\nend\n"), 0o600))
	results, err := os.Open("testdata/results.txt")
	require.NoError(t, err)
	defer results.Close()
	require.NoError(t, run(results, page))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, want := range []string{
		"| POST in memory: time, of by hand | at most 0.85 | 0.8 | met |\n",
		"| POST in memory: allocations more than by hand | at most 1 | 4 | missed |\n",
		"| Start of the fake's program, to its first answer | at most 20.00ms | 2.000ms | met |\n",
		"| GET in memory: time, of by hand | at most 0.85 | not measured |  |\n",
		"processors.\n<!-- targets:end -->\nend\n",
	} {
		assert.Contains(t, string(text), want)
	}
	assert.NotContains(t, string(text), "old")
}
