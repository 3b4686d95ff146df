package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFilesOfOthersStay: what is no regular file is not replaced, and what has
// taken the place of the ready file is not removed.
func TestFilesOfOthersStay(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	require.NoError(t, os.Mkdir(folder, 0o700))
	for _, flag := range []string{"--ready-file", "--state"} {
		_, sentence := refused(t, []string{"--addr=127.0.0.1:0", flag, folder})
		assert.Contains(t, sentence, "must be a regular file", flag)
		assert.DirExists(t, folder)
	}
	ready := tempFile(t)
	r := begin(t, []string{"--ready-file", ready})
	require.FileExists(t, ready)
	require.NoError(t, os.Rename(ready, ready+".old")) // so that its number is not used again
	require.NoError(t, os.WriteFile(ready, []byte("another's"), 0o600))
	r.stop()
	assert.FileExists(t, ready)
}

func TestState(t *testing.T) {
	path := tempFile(t)
	r := begin(t, []string{"--state", path})
	status, _ := r.service("POST", "/v1/agents", `{"customer_ref":"kept"}`)
	require.Equal(t, 200, status)
	_, _ = r.service("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-canary-0123"}`)
	r.stop()
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.NotContains(t, string(saved), "sk-canary")
	assert.NotContains(t, string(saved), "amk_")

	again := begin(t, []string{"--state", path})
	assert.Contains(t, again.control("/agents"), `"customer_ref":"kept"`)
	_, second := refused(t, []string{"--addr=127.0.0.1:0", "--state", path})
	assert.Contains(t, second, "another agentmessaging-fake uses this file")
	again.stop()
	left, err := os.ReadDir(strings.TrimSuffix(path, "/file"))
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file is left")

	require.NoError(t, os.WriteFile(path, saved[:len(saved)/2], 0o600))
	code, sentence := refused(t, []string{"--addr=:0", "--state", path})
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, sentence, "--state: "+path+": fakeserver: ReadState: not one JSON document")
	damaged, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, saved[:len(saved)/2], damaged, "what could not be read is not written over")
}
