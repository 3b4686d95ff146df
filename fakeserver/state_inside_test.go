package fakeserver

import (
	"math"
	"slices"
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

// A ring keeps what a list that is cut keeps.
func TestRingAgreesWithAList(t *testing.T) {
	for _, limit := range []int{0, 1, 2, 7, math.MaxInt} {
		var r ring[int]
		var list []int
		for i := range 50 {
			before, was := r.all(), slices.Clone(list)
			r.add(i, limit)
			list = append(list, i)
			if len(list) > limit {
				list = list[len(list)-limit:]
			}
			require.True(t, slices.Equal(list, r.all()))
			require.True(t, slices.Equal(was, before), "a copy keeps what it had")
			require.Equal(t, i+1, len(r.kept)+r.dropped)
		}
	}
}
