package docs_test

import (
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
