package otelagentmessaging_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// rows have the first cells of each row of a marked table of the README, without
// their quotes.
func rows(t *testing.T, table string, cells int) (rows []string) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(strings.ReplaceAll(string(page), "`", ""), "<!-- "+table+":begin -->\n")
	require.True(t, found, table)
	lines, _, _ := strings.Cut(after, "\n<!-- "+table+":end -->")
	for _, line := range strings.Split(lines, "\n")[2:] {
		row := strings.Split(strings.Trim(line, "| "), " | ")
		rows = append(rows, strings.Join(row[:cells], ": "))
	}
	return rows
}

// TestREADME finds in its tables all that the stories record, and no more.
func TestREADME(t *testing.T) {
	found := map[string]map[string]bool{"attributes": {}, "events": {}, "metrics": {}, "buckets": {}, "errors": {}}
	types := strings.NewReplacer("int64", "int", "float64", "double")
	for _, r := range tellAll(t) {
		for _, s := range r.spans.GetSpans() {
			for key, value := range attrsOf(s.Attributes) {
				found["attributes"][key+": "+types.Replace(fmt.Sprintf("%T", value))] = true
				if text := fmt.Sprint(value); key == "error.type" && !unicode.IsDigit(rune(text[0])) {
					found["errors"][text] = true
				}
			}
			for _, e := range s.Events {
				found["events"][e.Name+": "+strings.Join(slices.Sorted(maps.Keys(attrsOf(e.Attributes))), ", ")] = true
			}
		}
		for name, m := range r.metrics(t) {
			assert.NotEmpty(t, m.Description, name)
			kind := "counter"
			if data, ok := m.Data.(metricdata.Histogram[float64]); ok {
				kind = "histogram"
				bounds := strings.ReplaceAll(fmt.Sprint(data.DataPoints[0].Bounds), " ", ", ")
				found["buckets"][name+": "+strings.Trim(bounds, "[]")] = true
			}
			found["metrics"][name+": "+kind+": "+m.Unit] = true
		}
	}
	for table, cells := range map[string]int{"attributes": 2, "events": 2, "metrics": 3, "buckets": 2, "errors": 1} {
		assert.ElementsMatch(t, slices.Collect(maps.Keys(found[table])), rows(t, table, cells), table)
	}
}
