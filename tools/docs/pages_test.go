// Package docs_test holds README.md and the pages of docs to the code: their Go
// compiles, the names that they mention exist, their links lead somewhere, and
// their tables and numbers are those of internal/spec.
package docs_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// known are the packages that a block may use without an import.
var known = []string{
	"bytes", "context", "encoding/json", "errors", "fmt", "log/slog", "net/http", "net/http/httptest", "os", "path/filepath", "strings", "testing", "testing/synctest", "time",
	"github.com/stretchr/testify/assert", "github.com/stretchr/testify/require",
	module, module + "/agentmessagingtest", module + "/contract", module + "/observe", module + "/fakeserver", module + "/pacer", module + "/sweep",
}

// The module of the store has all of these, and Redis.
const storeFolder, redis = "redisstore", "github.com/redis/go-redis/v9"

// TestPagesCompile type-checks the Go of the README, of docs and of what package
// documentation begins with. A block is a file, declarations or statements.
func TestPagesCompile(t *testing.T) {
	t.Chdir(root)
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", exportData(t))
	_, noRedis := imports.Import(redis)
	if noRedis != nil {
		t.Log("go-redis is not downloaded, so its blocks are left out; go mod download in " + storeFolder + " does that")
	}
	for _, page := range append(pages, "README.md", ".github/SECURITY.md", "doc.go", "fakeserver/doc.go", "pacer/pacer.go", storeFolder+"/"+storeFolder+".go") {
		for line, block := range blocks(t, page) {
			if noRedis != nil && strings.Contains(block, storeFolder+".") {
				continue
			}
			source, whole := complete(block, fmt.Sprintf("//line %s:%d\n", page, line))
			file, err := parser.ParseFile(fset, "", source, parser.SkipObjectResolution)
			if !assert.NoError(t, err) {
				continue
			}
			config := types.Config{Importer: imports, GoVersion: "go1.25", Error: func(err error) {
				unused := err.(types.Error).Soft // a name that the reader of an excerpt may use
				assert.True(t, unused && !whole, "%s", err)
			}}
			_, _ = config.Check("block", fset, []*ast.File{file}, nil)
		}
	}
}

// blocks are the blocks of Go of a page, or the first one of a package's
// documentation, by line.
func blocks(t *testing.T, page string) map[int]string {
	pattern, most, text := "(?s)```go\n(.*?)```", -1, read(t, page)
	if strings.HasSuffix(page, ".go") {
		pattern, most = "//\n((?://\t.*\n)+)", 1
	}
	found := map[int]string{}
	for _, at := range regexp.MustCompile(pattern).FindAllStringSubmatchIndex(text, most) {
		found[1+strings.Count(text[:at[2]], "\n")] = strings.ReplaceAll(text[at[2]:at[3]], "//\t", "")
	}
	require.True(t, most < 0 || len(found) == 1, page)
	return found
}

// exportData finds what the compiler keeps of a package that a block may import.
func exportData(t *testing.T) importer.Lookup {
	list := exec.Command("go", append([]string{"list", "-e", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}",
		module + "/" + storeFolder, redis, "log", "net"}, known...)...)
	list.Dir, list.Env, list.Stderr = storeFolder, append(os.Environ(), "GOPROXY=off"), os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, errors.New("a page cannot import " + path)
		}
		return os.Open(files[path])
	}
}

// complete makes a file of a block, unless it is one; line says where it begins.
func complete(block, line string) (file string, whole bool) {
	if strings.HasPrefix(block, "package ") {
		return line + block, true
	}
	head := "package block\nimport (\n\"" + strings.Join(known, "\"\n\"") + "\"\n"
	parameters := "t *testing.T, ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client,\n" +
		"agent *agentmessaging.Agent, agentID, apiKey, baseURL string,\n" +
		"clientOf func(*fakeserver.Server, string) *agentmessaging.Client"
	if strings.Contains(block, storeFolder+".") {
		head += "redis \"" + redis + "\"\n\"" + module + "/" + storeFolder + "\"\n"
		parameters += ", redisClient redis.UniversalClient"
	}
	head += ")\n"
	file = head + line + block
	if _, err := parser.ParseFile(token.NewFileSet(), "", file, 0); err == nil {
		return file, false
	}
	return head + "func _(" + parameters + ") error {\n{\n" + line + block + "\nreturn nil\n}\n}\n", false
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
