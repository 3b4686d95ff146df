package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	docs   = "../../../docs"
	remedy = `in the folder bench, "go run . -draw" draws it from results.txt`
)

// The page and its pictures show what bench/results.txt has, and all of it.
func TestDocument(t *testing.T) {
	t.Parallel()
	f, err := Parse(read(t, "../results.txt"))
	require.NoError(t, err)
	r, err := Read(f)
	require.NoError(t, err)
	page := read(t, filepath.Join(docs, "performance.md"))
	want, err := r.Page(page)
	require.NoError(t, err)
	assert.True(t, want == page, "docs/performance.md: "+remedy) // Equal would print it whole
	for name, svg := range r.Charts() {
		assert.True(t, svg == read(t, filepath.Join(docs, name)), name+": "+remedy)
		assert.Contains(t, page, "]("+name+")")
	}
	assert.Empty(t, r.Unshown(), "benchmarks that are in no table of topics.go")
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}
