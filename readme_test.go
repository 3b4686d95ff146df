package agentmessaging_test

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

var update = flag.Bool("update", false, "rewrite the generated tables of README.md")

// TestREADMETables holds the tables between markers to the code that they are
// about. make tables rewrites them.
func TestREADMETables(t *testing.T) {
	readme := read(t, "README.md")
	for name, want := range map[string]string{
		"endpoints": endpointTable(),
		"retries":   retryTable(t),
		"limits":    limitTable(t),
		"plans":     planTable(),
		"bounds":    boundTable(),
	} {
		head, table, tail := cut(t, readme, name)
		if !*update {
			assert.Equal(t, want, table, "table %s is out of date: make tables", name)
		}
		readme = head + want + tail
	}
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(readme), 0o644))
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// cut splits a page at the markers of a table, which stay with head and tail.
func cut(t *testing.T, page, name string) (head, table, tail string) {
	t.Helper()
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	head, rest, hasBegin := strings.Cut(page, begin)
	table, tail, hasEnd := strings.Cut(rest, end)
	require.True(t, hasBegin && hasEnd, "README.md lacks a marker of table %s", name)
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
	for line := range strings.Lines(read(t, "client.go")) {
		cells := columns.Split(strings.TrimSpace(strings.TrimPrefix(line, "//\t")), -1)
		if strings.HasPrefix(line, "//\t") && len(cells) == 3 && !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	require.Len(t, rows, 11, "the package documentation has a table of ten outcomes")
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

func boundTable() string {
	rows := [][]string{{"Method", "Member", "Required", "Characters", "Values"}}
	for _, e := range spec.Endpoints {
		for _, f := range leaves(e.Body) {
			rows = append(rows, []string{code(e.Name), code(f.Path), required(f), longest(f), values(f)})
		}
	}
	return markdown(rows...)
}

// leaves are the fields that hold values, in order.
func leaves(fields []*spec.Field) []*spec.Field {
	var found []*spec.Field
	for _, f := range fields {
		if f.Kind == spec.Object {
			found = append(found, leaves(f.Fields)...)
			continue
		}
		found = append(found, f)
	}
	return found
}

func required(f *spec.Field) string {
	parent, _, nested := strings.Cut(f.Path, ".")
	switch {
	case f == spec.LLMProvider:
		return "with " + code(spec.LLMAPIKey.Path) // interface 2.3
	case f.Required && nested:
		return "in " + code(parent)
	case f.Required:
		return "yes"
	}
	return ""
}

func longest(f *spec.Field) string {
	if f.MaxLen == 0 {
		return ""
	}
	return "at most " + thousands(f.MaxLen)
}

func values(f *spec.Field) string {
	if f.Kind == spec.FreeObject {
		return "a JSON object; its size is capped, the cap is not shown"
	}
	return f.Values()
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

const module = "github.com/agent-messaging-service/agentmessaging-go"

// TestREADMECode holds the Go of the README to the compiler and go vet, in a
// module outside this one. A block is a file, declarations or statements.
func TestREADMECode(t *testing.T) {
	readme := read(t, "README.md")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatchIndex(readme, -1)
	require.NotEmpty(t, blocks)
	dir := newConsumer(t)
	for i, at := range blocks {
		block := readme[at[2]:at[3]]
		name := "block.go"
		if strings.Contains(block, "*testing.T") {
			name = "block_test.go"
		}
		line := fmt.Sprintf("//line README.md:%d\n", 1+strings.Count(readme[:at[2]], "\n"))
		write(t, filepath.Join(dir, fmt.Sprintf("block%d", i+1), name), complete(block, line))
	}
	vet := exec.Command("go", "vet", "./...")
	vet.Dir = dir
	out, err := vet.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// newConsumer makes a module that requires what this one does, at the same
// versions, so that nothing is downloaded for it.
func newConsumer(t *testing.T) (dir string) {
	t.Helper()
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	dir = t.TempDir()
	gomod := strings.Replace(read(t, "go.mod"), "module "+module, "module readme.example", 1)
	gomod += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %q\n", module, module, root)
	write(t, filepath.Join(dir, "go.mod"), gomod)
	write(t, filepath.Join(dir, "go.sum"), read(t, "go.sum"))
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// complete makes a file of a block; line says where the block stands.
func complete(block, line string) string {
	if strings.HasPrefix(block, "package ") {
		return line + block
	}
	head := "package block\n" + imports(block)
	file := head + line + block
	if _, err := parser.ParseFile(token.NewFileSet(), "", file, 0); err == nil {
		return file
	}
	return head + "func _(ctx context.Context, client *agentmessaging.Client, agentID string) error {\n" +
		"_, _, _ = ctx, client, agentID\n" + line + block + "\nreturn err\n}\n"
}

// imports are those that a block which shows none would have.
func imports(block string) string {
	lines := "import (\n\"context\"\nagentmessaging \"" + module + "\"\n"
	for _, path := range []string{
		"errors", "fmt", "net/http", "net/http/httptest", "testing", "testing/synctest", "time",
		module + "/fakeserver", module + "/contract", "github.com/stretchr/testify/require",
	} {
		if regexp.MustCompile(`\b` + filepath.Base(path) + `\.`).MatchString(block) {
			lines += strconv.Quote(path) + "\n"
		}
	}
	return lines + ")\nvar _ context.Context\nvar _ *agentmessaging.Client\n"
}

// TestREADMELinks finds files that a page names and that are not there.
func TestREADMELinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		for _, found := range link.FindAllStringSubmatch(read(t, page), -1) {
			_, err := os.Stat(found[1])
			assert.NoError(t, err, page)
		}
	}
}

// TestREADMEExamples holds the list of examples to the directory.
func TestREADMEExamples(t *testing.T) {
	readme := read(t, "README.md")
	programs, err := filepath.Glob("examples/*/main.go")
	require.NoError(t, err)
	require.NotEmpty(t, programs)
	for _, program := range programs {
		program = filepath.ToSlash(filepath.Dir(program))
		assert.True(t, strings.Contains(readme, "]("+program+"/"), "README.md does not list %s", program)
	}
}

// TestREADMEFakeOptions holds the names that the README gives to the fake's
// options and methods to the code.
func TestREADMEFakeOptions(t *testing.T) {
	_, section, ok := strings.Cut(read(t, "README.md"), "## What the fake decides")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	files, err := filepath.Glob("fakeserver/*.go")
	require.NoError(t, err)
	var source strings.Builder
	for _, file := range files {
		source.WriteString(read(t, file))
	}
	name := regexp.MustCompile("`([A-Z][a-z]\\w+)`")
	names := name.FindAllStringSubmatch(section, -1)
	require.Greater(t, len(names), 5)
	for _, found := range names {
		declared := regexp.MustCompile(`func (\(.*\) )?` + found[1] + `\(`)
		assert.True(t, declared.MatchString(source.String()), "fakeserver has no %s", found[1])
	}
}

// TestNoticeNamesEveryModule holds NOTICE to go.mod.
func TestNoticeNamesEveryModule(t *testing.T) {
	modules := regexp.MustCompile(`(?m)^\t(\S+ v\S+)`).FindAllStringSubmatch(read(t, "go.mod"), -1)
	require.NotEmpty(t, modules)
	notice := read(t, "NOTICE")
	for _, m := range modules {
		assert.True(t, strings.Contains(notice, m[1]+"\n"), "NOTICE lacks %s", m[1])
	}
}
