package otelagentmessaging_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// column has the cells of some columns of a marked table of the README, without
// their quotes, sorted.
func column(t *testing.T, table string, columns ...int) (cells []string) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(strings.ReplaceAll(string(page), "`", ""), "<!-- "+table+":begin -->\n")
	require.True(t, found, table)
	lines, _, _ := strings.Cut(after, "\n<!-- "+table+":end -->")
	for _, line := range strings.Split(lines, "\n")[2:] {
		row := strings.Split(strings.Trim(line, "| "), " | ")
		var picked []string
		for _, n := range columns {
			picked = append(picked, row[n])
		}
		cells = append(cells, strings.Join(picked, ": "))
	}
	slices.Sort(cells)
	return cells
}

func sorted[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }

// TestREADMESpans finds in the README all that the stories leave behind, and no
// more.
func TestREADMESpans(t *testing.T) {
	spans, attributes, events := map[string]bool{}, map[string]string{}, map[string]bool{}
	for _, r := range told(t) {
		for _, s := range r.spans.GetSpans() {
			name, of := s.Name, "call"
			switch {
			case strings.HasPrefix(name, "agentmessaging."):
				name = "agentmessaging.{method}"
			case strings.Contains(name, " "):
				name, of = "{http.request.method} {url.template}", "request"
			}
			spans[name+": "+strings.ToUpper(s.SpanKind.String())] = true
			for key, value := range attrsOf(s.Attributes) {
				row := key + ": " + typeName(value)
				if other := attributes[row]; other != "" && other != of {
					attributes[row] = "both"
				} else {
					attributes[row] = of
				}
			}
			for _, e := range s.Events {
				events[e.Name+": "+strings.Join(sorted(attrsOf(e.Attributes)), ", ")] = true
			}
		}
	}
	var rows []string
	for _, row := range sorted(attributes) {
		rows = append(rows, row+": "+attributes[row])
	}
	assert.Equal(t, rows, column(t, "attributes", 0, 1, 2))
	assert.Equal(t, sorted(spans), column(t, "spans", 0, 1))
	assert.Equal(t, sorted(events), column(t, "events", 0, 2))
}

// typeName is the conventions' word for a type.
func typeName(value any) string {
	switch value.(type) {
	case int64:
		return "int"
	case float64:
		return "double"
	}
	return fmt.Sprintf("%T", value)
}

func TestREADMEMetrics(t *testing.T) {
	attributes, buckets := map[string]attrs{}, map[string]bool{}
	for _, r := range told(t) {
		for name, m := range r.metrics(t) {
			kind := "gauge"
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				if data.IsMonotonic {
					kind = "counter"
				}
			case metricdata.Histogram[float64]:
				kind = "histogram"
				buckets[name+": "+strings.Trim(strings.ReplaceAll(fmt.Sprint(data.DataPoints[0].Bounds), " ", ", "), "[]")] = true
			}
			assert.NotEmpty(t, m.Description, name)
			row := name + ": " + kind + ": " + m.Unit
			if attributes[row] == nil {
				attributes[row] = attrs{}
			}
			for _, p := range pointsOf(m) {
				maps.Copy(attributes[row], p.attrs)
			}
		}
	}
	var metrics []string
	for _, row := range sorted(attributes) {
		metrics = append(metrics, row+": "+strings.Join(sorted(attributes[row]), ", "))
	}
	assert.Equal(t, metrics, column(t, "metrics", 0, 1, 2, 3))
	assert.Equal(t, sorted(buckets), column(t, "buckets", 0, 1))
}

// TestREADMEErrorTypes leaves out the statuses.
func TestREADMEErrorTypes(t *testing.T) {
	values := map[string]bool{}
	for _, r := range told(t) {
		for _, m := range r.metrics(t) {
			for _, p := range pointsOf(m) {
				if value, ok := p.attrs["error.type"].(string); ok && !regexp.MustCompile(`^\d+$`).MatchString(value) {
					values[value] = true
				}
			}
		}
	}
	assert.Equal(t, sorted(values), column(t, "errors", 0))
}
