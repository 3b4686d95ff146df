// Package docs_test holds README.md and the pages of docs to the code: their Go
// compiles, the names that they mention exist, their tables and numbers are
// those of internal/spec.
package docs_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the root of the repository, where the pages are. Each test goes there
// itself: go test then sees which pages it read, and runs it again when one
// changes.
const root = "../.."

const module = "github.com/agent-messaging-service/agentmessaging-go"

// TestPagesCode holds the Go of the README, of docs and of what package
// documentation begins with to the compiler and go vet, in a module outside this
// one. A block is a file, declarations or statements.
func TestPagesCode(t *testing.T) {
	t.Chdir(root)
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	requires := blocksFor(t)
	dir := newConsumer(t, requires)
	for _, page := range append(pages, "README.md", "doc.go", "fakeserver/doc.go", "pacer/pacer.go", "redisquota/redisquota.go") {
		text := read(t, page)
		pattern, most := "(?s)```go\n(.*?)```", -1
		if strings.HasSuffix(page, ".go") {
			pattern, most = "//\n((?://\t.*\n)+)", 1
		}
		blocks := regexp.MustCompile(pattern).FindAllStringSubmatchIndex(text, most)
		require.True(t, len(blocks) == most || most < 0, page)
		for i, at := range blocks {
			block := strings.ReplaceAll(text[at[2]:at[3]], "//\t", "")
			if requires == "." && strings.Contains(block, "redisquota.") {
				continue
			}
			name := fmt.Sprintf("%s%d", strings.NewReplacer("/", "_", ".", "_").Replace(page), i+1)
			file := complete(block, fmt.Sprintf("//line %s:%d\n", page, 1+strings.Count(text[:at[2]], "\n")))
			folder := name
			if strings.Contains(file, "\nfunc _(") { // declares nothing
				folder = "statements"
			}
			if strings.Contains(block, "*testing.T") {
				name += "_test"
			}
			write(t, filepath.Join(dir, folder, name+".go"), file)
		}
	}
	vet := exec.Command("go", "vet", "./...")
	vet.Dir = dir
	out, err := vet.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// blocksFor is the folder of the module that the blocks are for: redisquota, or the
// root and no block of Redis, where that is not downloaded.
func blocksFor(t *testing.T) string {
	redis := exec.Command("go", "list", "github.com/redis/go-redis/v9")
	redis.Dir, redis.Env = "redisquota", append(os.Environ(), "GOPROXY=off")
	if redis.Run() == nil {
		return "redisquota"
	}
	t.Log("go-redis is not downloaded, so its blocks are left out; go mod download in redisquota does that")
	return "."
}

// newConsumer makes a module that requires what a module of this repository
// does, at the same versions, so that nothing more is downloaded for it.
func newConsumer(t *testing.T, folder string) (dir string) {
	t.Helper()
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	dir = t.TempDir()
	gomod, _, _ := strings.Cut(read(t, filepath.Join(folder, "go.mod")), "\nreplace ")
	_, gomod, _ = strings.Cut(gomod, "\n")
	gomod = "module readme.example\n" + gomod
	for _, used := range slices.Compact([]string{".", folder}) {
		name := path.Join(module, used)
		if !strings.Contains(gomod, "\t"+name+" v") && !strings.Contains(gomod, "require "+name+" v") {
			gomod += fmt.Sprintf("\nrequire %s v0.0.0\n", name)
		}
		gomod += fmt.Sprintf("\nreplace %s => %q\n", name, filepath.Join(root, used))
	}
	write(t, filepath.Join(dir, "go.mod"), gomod)
	write(t, filepath.Join(dir, "go.sum"), read(t, filepath.Join(folder, "go.sum")))
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
	end := "return nil\n}\n}\n"
	if regexp.MustCompile(`(?m)^[^\t\n].*\berr\b`).MatchString(block) { // one in the outer scope
		end = "return err\n}\n}\n"
	}
	parameters := "t *testing.T, ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client,\n" +
		"agent *agentmessaging.Agent, agentID, apiKey, baseURL string,\n" +
		"clientOf func(*fakeserver.Server, string) *agentmessaging.Client"
	if strings.Contains(block, "redisquota.") {
		parameters += ", redisClient redis.UniversalClient"
	}
	return head + "func _(" + parameters + ") error {\n{\n" + line + block + "\n" +
		use(block) + end
}

// use uses what a block declares for its reader.
func use(block string) (lines string) {
	for _, declared := range regexp.MustCompile(`(?m)^(\w+(?:, \w+)*) :=`).FindAllStringSubmatch(block, -1) {
		for name := range strings.SplitSeq(declared[1], ", ") {
			lines += "_ = " + name + "\n"
		}
	}
	return strings.ReplaceAll(lines, "_ = _\n", "")
}

// imports are those that a block which shows none would have.
func imports(block string) string {
	lines := "import (\n\"context\"\n\"testing\"\nagentmessaging \"" + module + "\"\n\"" + module + "/fakeserver\"\n"
	for _, path := range []string{
		"errors", "fmt", "os", "path/filepath", "net/http", "net/http/httptest", "testing/synctest", "time",
		"log/slog", "github.com/redis/go-redis/v9", module + "/redisquota",
		module + "/contract", module + "/agentmessagingtest", module + "/sweep", module + "/pacer", "github.com/stretchr/testify/require", "github.com/stretchr/testify/assert",
	} {
		name := filepath.Base(path)
		if name == "v9" {
			name = "redis"
		}
		if regexp.MustCompile(`\b`+name+`\.`).MatchString(block) || name == "redis" && strings.Contains(block, "redisquota.") {
			lines += strconv.Quote(path) + "\n"
		}
	}
	return lines + ")\nvar _ context.Context\nvar _ *agentmessaging.Client\nvar _ *fakeserver.Server\nvar _ *testing.T\n"
}

// TestREADMEExamples holds the list of examples to the directory.
func TestREADMEExamples(t *testing.T) {
	t.Chdir(root)
	readme := read(t, "README.md")
	programs, err := filepath.Glob("examples/*/main.go")
	require.NoError(t, err)
	require.NotEmpty(t, programs)
	for _, program := range programs {
		program = filepath.ToSlash(filepath.Dir(program))
		assert.True(t, strings.Contains(readme, "]("+program+"/"), "README.md does not list %s", program)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
