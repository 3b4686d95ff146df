package quota

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLineAgainstANaiveOne: tenants take turns, each in the order in which its calls
// came, those that the service has refused go first, and before is how many really go
// before.
func TestLineAgainstANaiveOne(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		var l line
		var waiting []*Waiter
		for range 2000 {
			switch n := random.IntN(10); {
			case n < 6:
				w := &Waiter{Tenant: fmt.Sprint(random.IntN(5)), Refused: random.IntN(5) == 0}
				before := l.place(w)
				l.push(w, before)
				waiting = append(waiting, w)
				slices.SortStableFunc(waiting, func(a, b *Waiter) int { return a.round - b.round })
				require.Equal(t, before, slices.Index(waiting, w), "seed %d", seed)
			case n < 8 && len(waiting) > 0:
				require.Same(t, waiting[0], l.first(), "seed %d", seed)
				require.Same(t, waiting[0], l.pop(), "seed %d", seed)
				waiting = waiting[1:]
			case len(waiting) > 0:
				at := random.IntN(len(waiting))
				require.True(t, l.remove(waiting[at]), "seed %d", seed)
				require.False(t, l.remove(waiting[at]), "seed %d: removed again", seed)
				waiting = slices.Delete(waiting, at, at+1)
			}
			require.True(t, slices.Equal(waiting, l.all()), "seed %d", seed)
		}
	}
}

// TestTenantsAreForgotten, or their names would fill the memory.
func TestTenantsAreForgotten(t *testing.T) {
	var l line
	for i := range 10_000 {
		w := &Waiter{Tenant: fmt.Sprint(i)}
		l.push(w, l.place(w))
		l.pop()
	}
	assert.Less(t, len(l.last), 200)
}
