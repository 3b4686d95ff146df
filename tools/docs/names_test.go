package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// foreign are names in the pages that are not of this module.
var foreign = []string{
	"Retry-After", "Date", "Content-Length", "Content-Type", "RoundTripper", "StandardClient", "TestLive", "Op", "Transport",
	"Timeout", "NewServer",
	"You wrote", "client.Agents.Create", // the fake's words; what is not there
}

// exported are the words of the exported declarations of the public packages.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	names, others := map[string]bool{}, regexp.MustCompile(`^(cmd|examples|tools)/|internal/|_test\.go$`)
	for _, file := range filesOf(t, ".go") {
		if others.MatchString(file) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.FileExports(parsed)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.IsExported() {
				names[id.Name] = true
			}
			_, body := n.(*ast.BlockStmt)
			return !body
		})
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
// one.
func TestDocsNames(t *testing.T) {
	t.Chdir(root)
	names := exported(t)
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	span := regexp.MustCompile("`([^`\n]+)`")
	other := regexp.MustCompile(`^go test .*|\b(http|net|tls|context|io|syscall|rate|require|errors|time|t)\.[\w.]+|\b[A-Z]\w+_\w+/|"[^"]*"`)
	name := regexp.MustCompile(`\b[A-Z]\w*[a-z]\w*`)
	notOurs := regexp.MustCompile(`(^|\b)(` + strings.Join(foreign, "|") + `)\b`)
	for _, page := range pages {
		if page == filepath.FromSlash("docs/faults.md") { // generated
			continue
		}
		text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(read(t, page), "")
		for _, found := range span.FindAllStringSubmatch(text, -1) {
			code := other.ReplaceAllString(found[1], "")
			code = notOurs.ReplaceAllString(code, "")
			for _, word := range name.FindAllString(code, -1) {
				assert.True(t, names[word], "%s: `%s`: there is no %s", page, found[1], word)
			}
		}
	}
}

// withoutExample are the exported functions and methods that no Example shows,
// each with the reason.
var withoutExample = map[string]string{
	"agentmessaging.Observe": "a conversion to ObserverFunc is what users write",
	"fakeserver.IssueKeyOn":  "package contract calls it",
	"pacer.Acquire":          "the client calls it",
	"pacer.CoolsDown":        "the client calls it",
	"pacer.TestStore":        "a test of a store calls it: TestStoreOfTheTests",
}

// TestExamplesShowEveryFunction: every exported function and method is used in
// the files of Examples, by its name, or is in the list above. fmt, errors, slog
// and the encoders call the other ones.
func TestExamplesShowEveryFunction(t *testing.T) {
	t.Chdir(root)
	declared := regexp.MustCompile(`(?m)^func (\(\w* ?\*?[A-Z]\w*\) )?([A-Z]\w*)`)
	byOthers := regexp.MustCompile(`^(Error|Format|GoString|Is|Marshal\w+|String|Unwrap)$`)
	for pkg, dir := range map[string]string{"agentmessaging": ".", "fakeserver": "fakeserver", "pacer": "pacer"} {
		var examples, source string
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			switch {
			case strings.HasPrefix(filepath.Base(file), "example"):
				examples += read(t, file)
			case !strings.HasSuffix(file, "_test.go"):
				source += read(t, file)
			}
		}
		for _, found := range declared.FindAllStringSubmatch(source, -1) {
			receiver, name := found[1], found[2]
			use := `\.` + name + `\(`
			if receiver == "" {
				use = `\b` + pkg + `\.` + name + `\b`
			}
			shown := regexp.MustCompile(use).MatchString(examples) || byOthers.MatchString(name)
			listed := withoutExample[pkg+"."+name] != ""
			assert.False(t, !shown && !listed, "no Example uses %s.%s", pkg, name)
			assert.False(t, shown && listed, "%s.%s has an Example: take it off the list", pkg, name)
		}
	}
}

// most is the number of each limit, of which the pages name some in words.
var most = func() map[spec.LimitKey]int {
	all := map[spec.LimitKey]int{}
	for _, l := range spec.Limits {
		all[l.Key] = l.Max
	}
	return all
}()

// numbers are sentences of pages and comments that repeat a number, as the tables
// and constants that they are from have it.
var numbers = map[string][]string{
	"README.md": {
		fmt.Sprintf("%d requests a minute, 1,000 a day; %d creations a day, %d BYOK sets and %d warm-ups an hour",
			most[spec.KeyMinute], most[spec.AgentCreateKeyDay], most[spec.BYOKSetKeyHour], most[spec.WarmUpKeyHour]),
		"A call makes up to three attempts", "`RetryPolicy.MaxWait` (90 s)", "has 5 minutes for its attempts",
	},
	"docs/errors.md":    {fmt.Sprintf("one of %d creations a day", most[spec.AgentCreateKeyDay]), fmt.Sprintf("one of %d warm-ups an hour", most[spec.WarmUpKeyHour])},
	"docs/testing.md":   {fmt.Sprintf("%d calls in a minute are too many", most[spec.KeyMinute]+1)},
	"docs/design.md":    {fmt.Sprintf("one of %d a day", most[spec.AgentCreateKeyDay]), fmt.Sprintf("the %dst call of a minute", most[spec.KeyMinute]+1)},
	"docs/migration.md": {"5 minutes for a call whose context has no deadline"},
	"agents.go": {
		fmt.Sprintf("the BYOK set limit of %d an hour", most[spec.BYOKSetKeyHour]),
		fmt.Sprintf("the whole conversation. At most %d characters", spec.SystemPrompt.MaxLen),
		fmt.Sprintf("own customer identifier. At most %d characters", spec.CustomerRef.MaxLen),
		fmt.Sprintf("Model overrides the model. At most %d characters", spec.LLMModel.MaxLen),
		fmt.Sprintf("for example a gateway. At most %d characters", spec.LLMBaseURL.MaxLen),
		fmt.Sprintf("names the BYOK configuration. At most %d characters", spec.LLMLabel.MaxLen),
	},
	"messages.go":  {fmt.Sprintf("required; at most %d characters", spec.MessageText.MaxLen)},
	"doc.go":       {"A call makes up to three attempts", "a default of 5 minutes"},
	"options.go":   {"The default is 5 minutes"},
	"settings.go":  {"defaultTimeout = 5 * time.Minute"},
	"ratelimit.go": {"[RetryPolicy].MaxWait; 0 means 90 s"},
	"retry.go": {"defaultAttempts = 3", "included. 0 means 3,", "0 means 500 ms", "maxBackoff = 8 * time.Second",
		"doubles with each attempt, up to 8 s", "0 means 90 s, enough for a minute limit"},
	"internal/cooldown/jitter.go": {"DefaultMinWait = 500 * time.Millisecond", "DefaultMaxWait = 90 * time.Second"},
}

func TestDocsNumbers(t *testing.T) {
	t.Chdir(root)
	require.Equal(t, 10, most[spec.AgentCreateIPMinute], "docs/design.md says: an eleventh creation")
	for page, sentences := range numbers {
		text := strings.Join(strings.Fields(strings.NewReplacer("//", " ", "\n", " ").Replace(read(t, page))), " ")
		for _, sentence := range sentences {
			assert.Contains(t, text, sentence, page)
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
