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
	clock  interface{ Now() time.Time } // nil: this machine's
	down   bool
	hung   chan struct{}
}

func (m *memory) now() time.Time {
	if m.clock == nil {
		return time.Now()
	}
	return m.clock.Now()
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
	if !has || m.now().After(e.expires) {
		return nil, "", m.now(), nil
	}
	return []byte(e.value), strconv.Itoa(e.version), m.now(), nil
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
	m.values[key] = entry{string(value), m.swaps, m.now().Add(ttl)}
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
	spoil func(*reply)
	blind bool // to the version of a key that has a value
}

type reply struct {
	value   []byte
	version string
	now     time.Time
}

func (b *broken) Load(ctx context.Context, key string) (value []byte, version string, now time.Time, err error) {
	var r reply
	r.value, r.version, r.now, err = b.memory.Load(ctx, key)
	if b.spoil != nil {
		b.spoil(&r)
	}
	return r.value, r.version, r.now, err
}

func (b *broken) Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (bool, error) {
	if b.blind && version == "" {
		_, version, _, _ = b.memory.Load(ctx, key)
	}
	return b.memory.Swap(ctx, key, version, value, ttl)
}

// TestStoreFindsFaults: each broken store is refused, with the rule that it
// breaks.
func TestStoreFindsFaults(t *testing.T) {
	var first []byte
	for rule, store := range map[string]*broken{
		`a key that was never set has no value and the version ""`: {spoil: func(r *reply) { r.version += "0" }},
		"a value may hold any bytes":                               {spoil: func(r *reply) { r.value = bytes.ToValidUTF8(r.value, nil) }},
		"Load tells the store's time":                              {spoil: func(r *reply) { r.now = time.Time{} }},
		`Swap with the version "" does not replace a value`:        {blind: true},
		"what Load returned is the caller's own": {spoil: func(r *reply) {
			if first == nil && len(r.value) > 1<<10 {
				first = r.value
			} else if len(r.value) > 1<<10 {
				r.value = first
			}
		}},
	} {
		var s said
		pacer.TestStore(&s, func() pacer.Store { return store })
		assert.Contains(t, strings.Join(s.rules, "\n"), rule)
	}
}
