package service

import (
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
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, word := range []string{
			`"net/http"`, `"sync"`, `"sync/atomic"`, `"encoding/json"`, `"context"`,
			"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.NewTimer",
		} {
			assert.False(t, !strings.HasSuffix(file, "_test.go") && strings.Contains(string(source), word), "%s uses %s", file, word)
		}
	}
}
