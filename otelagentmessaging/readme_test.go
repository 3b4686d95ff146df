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
	spans, events := map[string]bool{}, map[string]bool{}
	call, request := map[string]bool{}, map[string]bool{}
	for _, r := range told(t) {
		for _, s := range r.spans.GetSpans() {
			name, attributes := s.Name, call
			switch {
			case strings.HasPrefix(name, "agentmessaging."):
				name = "agentmessaging.{method}"
			case strings.Contains(name, " "):
				name, attributes = "{http.request.method} {url.template}", request
			}
			spans[name+": "+strings.ToUpper(s.SpanKind.String())] = true
			for key, value := range attrsOf(s.Attributes) {
				attributes[key+": "+typeName(value)] = true
			}
			for _, e := range s.Events {
				events[e.Name+": "+strings.Join(sorted(attrsOf(e.Attributes)), ", ")] = true
			}
		}
	}
	assert.Equal(t, sorted(spans), column(t, "spans", 0, 1))
	assert.Equal(t, sorted(call), column(t, "call", 0, 1))
	assert.Equal(t, sorted(request), column(t, "request", 0, 1))
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

// TestREADMEErrorTypes reads the values where they stand once.
func TestREADMEErrorTypes(t *testing.T) {
	source, err := os.ReadFile("errortype.go")
	require.NoError(t, err)
	var values []string
	for _, m := range regexp.MustCompile(`(?m)^\terror\w+ += "(.+)"$`).FindAllStringSubmatch(string(source), -1) {
		values = append(values, m[1])
	}
	slices.Sort(values)
	assert.Equal(t, values, column(t, "errors", 0))
}
