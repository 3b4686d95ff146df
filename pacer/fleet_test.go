package pacer_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

const canary = "amk_canary_9f2c71"

// logged collects a pacer's log.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) option() pacer.Option {
	return pacer.WithLogger(slog.New(slog.NewTextHandler(l, nil)))
}

// fleetOf is so many processes with four workers each, who note their calls
// until the test ends.
type fleetOf struct {
	pacers []*pacer.Pacer
	began  time.Time
	mu     sync.Mutex
	at     []time.Duration // of every call
}

func startFleet(t *testing.T, processes int, store pacer.Store, opts ...pacer.Option) *fleetOf {
	t.Helper()
	f := &fleetOf{began: time.Now()}
	for range processes {
		p := newPacer(t, perMinute(60), append(opts, pacer.WithStore(store, canary))...)
		f.pacers = append(f.pacers, p)
		for range 4 {
			go f.work(t.Context(), p)
		}
	}
	return f
}

func (f *fleetOf) work(ctx context.Context, p *pacer.Pacer) {
	for {
		permit, err := p.Acquire(ctx, patient())
		if err != nil {
			return
		}
		f.mu.Lock()
		f.at = append(f.at, time.Since(f.began))
		f.mu.Unlock()
		permit.Done(agentmessaging.AttemptOutcome{StatusCode: 200, Sent: true})
	}
}

// wantWithin checks that no window of a minute had more calls.
func (f *fleetOf) wantWithin(t *testing.T, most int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.at)
	for i := range f.at {
		n := 0
		for j := i; j < len(f.at) && f.at[j] < f.at[i]+time.Minute; j++ {
			n++
		}
		require.LessOrEqual(t, n, most, "in the minute from %s on", f.at[i])
	}
}

func (f *fleetOf) since(from time.Duration) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.at {
		if at >= from {
			n++
		}
	}
	return n
}

// TestStoreFails: the processes go on with their shares, and return. Each logs
// one record when the store fails, and one when it is back.
func TestStoreFails(t *testing.T) {
	for name, fail := range map[string]func(*memory){
		"dead": func(m *memory) { m.down = true },
		"hung": func(m *memory) { m.hung = make(chan struct{}) },
	} {
		for _, processes := range []int{1, 16} {
			t.Run(fmt.Sprint(name, processes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store, log := &memory{}, &logged{}
					f := startFleet(t, processes, store, log.option())
					time.Sleep(2 * time.Minute)
					store.set(func() { fail(store) })
					time.Sleep(2 * time.Minute)
					s := f.pacers[0].State()
					assert.Equal(t, processes, s.Processes)
					assert.InDelta(t, 110, time.Since(s.StoreDown).Seconds(), 11)
					store.set(func() {
						if store.hung != nil {
							close(store.hung)
						}
						store.down, store.hung = false, nil
					})
					time.Sleep(5 * time.Second)
					for _, p := range f.pacers {
						assert.True(t, p.State().StoreDown.IsZero(), "back within 5 s")
					}
					time.Sleep(2 * time.Minute)
					f.wantWithin(t, 62)
					assert.GreaterOrEqual(t, f.since(0), 6*60-2)
					assert.Equal(t, processes, strings.Count(log.String(), "store does not answer"))
					assert.Equal(t, processes, strings.Count(log.String(), "store answers again"))
					assert.Equal(t, name == "dead", strings.Contains(log.String(), "what to do about that"), "its words are whole")
					assert.NotContains(t, log.String(), canary)
				})
			})
		}
	}
}

// TestStoreLosesItsValue: somebody tells it again.
func TestStoreLosesItsValue(t *testing.T) {
	for name, lose := range map[string]func(map[string]entry){
		"flushed": func(values map[string]entry) { clear(values) },
		"damaged": func(values map[string]entry) { change(values, func(v string) string { return v[:len(v)-1] + "x" }) },
		"foreign": func(values map[string]entry) { change(values, func(string) string { return "OK" }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, log := &memory{}, &logged{}
				f := startFleet(t, 4, store, log.option())
				time.Sleep(2 * time.Minute)
				store.set(func() { lose(store.values) })
				time.Sleep(2 * time.Minute)
				f.wantWithin(t, 60)
				assert.GreaterOrEqual(t, f.since(0), 4*58)
				assert.Equal(t, 1, strings.Count(log.String(), "begins the shared state afresh"))
			})
		})
	}
}

func change(values map[string]entry, how func(string) string) {
	for key, e := range values {
		e.value = how(e.value)
		values[key] = e
	}
}

// TestStoreAppears: what the processes found by trial is no level of the fleet.
func TestStoreAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{down: true}
		p := newPacer(t, pacer.PreviewLimits(), pacer.WithStore(store, canary))
		acquire(t, p, creation).Done(tooMany("", time.Hour))
		f := startFleet(t, 4, store)
		time.Sleep(time.Minute)
		assert.InDelta(t, 4*18, f.since(0), 4*4, "each a quarter, to begin with")
		assert.Zero(t, f.pacers[0].State().Processes)
		store.set(func() { store.down = false })
		time.Sleep(10*time.Second + 3*time.Minute)
		assert.GreaterOrEqual(t, f.since(70*time.Second), 3*59)
		assert.Equal(t, 60.0, f.pacers[0].State().Limits[0].Level)
		acquire(t, p, message) // and a look at the store beside it
		synctest.Wait()
		refusal := wantRefusal(t, newPacer(t, pacer.PreviewLimits(), pacer.WithStore(store, canary)), context.Background(), creation)
		assert.InDelta(t, 3600-250, refusal.RetryAfter.Seconds(), 5, "and what it was refused, it tells")
	})
}

// TestProcesses: a grant that nobody waits for any more is given back; a process
// is forgotten two minutes after its last step, and a refusal reaches all.
func TestProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		one, two := newPacer(t, perMinute(60), pacer.WithStore(store, canary)), newPacer(t, perMinute(60), pacer.WithStore(store, canary))
		acquire(t, two, message)
		for range 4 {
			acquire(t, one, message)
		}
		used := one.State().Limits[0].Used
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _, _ = one.Acquire(ctx, patient()) }()
		time.Sleep(900 * time.Millisecond) // its turn is claimed 250 ms before it comes
		synctest.Wait()
		assert.Equal(t, used+1, one.State().Limits[0].Used)
		cancel()
		synctest.Wait()
		assert.Equal(t, used, one.State().Limits[0].Used)
		assert.Equal(t, 2, one.State().Processes)
		time.Sleep(3 * time.Minute)
		acquire(t, one, message).Done(tooMany("theirs", time.Hour))
		assert.Equal(t, 1, one.State().Processes)
		synctest.Wait()
		refusal := wantRefusal(t, two, context.Background(), message)
		assert.InDelta(t, 3600, refusal.RetryAfter.Seconds(), 1, "what one was refused, the other does not try")
	})
}

// TestStoreHoldsNoSecret: neither the key nor a way to find it by trial.
func TestStoreHoldsNoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		p := newPacer(t, pacer.PreviewLimits(), pacer.WithStore(store, canary))
		acquire(t, p, creation)
		synctest.Wait()
		require.Len(t, store.values, 1)
		for key, e := range store.values {
			assert.Regexp(t, `^agentmessaging:[0-9a-f]{32}$`, key)
			assert.NotContains(t, key+unzipped(t, e.value), canary)
			assert.Equal(t, 49*time.Hour, time.Until(e.expires))
		}
		assert.NotContains(t, fmt.Sprintf("%+v %#v", p, p), canary)
		other := newPacer(t, pacer.PreviewLimits(), pacer.WithStore(store, canary+"x"))
		acquire(t, other, creation)
		assert.Len(t, store.values, 2)
		raised := pacer.PreviewLimits()
		raised[0].Max = 300
		acquire(t, newPacer(t, raised, pacer.WithStore(store, canary)), creation)
		assert.Len(t, store.values, 2, "a plan with another Max shares the value")
	})
}

func unzipped(t *testing.T, value string) string {
	t.Helper()
	unzipper, err := gzip.NewReader(strings.NewReader(value))
	require.NoError(t, err)
	plain, err := io.ReadAll(unzipper)
	require.NoError(t, err)
	require.Contains(t, string(plain), `"Limits":[{`)
	return string(plain)
}

// TestSetLimitsOfAFleet while calls wait: the new set has another value.
func TestSetLimitsOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		log := &logged{}
		f := startFleet(t, 2, store, log.option())
		time.Sleep(30 * time.Second)
		for _, p := range f.pacers {
			require.NoError(t, p.SetLimits([]pacer.Limit{{Key: "other", Max: 600, Window: time.Minute}, {Key: "day", Max: 9000, Window: 24 * time.Hour}}))
			assert.Len(t, p.State().Limits, 2)
		}
		time.Sleep(30 * time.Second)
		assert.InDelta(t, 300, f.since(30*time.Second), 15)
		assert.Len(t, store.values, 2)
		assert.Equal(t, 2, f.pacers[0].State().Processes)
		assert.Empty(t, log.String())
	})
}

// TestFakeClock: a store that tells the time of the client's clock takes part in
// its leaps.
func TestFakeClock(t *testing.T) {
	store := &memory{}
	fake, client := onFake(newPacer(t, perMinute(60), pacer.WithStore(store, canary)))
	defer fake.Close()
	store.clock = fake
	began := fake.Now()
	for range 100 {
		_, err := client.GetAgent(t.Context(), "none")
		require.ErrorIs(t, err, agentmessaging.ErrNotFound)
	}
	assert.InDelta(t, 100, fake.Now().Sub(began).Seconds(), 10)
	assert.Equal(t, 100, fake.CallCount())
	assert.Less(t, store.swaps, 250)
}

// TestSlowStore is said once, with what to do.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logged{}
		store := &contended{}
		p := newPacer(t, []pacer.Limit{{Key: "k", Max: 6000, Window: time.Minute}}, pacer.WithStore(store, canary), log.option())
		for range 600 {
			acquire(t, p, patient())
		}
		assert.Equal(t, 1, strings.Count(log.String(), "too far away"))
		assert.Contains(t, log.String(), "use a store that is nearer")
	})
}

// contended is a store where somebody else is quicker every other time.
type contended struct {
	memory
	n int
}

func (c *contended) Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (bool, error) {
	if c.n++; c.n%2 == 0 {
		return false, nil
	}
	return c.memory.Swap(ctx, key, version, value, ttl)
}
