// Package docs_test holds README.md and the pages of docs to the code: their Go
// compiles, the names that they mention exist, their links lead somewhere, and
// their tables and numbers are those of internal/spec.
package docs_test

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"html"
	"io"
	"maps"
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

	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/tools/docs/internal/pages"
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

var update = flag.Bool("update", false, "write the Go of the pages into internal/pages, and the picture of a sweep")

// ran are the pages whose tests run as they are, and of others the functions that
// are swept.
var ran = map[string][]string{
	"README.md": nil, "docs/design.md": nil, "docs/faults.md": nil, "docs/limits.md": nil, "docs/migration.md": nil, "docs/testing.md": nil,
	"docs/sweep.md":  {"answer", "agentOf", "replace"},
	"docs/errors.md": {"advice", "enableSMS"},
}

// TestPagesAreRun: the package that is run is the code of the pages.
func TestPagesAreRun(t *testing.T) {
	t.Chdir(root)
	source := ""
	for _, page := range slices.Sorted(maps.Keys(ran)) {
		code := blocks(t, page)
		for _, line := range slices.Sorted(maps.Keys(code)) {
			if ran[page] == nil && strings.Contains("\n"+code[line], "\nfunc Test") {
				source += code[line]
			}
		}
		mended, first := "", "" // of functions that the page shows twice, the last and the first
		for _, name := range ran[page] {
			found := regexp.MustCompile(`(?ms)^func `+name+`\(.*?^}\n`).FindAllString(read(t, page), -1)
			require.NotEmpty(t, found, "%s has no %s", page, name)
			mended, first = mended+found[len(found)-1], first+found[0]
		}
		source += mended
		if first != mended {
			source += regexp.MustCompile(`\b(`+strings.Join(ran[page], "|")+`)\(`).ReplaceAllStringFunc(first, func(name string) string {
				return "first" + strings.ToUpper(name[:1]) + name[1:]
			})
		}
	}
	source += "// Tests are the tests of the pages.\nvar Tests = []testing.InternalTest{\n"
	for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(source, -1) {
		source += fmt.Sprintf("{%q, %s},\n", test[1], test[1])
	}
	source += "}\n"
	head := "// Code generated from the pages by go test ./tools/docs -update. DO NOT EDIT.\n\npackage pages\n"
	for _, imported := range known {
		if strings.Contains(source, path.Base(imported)+".") || imported == module {
			head += "import " + strconv.Quote(imported) + "\n"
		}
	}
	formatted, err := format.Source([]byte(head + source))
	require.NoError(t, err)
	const file = "tools/docs/internal/pages/pages.gen.go"
	if *update {
		require.NoError(t, os.WriteFile(file, formatted, 0o644))
	}
	assert.True(t, read(t, file) == string(formatted), "%s is out of date; to rewrite it: go test ./tools/docs -update", file)
}

func TestThePagesTestsPass(t *testing.T) {
	for _, test := range pages.Tests {
		t.Run(test.Name, test.F)
	}
}

func TestApplicationsOfThePagesSurvive(t *testing.T) { pages.Survive(t) }

// The picture of the sweep shows what go test prints of its first bot.
func TestBotSurvives(t *testing.T) {
	if os.Getenv("SWEEP_THE_BOT") != "" {
		pages.SurviveNot(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestBotSurvives$")
	cmd.Env = append(os.Environ(), "SWEEP_THE_BOT=yes")
	printed, err := cmd.CombinedOutput()
	require.Error(t, err)
	t.Chdir(root)
	const file = "docs/pictures/sweep-report.svg"
	progress := regexp.MustCompile(`.* so far\n`) // on a slow machine
	picture := terminal(progress.ReplaceAllString(string(printed), ""))
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(picture), 0o644))
	}
	numbers := regexp.MustCompile(`[ 0-9.]+m?s?`) // times and line numbers, and how far times are indented
	assert.Equal(t, numbers.ReplaceAllString(picture, ""), numbers.ReplaceAllString(read(t, file), ""),
		"out of date; to draw it again: go test ./tools/docs -update")
}

// terminal draws the first finding and the last line of a sweep.
func terminal(printed string) string {
	first, _, _ := strings.Cut(printed[strings.Index(printed, "--- FAIL"):], "\n    --- FAIL: TestBotSurvives/CreateAgent_1/dies_answered")
	lines := strings.Split("$ go test\n"+first+"\n"+regexp.MustCompile(`.*swept.*`).FindString(printed), "\n")
	const lineHeight = 18
	svg := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 %d" font-family="monospace" font-size="13">`+
		`<rect width="100%%" height="100%%" rx="8" fill="#1c2128"/>`, lineHeight*(len(lines)+1))
	for i, line := range lines {
		colour := "#cdd9e5"
		switch {
		case strings.Contains(line, "--- FAIL"):
			colour = "#ff938a"
		case strings.Contains(line, "report.go") || strings.Contains(line, "doubled:"):
			colour = "#f0b72f"
		case strings.Contains(line, "again:"), strings.HasPrefix(line, "$"):
			colour = "#6cb6ff"
		}
		if runes := []rune(line); len(runes) > 116 {
			line = string(runes[:115]) + "…"
		}
		svg += fmt.Sprintf(`<text x="12" y="%d" fill="%s" xml:space="preserve">%s</text>`+"\n", lineHeight*(i+1)+4, colour, html.EscapeString(line))
	}
	return svg + "</svg>\n"
}

// The page of the sweep names every fault.
func TestSweepPageNamesEveryFault(t *testing.T) {
	t.Chdir(root)
	page := read(t, "docs/sweep.md")
	_, names := faults.Named("")
	for _, name := range append(names, "agent_gone", "fails") {
		assert.Contains(t, page, "`"+name+"`")
	}
}
