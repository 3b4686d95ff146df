package simulation

import (
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateDocs = flag.Bool("update-docs", false, "measure everything and write it into docs/rate-limits.md and its charts")

const docs = "../docs"

// The page shows what the last full run found.
func TestDocument(t *testing.T) {
	if *updateDocs {
		require.NoError(t, measureAll(t).save())
	}
	f, err := loadFigures()
	require.NoError(t, err)
	for name, table := range f.tables() {
		holdTable(t, name, table)
	}
	for name, svg := range f.charts() {
		hold(t, filepath.Join(docs, name), svg)
	}
}

const remedy = "after a change that is meant: go test -run TestDocument -update-docs ."

// holdTable compares a table with the page's, between two marks.
func holdTable(t *testing.T, name, want string) {
	t.Helper()
	file := filepath.Join(docs, "rate-limits.md")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "%s has no table %s", file, name)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s: the table %s has no end", file, name)
	hold(t, file, before+begin+want+end+after)
}

// hold compares a file with what it should be, or writes it under the flag.
func hold(t *testing.T, file, want string) {
	t.Helper()
	if *updateDocs {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, want, string(got), "%s; %s", file, remedy)
}

// The charts are XML, say what they show, and are on the page.
func TestCharts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(docs, "rate-limits.md"))
	require.NoError(t, err)
	f, err := loadFigures()
	require.NoError(t, err)
	for name, svg := range f.charts() {
		assert.Contains(t, string(page), "]("+name+")")
		assert.Contains(t, svg, "<title")
		assert.Contains(t, svg, "<desc")
		assert.Contains(t, svg, "prefers-color-scheme")
		for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := decoder.Token(); err == io.EOF {
				break
			} else if !assert.NoError(t, err, name) {
				break
			}
		}
	}
}

// A few cells, measured anew, still say what the page says. The scheduler's
// order is not fixed, so they may differ a little.
func TestFiguresHold(t *testing.T) {
	t.Parallel()
	f, err := loadFigures()
	require.NoError(t, err)
	for _, p := range policies {
		for _, m := range usualModels {
			got := saturatedCell(t, m, p, fleet{4, 8})
			kept := where(f.Saturated, func(c cell) bool { return c.Model == m && c.Policy == p.name && c.P == 4 && c.N == 8 })
			require.Len(t, kept, 1)
			assert.InDelta(t, kept[0].Used, got.Used, 0.02, "%s, %s: quota used; %s", m, p.name, remedy)
			assert.InDelta(t, kept[0].Refused, got.Refused, 0.005+0.25*kept[0].Refused, "%s, %s: 429s; %s", m, p.name, remedy)
			assert.InDelta(t, kept[0].Jain, got.Jain, 0.03, "%s, %s: Jain index; %s", m, p.name, remedy)
		}
	}
}
