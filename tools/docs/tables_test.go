package docs_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

var update = flag.Bool("update", false, "rewrite the generated tables of docs")

const limitsPage, errorsPage, fakePage = "docs/limits.md", "docs/errors.md", "docs/fake.md"

// TestTables holds the tables between markers to the code that they are
// about. make tables rewrites them.
func TestTables(t *testing.T) {
	t.Chdir(root)
	for name, table := range map[string]struct{ page, want string }{
		"endpoints": {limitsPage, endpointTable()},
		"retries":   {limitsPage, retryTable(t)},
		"limits":    {limitsPage, limitTable(t)},
		"plans":     {limitsPage, planTable()},
		"decisions": {fakePage, decisionTable(t)},
	} {
		head, got, tail := cut(t, read(t, table.page), name)
		if *update {
			require.NoError(t, os.WriteFile(table.page, []byte(head+table.want+tail), 0o644))
			continue
		}
		assert.True(t, table.want == got, "table %s of %s is out of date: make tables", name, table.page)
	}
}

// cut splits a page at the markers of a table, which stay with head and tail.
func cut(t *testing.T, page, name string) (head, table, tail string) {
	t.Helper()
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	head, rest, hasBegin := strings.Cut(page, begin)
	table, tail, hasEnd := strings.Cut(rest, end)
	require.True(t, hasBegin && hasEnd, "a marker of table %s is missing", name)
	return head + begin, table, end + tail
}

// markdown writes a table; the first row is its head.
func markdown(rows ...[]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

func code(s string) string { return "`" + s + "`" }

func endpointTable() string {
	rows := [][]string{{"Method", "Endpoint", "Errors"}}
	for _, e := range spec.Endpoints {
		var statuses []string
		for _, status := range e.Errors {
			statuses = append(statuses, strconv.Itoa(status))
		}
		rows = append(rows, []string{code(e.Name), code(e.Method + " " + e.Path), strings.Join(statuses, ", ")})
	}
	return markdown(rows...)
}

// retryTable is the one of the package documentation, which another test
// holds to the table that the client works by.
func retryTable(t *testing.T) string {
	var rows [][]string
	columns := regexp.MustCompile(` {2,}`)
	for line := range strings.Lines(read(t, "doc.go")) {
		cells := columns.Split(strings.TrimSpace(strings.TrimPrefix(line, "//\t")), -1)
		if strings.HasPrefix(line, "//\t") && len(cells) == 3 && !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	require.Len(t, rows, 13, "the package documentation has a table of twelve outcomes")
	rows[0][0] = "How an attempt ended"
	return markdown(rows...)
}

// scopes are the words of interface 8.1.
var scopes = map[spec.LimitKey]string{
	spec.KeyMinute:           "requests",
	spec.IPMinute:            "requests",
	spec.KeyDay:              "requests",
	spec.AgentCreateKeyDay:   "agent creations",
	spec.AgentCreateIPMinute: "agent creations",
	spec.BYOKSetKeyHour:      "BYOK sets: `SetBYOK`, and `CreateAgent` with `LLM.APIKey`",
	spec.WarmUpKeyHour:       "warm-ups",
}

var windows = map[time.Duration]string{time.Minute: " a minute", time.Hour: " an hour", spec.Day: " a day"}

func limitTable(t *testing.T) string {
	rows := [][]string{{"Limit", "Per", "What counts", "`limit_key` of the fake"}}
	for _, l := range spec.Limits {
		require.Contains(t, scopes, l.Key)
		require.Contains(t, windows, l.Window)
		per := "API key"
		if l.PerIP {
			per = "IP address"
		}
		rows = append(rows, []string{thousands(l.Max) + windows[l.Window], per, scopes[l.Key], code(string(l.Key))})
	}
	return markdown(rows...)
}

func planTable() string {
	rows := [][]string{{"Plan", "Requests/minute per key", "Requests/minute per IP", "Requests/day per key"}}
	names := map[string]string{"free": "Free (inactive)", "pro": "Pro", "byok": "BYOK"}
	for _, p := range spec.Plans {
		if name, listed := names[p.Name]; listed {
			rows = append(rows, []string{name, thousands(p.Max(0)), thousands(p.Max(1)), thousands(p.Max(2))})
		}
	}
	return markdown(rows...)
}

// decisionTable is what the fake decides, in its own words.
func decisionTable(t *testing.T) string {
	rows := [][]string{{"Question", "The fake's answer", "`Like` knows it as"}}
	for _, d := range fakeserver.New(t).Decisions() {
		rows = append(rows, []string{d.Question, spoken(d.Default), code(d.ID)})
	}
	return markdown(rows...)
}

// spoken is an answer, given as JSON, for a reader.
func spoken(answer string) string {
	switch {
	case answer == "true":
		return "yes"
	case answer == "false":
		return "no"
	case strings.HasPrefix(answer, "{"):
		return code(strings.ReplaceAll(answer, `,"`, `, "`))
	}
	return strings.Trim(answer, `"`)
}

// TestBounds: the page has each member of each request, with its bound.
func TestBounds(t *testing.T) {
	t.Chdir(root)
	got := tableRows(t, limitsPage, "bounds")
	var add func(method string, fields []*spec.Field)
	add = func(method string, fields []*spec.Field) {
		for _, f := range fields {
			if f.Kind == spec.Object {
				add(method, f.Fields)
				continue
			}
			longest := ""
			if f.MaxLen > 0 {
				longest = "at most " + thousands(f.MaxLen)
			}
			require.NotEmpty(t, got, "%s %s is missing", method, f.Path)
			assert.Equal(t, []string{code(method), code(f.Path), longest}, slices.Delete(slices.Clone(got[0][:4]), 2, 3))
			got = got[1:]
		}
	}
	for _, e := range spec.Endpoints {
		add(e.Name, e.Body)
	}
	assert.Empty(t, got)
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// tableRows are the cells of a table between markers, without its head.
func tableRows(t *testing.T, file, name string) (rows [][]string) {
	t.Helper()
	_, table, _ := cut(t, read(t, file), name)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	require.Greater(t, len(rows), 2, "table %s of %s", name, file)
	return rows[2:]
}

// TestErrorsPage: the page explains each status of each method once, and has each
// kind.
func TestErrorsPage(t *testing.T) {
	t.Chdir(root)
	kinds := map[string]error{
		"400 `ErrBadRequest`": agentmessaging.ErrBadRequest, "401 `ErrUnauthorized`": agentmessaging.ErrUnauthorized,
		"402 `ErrPaymentRequired`": agentmessaging.ErrPaymentRequired, "403 `ErrForbidden`": agentmessaging.ErrForbidden,
		"404 `ErrNotFound`": agentmessaging.ErrNotFound, "409 `ErrConflict`": agentmessaging.ErrConflict,
		"429 `ErrRateLimited`": agentmessaging.ErrRateLimited, "503 `ErrUnavailable`": agentmessaging.ErrUnavailable,
	}
	rows := tableRows(t, errorsPage, "errors")
	var want, got []string
	for _, e := range spec.Endpoints {
		for _, status := range e.Errors {
			want = append(want, fmt.Sprintf("%d %s", status, e.Name))
		}
		for _, cells := range rows {
			status, _ := strconv.Atoi(cells[1])
			if status < 400 || cells[2] != "all" && !strings.Contains(cells[2], code(e.Name)) {
				continue
			}
			got = append(got, fmt.Sprintf("%d %s", status, e.Name))
			assert.ErrorIs(t, &agentmessaging.Error{StatusCode: status}, kinds[cells[1]+" "+cells[0]], cells[1])
		}
	}
	assert.ElementsMatch(t, want, got)
	for _, declared := range regexp.MustCompile(`(?m)^\t(Err\w+)\s+= errors\.New`).FindAllStringSubmatch(read(t, "errors.go"), -1) {
		assert.Contains(t, read(t, errorsPage), code(declared[1]))
	}
}
