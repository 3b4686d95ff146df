// Package docs_test checks README.md and the pages of docs against the code: their Go
// compiles, the names that they mention exist, and their tables and numbers agree with
// internal/spec. The links between pages are checked by remark: npm run links.
package docs_test

import (
	"cmp"
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
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/tools/docs/internal/pages"
)

const module = "github.com/agent-messaging-service/agentmessaging-go"

// known are packages that a block may use without an import.
var known = []string{
	"bytes", "context", "encoding/json", "errors", "fmt", "log/slog", "net/http", "net/http/httptest", "os", "path/filepath", "slices", "strings", "sync", "testing", "testing/synctest", "time",
	"github.com/stretchr/testify/assert", "github.com/stretchr/testify/require",
	module, module + "/agentmessagingtest", module + "/contract", module + "/observe", module + "/fakeserver", module + "/pacer", module + "/sweep",
}

// The tests run in the root of the repository, where the pages are.
func init() {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
}

// TestPagesCompile type-checks the Go blocks of the README, of docs, and of the beginning of
// package documentation. A block is a file, declarations or statements.
func TestPagesCompile(t *testing.T) {
	fset := token.NewFileSet()
	all, err := packages()
	require.NoError(t, err)
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path].export) })
	for _, page := range append(docs(t), "README.md", ".github/SECURITY.md", "doc.go", "fakeserver/doc.go", "pacer/pacer.go") {
		for line, block := range blocks(t, page) {
			source, whole := complete(block, fmt.Sprintf("//line %s:%d\n", page, line))
			file, err := parser.ParseFile(fset, "", source, parser.SkipObjectResolution)
			if !assert.NoError(t, err, page) {
				continue
			}
			config := types.Config{Importer: imports, GoVersion: "go1.25", Error: func(err error) {
				unused := err.(types.Error).Soft // an unused name is allowed: an excerpt may leave out where it is used
				assert.True(t, unused && !whole, "%s", err)
			}}
			_, _ = config.Check("block", fset, []*ast.File{file}, nil)
		}
	}
}

func docs(t *testing.T) []string {
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	return pages
}

// blocks returns the Go blocks of a page, by their lines. For a Go file it returns the first
// block of the package documentation.
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

// listed is what go list says about a package.
type listed struct {
	export string   // the file with its export data
	deps   []string // the packages that it imports, directly or not
}

// packages returns the packages that a block may import, and all that they import.
var packages = sync.OnceValues(func() (map[string]listed, error) {
	list := exec.Command("go", append([]string{"list", "-e", "-export", "-deps", "-f", `{{.ImportPath}} {{or .Export "-"}} {{join .Deps " "}}`, "log", "net"}, known...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	all := map[string]listed{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		all[words[0]] = listed{words[1], words[2:]}
	}
	return all, err
})

// TestWhoImportsWhom checks the imports against CONTRIBUTING.md. The packages that users
// compile for the client and the pacer import go-retryablehttp, and no other module.
func TestWhoImportsWhom(t *testing.T) {
	all, err := packages()
	require.NoError(t, err)
	for path, banned := range map[string]string{ // "/" is the root
		"":               "/fakeserver /contract /observe /pacer",
		"/pacer":         "/fakeserver /contract /observe",
		"/fakeserver":    "/ /contract /observe",
		"/contract":      "/ /fakeserver /internal/spec",
		"/observe":       "/ /fakeserver /contract /internal/spec",
		"/internal/spec": "/",
	} {
		deps := all[module+path].deps
		require.NotEmpty(t, deps, path)
		for _, dep := range deps {
			host, _, _ := strings.Cut(dep, "/")
			if within, ours := strings.CutPrefix(dep, module); ours {
				assert.NotContains(t, strings.Fields(banned), cmp.Or(within, "/"), "%s imports", path)
			} else if strings.Contains(host, ".") {
				assert.True(t, (path == "" || path == "/pacer") && strings.HasPrefix(dep, "github.com/hashicorp/go-"), "%s imports %s", path, dep)
			}
		}
	}
}

// complete returns a block as a whole file, and reports whether the block was one already. line
// is the directive that names the page and the line of the block.
func complete(block, line string) (file string, whole bool) {
	if strings.HasPrefix(block, "package ") {
		return line + block, true
	}
	head := "package block\nimport (\n\"" + strings.Join(known, "\"\n\"") + "\"\n)\n"
	const parameters = "t *testing.T, ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client,\n" +
		"agent *agentmessaging.Agent, agentID, apiKey, baseURL string, store pacer.Store"
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

var update = flag.Bool("update", false, "write the Go of the pages into internal/pages")

// copied has the pages whose code internal/pages has: the functions with these names or, for
// nil, the tests of the page.
var copied = map[string][]string{
	"README.md": nil, "docs/design.md": nil, "docs/faults.md": nil, "docs/limits.md": nil, "docs/migration.md": nil, "docs/tenants.md": nil, "docs/testing.md": nil,
	"docs/sweep.md":  {"answer", "agentOf", "replace"},
	"docs/errors.md": {"advice", "enableSMS"},
}

// header matches the beginning of a whole file, up to its imports.
var header = regexp.MustCompile(`(?s)^package .*?\n\)\n`)

// TestPagesAreRun checks that internal/pages, which the tests below run, has the code of the
// pages.
func TestPagesAreRun(t *testing.T) {
	source := ""
	for _, page := range slices.Sorted(maps.Keys(copied)) {
		code := blocks(t, page)
		for _, line := range slices.Sorted(maps.Keys(code)) {
			if copied[page] == nil && strings.Contains("\n"+code[line], "\nfunc Test") {
				source += strings.TrimPrefix(code[line], header.FindString(code[line]))
			}
		}
		source += functions(t, page, copied[page])
	}
	source += "// Tests are the tests of the pages.\nvar Tests = []testing.InternalTest{\n"
	for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(source, -1) {
		source += fmt.Sprintf("{%q, %s},\n", test[1], test[1])
	}
	source += "}\n"
	head := "// Code generated from the pages by go test -update. DO NOT EDIT.\n\npackage pages\n"
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
	assert.True(t, read(t, file) == string(formatted), "%s is out of date; to rewrite it: go test -update", file)
}

// functions returns the functions of a page with these names. If the page shows one twice,
// first with a bug, the later one keeps its name, and the first "answer" becomes
// "firstAnswer".
func functions(t *testing.T, page string, names []string) string {
	earlier, later := "", ""
	for _, name := range names {
		found := regexp.MustCompile(`(?ms)^func `+name+`\(.*?^}\n`).FindAllString(read(t, page), -1)
		require.NotEmpty(t, found, "%s has no %s", page, name)
		earlier, later = earlier+found[0], later+found[len(found)-1]
	}
	if earlier == later {
		return later
	}
	called := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\(`)
	return later + called.ReplaceAllStringFunc(earlier, func(name string) string {
		return "first" + strings.ToUpper(name[:1]) + name[1:]
	})
}

func TestThePagesTestsPass(t *testing.T) {
	for _, test := range pages.Tests {
		t.Run(test.Name, test.F)
	}
}

func TestApplicationsOfThePagesSurvive(t *testing.T) {
	for name, scenario := range pages.Applications {
		t.Run(name, func(t *testing.T) { pages.Sweep(t, scenario) })
	}
}

// The picture of the sweep shows what go test prints for the first bot, which does not survive,
// except times, line numbers, and the ends of long lines. The test has the name of the page's
// test, because go test prints it.
func TestBotSurvives(t *testing.T) {
	if os.Getenv("SWEEP_THE_BOT") != "" {
		pages.Sweep(t, pages.FirstBot)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestBotSurvives$")
	cmd.Dir, cmd.Env = "tools/docs", append(os.Environ(), "SWEEP_THE_BOT=yes")
	printed, err := cmd.CombinedOutput()
	require.Error(t, err)
	inexact := regexp.MustCompile(`[0-9.]+(ms|s)?| +`)
	lines := regexp.MustCompile(`"preserve">(.*?)…?</text>`).FindAllStringSubmatch(read(t, "docs/pictures/sweep-report.svg"), -1)
	assert.Greater(t, len(lines), 10)
	for _, line := range lines {
		shown := inexact.ReplaceAllString(html.UnescapeString(line[1]), "")
		assert.True(t, shown == "$gotest" || strings.Contains(inexact.ReplaceAllString(string(printed), ""), shown), "the picture has %q, but go test prints:\n%s", line[1], printed)
	}
}

const limitsPage, errorsPage, fakePage = "docs/limits.md", "docs/errors.md", "docs/fake.md"

// TestDecisions checks the table of the fake's decisions on the fake's page.
func TestDecisions(t *testing.T) {
	table := ""
	for _, d := range fakeserver.New(t).Decisions() {
		table += fmt.Sprintf("| %s | %s | %s |\n", d.Question, code(strings.ReplaceAll(d.Default, `,"`, `, "`)), code(d.ID))
	}
	assert.True(t, strings.Contains(read(t, fakePage), table+"<!--"), "%s needs exactly these rows:\n%s", fakePage, table)
}

func code(s string) string { return "`" + s + "`" }

// TestLimitsPage checks that the page has each endpoint, each member of a request with its
// bound, and the numbers of each limit and plan.
func TestLimitsPage(t *testing.T) {
	page := read(t, limitsPage)
	windows := map[time.Duration]string{time.Minute: " a minute", time.Hour: " an hour", spec.Day: " a day"}
	perIP := map[bool]string{false: "API key", true: "IP address"}
	titles := map[string]string{spec.FreePlan: "Free (inactive)", spec.ProPlan: "Pro", spec.BYOKPlan: "BYOK"}
	for _, e := range spec.Endpoints {
		wantRow(t, page, code(e.Name), code(e.Method+" "+e.Path))
		if e.Body != nil {
			wantMembers(t, page, e.Name, e.Body)
		}
	}
	for _, l := range spec.Limits {
		wantRow(t, page, thousands(l.Max[0])+windows[l.Window], perIP[l.PerIP], code(string(l.Key)))
	}
	for i, p := range spec.Plans {
		if p.Name != spec.PreviewPlan { // the table above has its limits
			wantRow(t, page, titles[p.Name], thousands(spec.Limits[0].Max[i]), thousands(spec.Limits[1].Max[i]), thousands(spec.Limits[2].Max[i]))
		}
	}
}

// TestNumbersOfDocComments checks that doc comments of the client repeat the bounds of members
// and the limits as package spec has them.
func TestNumbersOfDocComments(t *testing.T) {
	wrapped := regexp.MustCompile(`\n\s*// `)
	said := wrapped.ReplaceAllString(read(t, "agents.go")+read(t, "byok.go")+read(t, "messages.go")+read(t, "warmup.go"), " ")
	for member, f := range map[string]*spec.Field{
		"SystemPrompt": spec.SystemPrompt, "CustomerRef": spec.CustomerRef, "Model": spec.LLMModel, "BaseURL": spec.LLMBaseURL,
		"Label": spec.LLMLabel, "Text": spec.MessageText,
	} {
		bound := regexp.MustCompile(fmt.Sprintf(`%s [^\n]*[aA]t most %d characters`, member, f.MaxLen))
		assert.True(t, bound.MatchString(said), "%s: at most %d characters", member, f.MaxLen)
	}
	max := func(i int) int { return spec.Limits[i].Max[0] }
	for _, words := range []string{
		fmt.Sprintf("one of %d agent creations a day per key and of %d a minute per address", max(3), max(4)),
		fmt.Sprintf("one of %d BYOK sets an hour", max(5)), fmt.Sprintf("the BYOK set limit of %d an hour", max(5)),
		fmt.Sprintf("one of %d warm-ups an hour", max(6)),
	} {
		assert.True(t, strings.Contains(said, words), words)
	}
}

// The comments on the names of limits repeat their preview defaults.
func TestNumbersOfLimitNames(t *testing.T) {
	for _, l := range spec.Limits {
		assert.Contains(t, read(t, "fakeserver/options.go"), fmt.Sprintf("// %s: %s ", l.Key, thousands(l.Max[0])))
	}
}

// wantRow checks that a table has a row with these cells in this order.
func wantRow(t *testing.T, page string, cells ...string) {
	t.Helper()
	var row []string
	for _, cell := range cells {
		row = append(row, regexp.QuoteMeta("| "+cell+" "))
	}
	has := regexp.MustCompile(strings.Join(row, `(\|.*)?`) + `\|`).MatchString(page)
	assert.True(t, has, "%s needs a row with %q", limitsPage, cells)
}

func wantMembers(t *testing.T, page, method string, object *spec.Field) {
	t.Helper()
	for _, f := range object.Fields {
		if f.Kind == spec.Object {
			wantMembers(t, page, method, f)
			continue
		}
		longest := ""
		if f.MaxLen > 0 {
			longest = "at most " + thousands(f.MaxLen)
		}
		if longest != "" || f.Required || f.Enum != nil {
			wantRow(t, page, code(method), code(f.Path), longest, strings.Join(f.Enum, ", "))
		}
	}
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// TestErrorsPage checks that the page explains each status of each method once, and has each
// kind of error.
func TestErrorsPage(t *testing.T) {
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
	for _, declared := range regexp.MustCompile(`(?m)^\t(Err\w+) error = kind\(`).FindAllStringSubmatch(read(t, "errors.go"), -1) {
		assert.Contains(t, page, code(declared[1]), declared[1])
	}
}

// The page about sweeps has all names that sweep prints.
func TestSweepPageNamesEveryFault(t *testing.T) {
	page := read(t, "docs/sweep.md")
	for _, f := range append(faults.All(), faults.Fault{Name: "agent_gone"}, faults.Fault{Name: "fails"}) {
		assert.Contains(t, page, "`"+f.Name+"`", f.Name)
	}
}

var (
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	quoted = regexp.MustCompile("`[^`\n]*`")
)

// filesOf returns the files of the repository that have this ending, without testdata.
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

func noPartOfAName(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// TestDocsNames looks in the code for each exported name that a page mentions. SECURITY.md
// also mentions tests. words begins with names of other projects.
func TestDocsNames(t *testing.T) {
	words := map[string]bool{"Create": true, "MaxConnsPerHost": true, "StandardClient": true}
	name, text := regexp.MustCompile(`\b[A-Z]\w*[a-z]\w*`), regexp.MustCompile(`"[^"]*"`)
	test := regexp.MustCompile(`^(Test|Fuzz)[A-Z]`)
	for _, file := range filesOf(t, ".go") {
		if !strings.HasPrefix(file, "tools/") {
			source := read(t, file)
			for _, word := range strings.FieldsFunc(source, noPartOfAName) {
				words[word] = words[word] || !test.MatchString(word) || strings.Contains(source, "func "+word+"(")
			}
		}
	}
	for _, page := range append(docs(t), ".github/SECURITY.md") {
		for _, code := range quoted.FindAllString(fenced.ReplaceAllString(read(t, page), ""), -1) {
			for _, word := range name.FindAllString(text.ReplaceAllString(code, ""), -1) {
				assert.True(t, words[word], "%s: %s: there is no %s", page, code, word)
			}
		}
	}
}

// TestEveryEndpoint checks that every list of the endpoints for users has them all.
func TestEveryEndpoint(t *testing.T) {
	for _, e := range spec.Endpoints {
		for file, words := range map[string]string{
			"README.md":            code(e.Name),
			"fakeserver/record.go": "Endpoint" + e.Name + ` Endpoint = "` + e.Pattern + `"`,
			"openapi/openapi.yaml": "operationId: " + e.Name + " ",
			"cmd/agentmessaging-fake/internal/control/openapi.yaml": "- " + e.Pattern + " ",
		} {
			text := strings.Join(strings.Fields(read(t, file)), " ")
			assert.True(t, strings.Contains(text, words), "%s has no %s", file, words)
		}
	}
}
