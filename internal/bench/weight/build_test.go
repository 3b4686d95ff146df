package weight

import (
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/all"
)

func TestCount(t *testing.T) {
	const bench = "example.com/bench"
	for _, c := range []struct {
		name, listed string
		want         contents
	}{
		{"the standard library alone", "\n\n\n", contents{}},
		{"the program and what is around a peer", "command-line-arguments\n" + bench + "/peers " + bench + " true\n", contents{}},
		{"a module of two packages", "example.com/a example.com/a false\nexample.com/a/b example.com/a false\n", contents{modules: 1, packages: 2}},
		{"two modules", "example.com/a example.com/a false\nexample.com/b example.com/b false\n", contents{modules: 2, packages: 2}},
		{"a generated client", bench + "/peers/p/internal/client " + bench + " true\n", contents{packages: 1}},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, count(c.listed)) })
	}
}

// TestProgram: each program has its own peer in it.
func TestProgram(t *testing.T) {
	seen := map[string]bool{}
	for _, peer := range all.Peers {
		file, err := writeProgram(t.TempDir(), peer)
		require.NoError(t, err)
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Contains(t, string(content), `peer "`+packageOf(peer)+`"`)
		assert.DirExists(t, "../peers/"+path.Base(packageOf(peer)))
		assert.False(t, seen[packageOf(peer)], "%s twice", packageOf(peer))
		seen[packageOf(peer)] = true
	}
}
