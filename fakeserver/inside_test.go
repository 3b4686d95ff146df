package fakeserver

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
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

// The rulebook finds what asking every rule finds, in the same order, whatever
// rules were added and removed.
func TestRulebookFindsWhatAskingAllFinds(t *testing.T) {
	s := New(t)
	random := rand.New(rand.NewPCG(1, 2))
	var all []*Script
	for range 2000 {
		switch random.IntN(4) {
		case 0:
			all = append(all, s.OnMessage(randomMatchers(random)...))
		case 1:
			if len(all) > 0 {
				gone := all[random.IntN(len(all))]
				gone.Remove()
				all = without(all, gone)
			}
		default:
			rec := &record{hasText: true, text: fmt.Sprint(random.IntN(3)), hasKey: true, token: digestOf(fmt.Sprint(random.IntN(3))), call: Call{
				Endpoint: routes[random.IntN(3)].endpoint(), AgentID: fmt.Sprint(random.IntN(3)),
			}}
			want := slices.DeleteFunc(slices.Clone(all), func(sc *Script) bool { return !matchesAll(sc.matchers, rec) })
			slices.Reverse(want)
			got := candidates(s, s.world.scripts.about(rec), rec)
			if !slices.Equal(want, got) {
				t.Fatalf("%v finds %v, asking all finds %v", rec.call, got, want)
			}
		}
	}
	assert.Equal(t, all, s.world.scripts.all())
}

func randomMatchers(random *rand.Rand) (matchers []Matcher) {
	for _, m := range []Matcher{
		ByEndpoint(routes[random.IntN(3)].endpoint()), ByKey(fmt.Sprint(random.IntN(3))), ByAgent(fmt.Sprint(random.IntN(3))),
		ByText(fmt.Sprint(random.IntN(3))), ByTextContaining(fmt.Sprint(random.IntN(3))), Where(func(c Call) bool { return c.AgentID > "0" }),
	} {
		if random.IntN(3) == 0 {
			matchers = append(matchers, m)
		}
	}
	return matchers
}

// Calls that are answered at the very moment at which a waiter begins are in
// the log or told to it, and never both.
func TestAwaitCallsWhileCallsCome(t *testing.T) {
	const calls = 6
	for range 500 {
		s := New(t)
		var all sync.WaitGroup
		s.mu.Lock() // until all are about to begin
		for i := range calls {
			req := &request{world: s.world, record: &record{call: Call{TraceID: numbered("trace", i)}}}
			all.Go(func() { s.keep(req, answer{}, answer{}) })
			if i == calls/2 {
				all.Go(func() {
					got, err := s.AwaitCalls(t.Context(), calls)
					assert.NoError(t, err)
					seen := map[string]bool{}
					for _, c := range got {
						seen[c.TraceID] = true
					}
					assert.Len(t, seen, calls, "no call counts twice")
				})
			}
		}
		s.mu.Unlock()
		all.Wait()
		require.Empty(t, s.watchers, "a waiter that is done is gone")
		require.Equal(t, calls, s.Admin().TotalCalls())
	}
}

// Who begins to wait behind a Reset does not count a call that arrived before
// it; who waits since before it does.
func TestWaiterBehindAReset(t *testing.T) {
	s := New(t)
	before, behind := &gathering{need: 3}, &gathering{need: 3}
	s.enroll(&watcher{see: before.add})
	old := &request{world: s.world, record: new(record)}
	s.Reset()
	s.enroll(&watcher{see: behind.add})
	s.keep(old, answer{}, answer{})
	s.keep(&request{world: s.world, record: new(record)}, answer{}, answer{})
	assert.Len(t, before.found, 2)
	assert.Len(t, behind.found, 1)
	assert.NotSame(t, old.record, behind.found[0])
}

// TestRests: who runs on another processor, or waits for the only one, does not rest.
func TestRests(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 2} {
		runtime.GOMAXPROCS(processors)
		var begun, ended atomic.Bool
		var spinning sync.WaitGroup
		spinning.Go(func() {
			for begun.Store(true); !ended.Load(); {
				continue
			}
		})
		for !begun.Load() {
			runtime.Gosched()
		}
		assert.False(t, rests(), "with %d processors", processors)
		ended.Store(true)
		spinning.Wait()
	}
}
