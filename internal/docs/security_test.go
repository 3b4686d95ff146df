package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSecurityNamesTests that exist, for each promise.
func TestSecurityNamesTests(t *testing.T) {
	t.Chdir(root)
	var tests strings.Builder
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			text, readErr := os.ReadFile(path)
			tests.Write(text)
			return readErr
		}
		return err
	})
	require.NoError(t, err)
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(read(t, ".github/SECURITY.md"), -1)
	assert.Greater(t, len(named), 10)
	for _, name := range named {
		assert.True(t, strings.Contains(tests.String(), "\nfunc "+name[1]+"("), "SECURITY.md names %s, which is no test", name[1])
	}
}
