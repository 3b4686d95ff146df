package service

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The state machine uses no package for HTTP, JSON or locks, and reads no clock.
func TestImports(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imported := range parsed.Imports {
			assert.NotContains(t, []string{`"net/http"`, `"sync"`, `"sync/atomic"`, `"encoding/json"`, `"context"`}, imported.Path.Value, file)
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, clock := range []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.NewTimer"} {
			assert.NotContains(t, string(source), clock, file)
		}
	}
}
