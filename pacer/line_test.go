package pacer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLineAgainstANaiveOne: tenants take turns, each in the order in which its
// calls came, and before is how many really go before.
func TestLineAgainstANaiveOne(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		var l line
		var waiting []*call
		for range 2000 {
			switch n := random.IntN(10); {
			case n < 6:
				w := &call{tenant: fmt.Sprint(random.IntN(5)), deadline: random.Int64N(100), maxWait: 1}
				before := l.before(w.tenant)
				l.push(w)
				waiting = append(waiting, w)
				slices.SortStableFunc(waiting, func(a, b *call) int { return a.round - b.round })
				require.Equal(t, before, slices.Index(waiting, w), "seed %d", seed)
			case n < 8 && len(waiting) > 0:
				require.Same(t, waiting[0], l.pop(), "seed %d", seed)
				waiting = waiting[1:]
			case len(waiting) > 0:
				at := random.IntN(len(waiting))
				require.True(t, l.remove(waiting[at]), "seed %d: removed, of %d", seed, len(waiting))
				require.False(t, l.remove(waiting[at]), "seed %d: removed again", seed)
				waiting = slices.Delete(waiting, at, at+1)
			}
			require.Equal(t, len(waiting), l.waiting, "seed %d: waiting", seed)
			require.True(t, slices.Equal(waiting, l.all()), "seed %d", seed)
		}
	}
}

// TestTenantsAreForgotten, or their names would fill the memory.
func TestTenantsAreForgotten(t *testing.T) {
	var l line
	for i := range 10_000 {
		l.push(&call{tenant: fmt.Sprint(i)})
		l.pop()
	}
	assert.Less(t, len(l.last), 200)
}

// BenchmarkLine is 100,000 callers who arrive, and leave.
func BenchmarkLine(b *testing.B) {
	for b.Loop() {
		var l line
		waiting := make([]call, 100_000)
		for i := range waiting {
			waiting[i].deadline = int64(1 + i)
			l.before("")
			l.push(&waiting[i])
		}
		for i := range waiting {
			l.remove(&waiting[i])
		}
	}
}
