package pacer

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// newUsed is a pacer whose state is not empty.
func newUsed(t testing.TB) *Pacer {
	t.Helper()
	p, err := New(PreviewLimits())
	require.NoError(t, err)
	permit, err := p.Acquire(t.Context(), agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents"})
	require.NoError(t, err)
	permit.Done(agentmessaging.AttemptOutcome{StatusCode: 429, Sent: true, LimitKey: "wärm"})
	return p
}

func TestEncoding(t *testing.T) {
	p := newUsed(t)
	value, limits := p.state.encode(), len(p.limits)
	got, err := decode(value, limits)
	require.NoError(t, err)
	assert.Equal(t, p.state, got)
	const header = 10 // of gzip, of which not everything matters
	for i := header; i < len(value); i++ {
		changed := slices.Clone(value)
		changed[i]++
		if got, err := decode(changed, limits); err == nil { // of the last byte before the checksum, too
			require.Equal(t, p.state, got, "byte %d", i)
		} else {
			require.Equal(t, errDamaged, err, "byte %d", i)
		}
	}
	_, err = decode(value[:len(value)-1], limits)
	assert.Equal(t, errDamaged, err)
	_, err = decode(value, limits+1)
	assert.Equal(t, errDamaged, err)
	p.state.Format++
	_, err = decode(p.state.encode(), limits)
	assert.Equal(t, errFormat, err)
}

// FuzzDecode: a value of somebody else's is refused, or used without harm.
func FuzzDecode(f *testing.F) {
	used := newUsed(f)
	f.Add(used.state.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := New(used.limits)
		require.NoError(t, err)
		if p.state, err = decode(value, len(p.limits)); err == nil {
			p.State()
		}
	})
}
