package agentmessaging_test

import (
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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	end := "\nreturn err\n}\n"
	if !regexp.MustCompile(`(?m)^[^\t\n].*\berr\b`).MatchString(block) { // none in the outer scope
		end = "\nreturn nil\n}\n"
	}
	return head + "func _(t *testing.T, ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client,\n" +
		"agent *agentmessaging.Agent, agentID string, clientOf func(*fakeserver.Server, string) *agentmessaging.Client) error {\n" +
		"_, _, _ = ctx, client, agentID\n" + line + block + end
}

// imports are those that a block which shows none would have.
func imports(block string) string {
	lines := "import (\n\"context\"\n\"testing\"\nagentmessaging \"" + module + "\"\n\"" + module + "/fakeserver\"\n"
	for _, path := range []string{
		"errors", "fmt", "net/http", "net/http/httptest", "testing/synctest", "time",
		module + "/contract", "github.com/stretchr/testify/require", "github.com/stretchr/testify/assert",
	} {
		if regexp.MustCompile(`\b` + filepath.Base(path) + `\.`).MatchString(block) {
			lines += strconv.Quote(path) + "\n"
		}
	}
	return lines + ")\nvar _ context.Context\nvar _ *agentmessaging.Client\nvar _ *fakeserver.Server\nvar _ *testing.T\n"
}

// TestREADMESituations holds each situation to at most five lines, and to
// those of the examples that run it.
func TestREADMESituations(t *testing.T) {
	var run []string
	for line := range strings.Lines(read(t, "fakeserver/example_situations_test.go")) {
		run = append(run, strings.TrimSpace(line))
	}
	situations := regexp.MustCompile("(?s)<!-- situation -->\n```go\n(.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1)
	require.Len(t, situations, 9)
	for _, situation := range situations {
		lines := strings.Split(strings.TrimSpace(situation[1]), "\n")
		assert.LessOrEqual(t, len(lines), 5, situation[1])
		for _, line := range lines {
			assert.Contains(t, run, strings.TrimSpace(line))
		}
	}
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

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
