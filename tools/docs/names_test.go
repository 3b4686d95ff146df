package docs_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
)

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
