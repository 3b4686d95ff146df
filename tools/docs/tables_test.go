package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

const limitsPage, errorsPage, fakePage = "docs/limits.md", "docs/errors.md", "docs/fake.md"

// TestDecisions: the fake's page has a table of what it decides, in its own words.
func TestDecisions(t *testing.T) {
	t.Chdir(root)
	table := ""
	for _, d := range fakeserver.New(t).Decisions() {
		table += fmt.Sprintf("| %s | %s | %s |\n", d.Question, spoken(d.Default), code(d.ID))
	}
	assert.True(t, strings.Contains(read(t, fakePage), table+"<!--"), "%s needs exactly these rows:\n%s", fakePage, table)
}

func code(s string) string { return "`" + s + "`" }

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

// TestLimitsPage: the page has each endpoint, each member of a
// request with its bound, and the numbers of each limit and plan.
func TestLimitsPage(t *testing.T) {
	t.Chdir(root)
	page := read(t, limitsPage)
	windows := map[time.Duration]string{time.Minute: " a minute", time.Hour: " an hour", spec.Day: " a day"}
	perIP := map[bool]string{false: "API key", true: "IP address"}
	for _, e := range spec.Endpoints {
		wantRow(t, page, code(e.Name), code(e.Method+" "+e.Path))
		wantMembers(t, page, e.Name, e.Body)
	}
	for _, l := range spec.Limits {
		wantRow(t, page, thousands(l.Max)+windows[l.Window], perIP[l.PerIP], anything, code(string(l.Key)))
	}
	for _, p := range spec.Plans {
		if p.Name != spec.PreviewPlan { // whose limits the table above has
			wantRow(t, page, "(?i)"+p.Name+anything, thousands(p.Max(0)), thousands(p.Max(1)), thousands(p.Max(2)))
		}
	}
}

const anything = `[^|]*`

// wantRow looks for a table's row that begins with these cells.
func wantRow(t *testing.T, page string, cells ...string) {
	t.Helper()
	for i, cell := range cells {
		if !strings.Contains(cell, anything) {
			cells[i] = regexp.QuoteMeta(cell)
		}
	}
	assert.Regexp(t, `(?m)^\| `+strings.Join(cells, ` *\| *`)+` *\|`, page)
}

func wantMembers(t *testing.T, page, method string, fields []*spec.Field) {
	t.Helper()
	for _, f := range fields {
		if f.Kind == spec.Object {
			wantMembers(t, page, method, f.Fields)
			continue
		}
		longest := ""
		if f.MaxLen > 0 {
			longest = "at most " + thousands(f.MaxLen)
		}
		if longest != "" || f.Required || f.Enum != nil {
			wantRow(t, page, code(method), code(f.Path), anything, longest)
		}
	}
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// TestErrorsPage: the page explains each status of each method once, and has each
// kind.
func TestErrorsPage(t *testing.T) {
	t.Chdir(root)
	page := read(t, errorsPage)
	kinds := map[string]error{
		"400 `ErrBadRequest`": agentmessaging.ErrBadRequest, "401 `ErrUnauthorized`": agentmessaging.ErrUnauthorized,
		"402 `ErrPaymentRequired`": agentmessaging.ErrPaymentRequired, "403 `ErrForbidden`": agentmessaging.ErrForbidden,
		"404 `ErrNotFound`": agentmessaging.ErrNotFound, "409 `ErrConflict`": agentmessaging.ErrConflict,
		"429 `ErrRateLimited`": agentmessaging.ErrRateLimited, "503 `ErrUnavailable`": agentmessaging.ErrUnavailable,
	}
	rows := regexp.MustCompile("(?m)^\\| (`Err\\w+`) \\| (\\d{3}) \\| ([^|]*) \\|").FindAllStringSubmatch(page, -1)
	for _, e := range spec.Endpoints {
		var explained []int
		for _, row := range rows {
			if status, _ := strconv.Atoi(row[2]); row[3] == "all" || strings.Contains(row[3], code(e.Name)) {
				explained = append(explained, status)
				assert.ErrorIs(t, &agentmessaging.Error{StatusCode: status}, kinds[row[2]+" "+row[1]], row[0])
			}
		}
		assert.Equal(t, slices.Sorted(slices.Values(e.Errors)), explained, e.Name)
	}
	for _, declared := range regexp.MustCompile(`(?m)^\t(Err\w+)\s+= errors\.New`).FindAllStringSubmatch(read(t, "errors.go"), -1) {
		assert.Contains(t, page, code(declared[1]))
	}
}
