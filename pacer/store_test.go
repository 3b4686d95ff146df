package pacer_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/internal/traffic"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

func TestStoreOfTheTests(t *testing.T) {
	store := traffic.NewStore()
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
	*traffic.Store
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
	if r.value, r.version, r.now, err = b.Store.Load(ctx, key); b.spoil != nil {
		b.spoil(&r)
	}
	return r.value, r.version, r.now, err
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
	var first []byte
	for rule, store := range map[string]*broken{
		`a key that was never set has no value and the version ""`: {spoil: func(r *reply) { r.version += "0" }},
		"a value may hold any bytes":                               {spoil: func(r *reply) { r.value = bytes.ToValidUTF8(r.value, nil) }},
		"Load tells the store's time":                              {spoil: func(r *reply) { r.now = time.Time{} }},
		`Swap with the version "" does not replace a value`:        {blind: true},
		"what Load returned is the caller's own": {spoil: func(r *reply) {
			if len(r.value) < 1<<10 {
				return
			}
			if first == nil {
				first = r.value
			}
			r.value = first
		}},
	} {
		var s said
		store.Store = traffic.NewStore()
		pacer.TestStore(&s, func() pacer.Store { return store })
		assert.Contains(t, strings.Join(s.rules, "\n"), rule)
	}
}
