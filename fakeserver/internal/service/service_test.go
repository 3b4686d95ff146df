package service

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// A copy of the state does not change with it.
func TestSave(t *testing.T) {
	st := New(NewBehavior(), Limits{Exchanges: 2})
	st.Issue(DigestOf("a key"), spec.PreviewPlan, true, start)
	create := func() Answer {
		return st.Do(start, &Request{Endpoint: spec.CreateAgent, Token: DigestOf("a key"), HasToken: true})
	}
	a := st.Agent(create().Reply.(Created).ID)
	saved := st.Save()
	counted := slices.Clone(saved.Keys[0].Counts.Windows[0].Calls)
	create()
	st.AddExchange(a, Exchange{})
	assert.Empty(t, saved.Agents[0].Exchanges)
	assert.Equal(t, counted, saved.Keys[0].Counts.Windows[0].Calls)
}

func TestVault(t *testing.T) {
	v := newVault()
	sealed := v.seal("sk-canary")
	assert.NotEqual(t, sealed, v.seal("sk-canary"), "each has a nonce of its own")
	n := v.aead.NonceSize()
	plain, err := v.aead.Open(nil, sealed[:n], sealed[n:], nil)
	require.NoError(t, err)
	assert.Equal(t, "sk-canary", string(plain))
	_, err = newVault().aead.Open(nil, sealed[:n], sealed[n:], nil)
	assert.Error(t, err, "each vault has a key of its own")
	for _, other := range []string{v.fingerprint("b"), newVault().fingerprint("a")} {
		assert.NotEqual(t, v.fingerprint("a"), other)
		assert.Len(t, other, 16)
	}
}

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
