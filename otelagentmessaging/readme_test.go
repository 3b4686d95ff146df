package otelagentmessaging_test

import (
	"context"
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

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// table is a marked table of the README: rows of cells without their quotes.
func table(t *testing.T, name string) [][]string {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(page), "<!-- "+name+":begin -->\n")
	require.True(t, found, name)
	lines, _, _ := strings.Cut(after, "<!-- "+name+":end -->")
	var rows [][]string
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "`", "")
		}
		rows = append(rows, cells)
	}
	return rows
}

// column is a table's, sorted.
func column(rows [][]string, i ...int) []string {
	var cells []string
	for _, row := range rows {
		var picked []string
		for _, n := range i {
			picked = append(picked, row[n])
		}
		cells = append(cells, strings.Join(picked, ": "))
	}
	slices.Sort(cells)
	return cells
}

func sorted[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }

// everything makes calls until each span, event, metric and attribute has been
// seen.
func everything(t *testing.T, then func(r *telemetry)) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		every(ctx, client)
		fake.Inject(fakeserver.RateLimited("3")).Times(2)
		_ = send(ctx, fake, client)
		fake.Inject(fakeserver.RateLimited("3")).Nth(2)
		_ = send(ctx, fake, client)
		_, _ = client.GetAgent(ctx, "missing")
		then(r)
	}, agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 2, MaxWait: exactWait}))
}

func TestREADMESpans(t *testing.T) {
	everything(t, func(r *telemetry) {
		spans, events := map[string]bool{}, map[string]bool{}
		call, request := map[string]bool{}, map[string]bool{}
		for _, s := range r.ended() {
			name, attributes := s.Name, call
			switch {
			case strings.HasPrefix(name, "agentmessaging."):
				name = "agentmessaging.{method}"
			case strings.Contains(name, " "):
				name, attributes = "{http.request.method} {url.template}", request
			}
			spans[name+": "+strings.ToUpper(s.Kind.String())] = true
			for key, value := range s.Attrs {
				attributes[key+": "+typeName(value)] = true
			}
			for _, e := range s.Events {
				events[e.Name+": "+strings.Join(sorted(e.Attrs), ", ")] = true
			}
		}
		assert.Equal(t, sorted(spans), column(table(t, "spans"), 0, 1))
		assert.Equal(t, sorted(call), column(table(t, "call"), 0, 1))
		assert.Equal(t, sorted(request), column(table(t, "request"), 0, 1))
		assert.Equal(t, sorted(events), column(table(t, "events"), 0, 2))
	})
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
	everything(t, func(r *telemetry) {
		metrics, buckets := map[string]bool{}, map[string]bool{}
		for name, m := range r.metrics(t) {
			kind := "counter"
			if data, ok := m.Data.(metricdata.Histogram[float64]); ok {
				kind = "histogram"
				buckets[name+": "+strings.Trim(strings.ReplaceAll(fmt.Sprint(data.DataPoints[0].Bounds), " ", ", "), "[]")] = true
			}
			attributes := attrs{}
			for _, p := range r.points(t, name) {
				attributes = attributes.with(p.Attrs)
			}
			metrics[strings.Join([]string{name, kind, m.Unit, strings.Join(sorted(attributes), ", ")}, ": ")] = true
		}
		rows := table(t, "metrics")
		for _, row := range rows {
			names := strings.Split(row[3], ", ")
			slices.Sort(names)
			row[3] = strings.Join(names, ", ")
		}
		assert.Equal(t, sorted(metrics), column(rows, 0, 1, 2, 3))
		assert.Equal(t, sorted(buckets), column(table(t, "buckets"), 0, 1))
	})
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
	assert.Equal(t, values, column(table(t, "errors"), 0))
}

// TestNoticeNamesEveryModule holds NOTICE to go.mod.
func TestNoticeNamesEveryModule(t *testing.T) {
	gomod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	notice, err := os.ReadFile("../NOTICE")
	require.NoError(t, err)
	modules := regexp.MustCompile(`(?m)^\t(\S+ v\S+)`).FindAllStringSubmatch(string(gomod), -1)
	require.NotEmpty(t, modules)
	for _, m := range modules {
		if !strings.HasPrefix(m[1], "github.com/agent-messaging-service/") {
			assert.True(t, strings.Contains(string(notice), m[1]+"\n"), "NOTICE lacks %s", m[1])
		}
	}
}
