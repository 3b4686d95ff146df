//go:build linux || darwin

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// On a full disk, only a message that was sent is in doubt, and each whole line stays readable.
// If half a line could not be cut off, it is ignored, even if a decision follows it.
func TestDiskFull(t *testing.T) {
	const halfLine, decision = `{"message":1,"st`, `{"message":1,"state":"sent"}` + "\n"
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	for room, left := range map[uint64]string{10: "", 40: `{"message":1,"state":"in doubt"}` + "\n"} { // bytes, and the journal that has room
		arrived := strings.Count(left, "\n") // a message is sent after its line is on the disk
		client, fake := agentmessagingtest.New(t)
		fake.AddAgent(fake.Key(), fakeserver.Agent{ID: "agent_1"})
		path := filepath.Join(t.TempDir(), "texts")
		require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: old.Max}))
		err := run(t.Context(), client, "agent_1", path)
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
		require.ErrorIs(t, err, syscall.EFBIG, "room for %d bytes", room)
		require.Equal(t, arrived > 0, strings.Contains(err.Error(), "message 1: in doubt; decide"), err)
		journal, _ := os.ReadFile(path + ".journal")
		require.Equal(t, left, string(journal), "room for %d bytes", room)
		require.NoError(t, os.WriteFile(path+".journal", []byte(left+halfLine+decision), 0o600))
		require.NoError(t, run(t.Context(), client, "agent_1", path))
		require.Len(t, fake.Conversation("agent_1"), arrived, "after the decision, with room for %d bytes", room)
	}
}
