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

// rows have the first cells of each row of a marked table of the README, without
// their quotes, sorted.
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
	slices.Sort(rows)
	return rows
}

func sorted[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }

// types are the conventions' words for those of Go.
var types = strings.NewReplacer("int64", "int", "float64", "double")

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
				row := key + ": " + types.Replace(fmt.Sprintf("%T", value))
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
	var found []string
	for _, row := range sorted(attributes) {
		found = append(found, row+": "+attributes[row])
	}
	assert.Equal(t, found, rows(t, "attributes", 3))
	assert.Equal(t, sorted(spans), rows(t, "spans", 2))
	assert.Equal(t, sorted(events), rows(t, "events", 2))
}

func TestREADMEMetrics(t *testing.T) {
	attributes, buckets := map[string]attrs{}, map[string]bool{}
	for _, r := range told(t) {
		for name, m := range r.metrics(t) {
			var kind string
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				kind = "counter"
				assert.True(t, data.IsMonotonic, name)
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
	assert.Equal(t, metrics, rows(t, "metrics", 4))
	assert.Equal(t, sorted(buckets), rows(t, "buckets", 2))
}

// TestREADMEErrorTypes leaves out the statuses.
func TestREADMEErrorTypes(t *testing.T) {
	told, err := os.ReadFile(storiesFile)
	require.NoError(t, err)
	values := map[string]bool{}
	for _, m := range regexp.MustCompile(`error\.type=(\D\S+)`).FindAllStringSubmatch(string(told), -1) {
		values[strings.TrimSuffix(m[1], ":")] = true
	}
	assert.Equal(t, sorted(values), rows(t, "errors", 1))
}
