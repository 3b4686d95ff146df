package pacer_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

func TestStoreOfTheTests(t *testing.T) {
	store := loadsim.NewStore()
	pacer.TestStore(t, func() pacer.Store { return store })
}

// said collects what TestStore finds.
type said struct {
	mu    sync.Mutex
	rules []string
}

func (s *said) Helper() {}

func (s *said) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, fmt.Sprintf(format, args...))
}

// broken is a store with one fault.
type broken struct {
	*loadsim.Store
	spoil func(*loaded)
	blind bool // to the version of a key that has a value
}

type loaded struct {
	value   []byte
	version string
	now     time.Time
}

func (b *broken) Load(ctx context.Context, key string) ([]byte, string, time.Time, error) {
	value, version, now, err := b.Store.Load(ctx, key)
	l := loaded{value, version, now}
	if b.spoil != nil {
		b.spoil(&l)
	}
	return l.value, l.version, l.now, err
}

func (b *broken) Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (bool, error) {
	if b.blind && version == "" {
		_, version, _, _ = b.Store.Load(ctx, key)
	}
	return b.Store.Swap(ctx, key, version, value, ttl)
}

// TestStoreFindsFaults: each broken store is refused, with the rule that it
// breaks.
func TestStoreFindsFaults(t *testing.T) {
	kept := map[string][]byte{}
	for rule, store := range map[string]*broken{
		`a key that was never set has no value and the version ""`: {spoil: func(l *loaded) { l.version += "0" }},
		"a value may hold any bytes":                               {spoil: func(l *loaded) { l.value = bytes.ToValidUTF8(l.value, nil) }},
		"Load tells the store's time":                              {spoil: func(l *loaded) { l.now = time.Time{} }},
		`Swap with the version "" does not replace a value`:        {blind: true},
		"what Load returned is the caller's own": {spoil: func(l *loaded) {
			if len(l.value) > 1<<10 { // the small ones are loaded side by side
				if kept[l.version] == nil {
					kept[l.version] = l.value
				}
				l.value = kept[l.version]
			}
		}},
	} {
		var s said
		store.Store = loadsim.NewStore()
		pacer.TestStore(&s, func() pacer.Store { return store })
		assert.Contains(t, strings.Join(s.rules, "\n"), rule)
	}
}

// TestStoreFails: the processes go on with their shares, and return. Each logs
// one record when the store fails, and one when it is back.
func TestStoreFails(t *testing.T) {
	for name, fail := range map[string]func(*loadsim.Store, bool){"dead": (*loadsim.Store).Kill, "hung": (*loadsim.Store).Hang} {
		synctest.Test(t, func(t *testing.T) {
			s, log := fleet(16)
			s.Meanwhile = func(_ context.Context, w *loadsim.World) {
				time.Sleep(2 * time.Minute)
				fail(s.Store, true)
				time.Sleep(2 * time.Minute)
				assert.NoError(t, w.Fleet[0].SetLimits(perMinute(59)))
				state := w.Fleet[0].State()
				assert.Equal(t, 16, state.Processes)
				assert.InDelta(t, 110, time.Since(state.StoreDown).Seconds(), 11)
				fail(s.Store, false)
				time.Sleep(5 * time.Second)
				for _, p := range w.Fleet {
					assert.True(t, p.State().StoreDown.IsZero(), "back within 5 s")
				}
			}
			m := loadsim.Run(s).Measure(0, s.Span)
			assert.LessOrEqual(t, m.Refused, 1, "the fleet follows on the shares")
			assert.GreaterOrEqual(t, m.Used, 0.96)
			assert.Equal(t, 16, count(log, "store does not answer"))
			assert.Equal(t, 16, count(log, "store answers again"))
			assert.Equal(t, name == "dead", count(log, "what to do about that") > 0, "its words are whole")
			assert.Zero(t, count(log, loadsim.Key))
		})
	}
}

// TestStoreLosesItsValue: somebody tells it again.
func TestStoreLosesItsValue(t *testing.T) {
	for name, lose := range map[string]func(value []byte) []byte{
		"flushed": func([]byte) []byte { return nil },
		"damaged": func(value []byte) []byte { return value[:len(value)-1] },
		"foreign": func([]byte) []byte { return []byte("OK") },
	} {
		synctest.Test(t, func(t *testing.T) {
			s, log := fleet(2)
			s.Meanwhile = func(context.Context, *loadsim.World) {
				time.Sleep(2 * time.Minute)
				s.Store.Values(func(values map[string]loadsim.Entry) {
					for key, e := range values {
						if e.Value = lose(e.Value); e.Value == nil {
							e = loadsim.Entry{}
						}
						values[key] = e
					}
				})
			}
			m := loadsim.Run(s).Measure(0, s.Span)
			assert.Zero(t, m.Refused, name)
			assert.GreaterOrEqual(t, m.Used, 0.98, name)
			assert.Equal(t, 1, count(log, "begins the shared state afresh"), name)
		})
	}
}

// TestStoreIsToldAgain what was learned, and how much of a long limit is used.
func TestStoreIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := loadsim.NewStore()
		p := sharing(t, append(perMinute(60), pacer.Limit{Key: "day", Max: 1000, Window: 24 * time.Hour}), store)
		fill(t, p, 2*time.Minute)
		acquire(t, p, patient()).Done(tooMany("", 15*time.Second))
		synctest.Wait()
		before := p.State().Limits
		store.Values(func(values map[string]loadsim.Entry) { clear(values) })
		acquire(t, p, patient())
		after := p.State().Limits
		assert.Less(t, after[0].Level, 50.0)
		assert.Equal(t, before[0].Level, after[0].Level)
		assert.Equal(t, before[1].Used+1, after[1].Used)
	})
}
