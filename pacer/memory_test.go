package pacer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

var errDown = errors.New("the store is down, and says in many words which of its settings is wrong and what to do about that")

// memory is a store in memory. It fails while down, and is deaf while hung is
// not nil.
type memory struct {
	mu     sync.Mutex
	values map[string]entry
	swaps  int
	down   bool
	hung   chan struct{}
}

type entry struct {
	value   string
	version int
	expires time.Time
}

// visit does not heed a context, as some clients of a store do not.
func (m *memory) visit() error {
	m.mu.Lock()
	down, hung := m.down, m.hung
	m.mu.Unlock()
	if hung != nil {
		<-hung
	}
	if down {
		return errDown
	}
	return nil
}

func (m *memory) Load(_ context.Context, key string) ([]byte, string, time.Time, error) {
	if err := m.visit(); err != nil {
		return nil, "", time.Time{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, has := m.values[key]
	if !has || time.Now().After(e.expires) {
		return nil, "", time.Now(), nil
	}
	return []byte(e.value), strconv.Itoa(e.version), time.Now(), nil
}

func (m *memory) Swap(_ context.Context, key, version string, value []byte, ttl time.Duration) (bool, error) {
	if err := m.visit(); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, has := m.values[key]
	if has && version != strconv.Itoa(e.version) || !has && version != "" {
		return false, nil
	}
	if m.values == nil {
		m.values = map[string]entry{}
	}
	m.swaps++
	m.values[key] = entry{string(value), m.swaps, time.Now().Add(ttl)}
	return true, nil
}

func (m *memory) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func TestStoreOfTheTests(t *testing.T) {
	m := &memory{}
	pacer.TestStore(t, func() pacer.Store { return m })
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
	memory
	load func(value []byte, version string, now time.Time) ([]byte, string, time.Time)
	swap func(key, version string) (newKey, newVersion string)
}

func (b *broken) Load(ctx context.Context, key string) ([]byte, string, time.Time, error) {
	value, version, now, err := b.memory.Load(ctx, key)
	if b.load != nil {
		value, version, now = b.load(value, version, now)
	}
	return value, version, now, err
}

func (b *broken) Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (bool, error) {
	if b.swap != nil {
		key, version = b.swap(key, version)
	}
	return b.memory.Swap(ctx, key, version, value, ttl)
}

// TestStoreFindsFaults: each broken store is refused, with the rule that it
// breaks.
func TestStoreFindsFaults(t *testing.T) {
	shared, once := make([]byte, 40<<10), sync.Once{}
	for rule, store := range map[string]*broken{
		`a key that was never set has no value and the version ""`: {load: func(v []byte, version string, now time.Time) ([]byte, string, time.Time) {
			return v, version + "0", now
		}},
		"a value may hold any bytes": {load: func(v []byte, version string, now time.Time) ([]byte, string, time.Time) {
			return bytes.ToValidUTF8(v, nil), version, now
		}},
		"what Load returned is the caller's own": {load: func(v []byte, version string, now time.Time) ([]byte, string, time.Time) {
			if len(v) < 30<<10 {
				return v, version, now
			}
			once.Do(func() { copy(shared, v) })
			return shared[:len(v)], version, now
		}},
		"Load tells the store's time": {load: func(v []byte, version string, _ time.Time) ([]byte, string, time.Time) {
			return v, version, time.Time{}
		}},
		`Swap with the version "" does not replace a value`: {},
	} {
		if store.load == nil {
			store.swap = func(key, version string) (string, string) {
				if version == "" {
					_, version, _, _ = store.memory.Load(context.Background(), key)
				}
				return key, version
			}
		}
		var s said
		pacer.TestStore(&s, func() pacer.Store { return store })
		assert.Contains(t, strings.Join(s.rules, "\n"), rule)
	}
}
