package docs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
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

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	quoted  = regexp.MustCompile("`[^`\n]*`")
	links   = regexp.MustCompile(`\]\(<?([^)\s>]+)>?\)|(?:href|src)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *#*$`)
	titled  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	public  = regexp.MustCompile(`^(mailto:|https://[\w-]+\.[\w.-]+(/|$))`)
	unnamed = regexp.MustCompile(`[^\pL\pN_-]`)
)

// TestLinks follows the relative links of every page, to headings too. Others are
// only public addresses: nothing is fetched.
func TestLinks(t *testing.T) {
	t.Chdir(root)
	assert.Error(t, problem(t, "README.md", "docs/fake.md#gone"))
	assert.Error(t, problem(t, "docs/fake.md", "README.md"))
	for _, page := range filesOf(t, ".md") {
		text := quoted.ReplaceAllString(fenced.ReplaceAllString(read(t, page), ""), "code")
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			assert.NoError(t, problem(t, page, m[1]+m[2]), "%s: %s", page, m[0])
		}
	}
}

// problem is what is wrong with a link of a page.
func problem(t *testing.T, page, link string) error {
	if public.MatchString(link) {
		return nil
	}
	file, fragment, _ := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = path.Join(path.Dir(page), file)
	}
	if _, err := os.Stat(target); err != nil {
		return err
	}
	if fragment != "" && strings.HasSuffix(target, ".md") && !slices.Contains(anchors(read(t, target)), fragment) {
		return errors.New("there is no such heading")
	}
	return nil
}

// anchors are the names that a forge gives to the headings of a page: small
// letters, digits, and hyphens for spaces.
func anchors(text string) (names []string) {
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		slug := strings.ToLower(titled.ReplaceAllString(m[1], "$1"))
		names = append(names, unnamed.ReplaceAllString(strings.ReplaceAll(slug, " ", "-"), ""))
	}
	return names
}

// filesOf are the files of the repository whose names end so, but for tests'
// inputs.
func filesOf(t *testing.T, ending string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if entry.Name() == "testdata" || entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ending) {
			files = append(files, filepath.ToSlash(path))
		}
		return err
	}))
	return files
}

// TestDocsNames: what the pages write as code and looks like an exported name is
// a word of the code, or one of these, which are of others.
func TestDocsNames(t *testing.T) {
	t.Chdir(root)
	words := map[string]bool{"Create": true, "MaxConnsPerHost": true, "StandardClient": true}
	name, text := regexp.MustCompile(`\b[A-Z]\w*[a-z]\w*`), regexp.MustCompile(`"[^"]*"`)
	for _, file := range filesOf(t, ".go") {
		if !strings.HasPrefix(file, "tools/") {
			for _, word := range name.FindAllString(read(t, file), -1) {
				words[word] = true
			}
		}
	}
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for _, page := range pages {
		for _, code := range quoted.FindAllString(fenced.ReplaceAllString(read(t, page), ""), -1) {
			for _, word := range name.FindAllString(text.ReplaceAllString(code, ""), -1) {
				assert.True(t, words[word], "%s: %s: there is no %s", page, code, word)
			}
		}
	}
}

// TestSecurityNamesTests that exist, for each promise.
func TestSecurityNamesTests(t *testing.T) {
	t.Chdir(root)
	var tests strings.Builder
	for _, file := range filesOf(t, "_test.go") {
		tests.WriteString(read(t, file))
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(read(t, ".github/SECURITY.md"), -1)
	assert.Greater(t, len(named), 10)
	for _, name := range named {
		assert.True(t, strings.Contains(tests.String(), "\nfunc "+name[1]+"("), "SECURITY.md names %s, which is no test", name[1])
	}
}

// TestVersionsAgree: Version, what the modules below the root require, and the
// newest section of the changelog are all of the next release.
func TestVersionsAgree(t *testing.T) {
	t.Chdir(root)
	required := regexp.MustCompile(regexp.QuoteMeta(module) + `(?:/\w+)? (v\S+)`)
	for _, file := range filesOf(t, "go.mod") {
		for _, found := range required.FindAllStringSubmatch(read(t, file), -1) {
			if found[1] != "v0.0.0" { // of a module that is never released
				assert.Equal(t, "v"+agentmessaging.Version, found[1], "%s: %s", file, found[0])
			}
		}
	}
	section := regexp.MustCompile(`(?m)^## \[(.*)\]`).FindStringSubmatch(read(t, "CHANGELOG.md"))
	assert.Contains(t, []string{"Unreleased", agentmessaging.Version}, section[1])
}
