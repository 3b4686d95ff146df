package main

import (
	"os"
	"path/filepath"
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

// TestStateBehindALink is read and saved there.
func TestStateBehindALink(t *testing.T) {
	link, file := tempFile(t), tempFile(t)
	if err := os.Symlink(file, link); err != nil {
		t.Skip("no links here:", err)
	}
	_, sentence := refused(t, []string{"--addr=127.0.0.1:0", "--state", link})
	assert.Contains(t, sentence, "must be a regular file", "a link to nothing")
	begin(t, []string{"--state", file}).stop()
	begin(t, []string{"--state", link}).stop()
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink)
}
