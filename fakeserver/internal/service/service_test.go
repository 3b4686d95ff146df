package service

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
