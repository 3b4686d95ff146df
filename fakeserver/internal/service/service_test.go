package service

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// A conversation with the service, without HTTP.
func TestService(t *testing.T) {
	st := New(NewBehavior(), Limits{Exchanges: 2})
	token := DigestOf("a key")
	do := func(e *spec.Endpoint, agentID string, fields Fields) Answer {
		return st.Do(start, &Request{Endpoint: e, AgentID: agentID, Fields: fields, Token: token, HasToken: true})
	}
	assert.Equal(t, UnknownKey, do(spec.CreateAgent, "", nil).Refusal.Kind)
	k := st.Issue(token, spec.PreviewPlan, true, start)
	created := do(spec.CreateAgent, "", Fields{spec.AgentSMSMode: spec.SMSSandbox}).Reply.(Created)
	assert.Equal(t, Created{"agent_000001", "active", &SMS{"sandbox", "active", "+12025550101"}}, created)
	before := st.Save()
	counted := slices.Clone(before.Keys[0].Counts.Windows[0].Calls)
	for range 3 {
		answer := do(spec.SendMessage, created.ID, Fields{spec.MessageText: "hello"})
		answer.Turn.Exchange.ReplyText = "hi"
		assert.Equal(t, Message{Text: "hi"}, st.Finish(answer.Turn).Reply)
	}
	assert.Len(t, st.Agent(created.ID).Exchanges, 2, "the newest")
	assert.Empty(t, before.Agents[0].Exchanges, "what is saved does not change")
	assert.Equal(t, counted, before.Keys[0].Counts.Windows[0].Calls, "nor do its counts")
	refusal := do(spec.GetAgent, "agent_000002", nil).Refusal
	assert.Equal(t, []any{NoSuchAgent, 404, "key_000001"}, []any{refusal.Kind, refusal.Status, refusal.Key})
	assert.Equal(t, 5, st.LimitStates(k, netip.Addr{}, start)[0].Used)
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
