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
	"github.com/agent-messaging-service/agentmessaging-go/pacer/storetest"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

func TestStoreOfTheSimulation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := loadsim.NewStore()
		storetest.Run(t, func() pacer.Store { return store })
	})
}

// said collects what storetest finds.
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

// TestFaultsAreFound: each broken store is refused, with the rule that it
// breaks.
func TestFaultsAreFound(t *testing.T) {
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
		synctest.Test(t, func(*testing.T) { storetest.Run(&s, func() pacer.Store { return store }) })
		assert.Contains(t, strings.Join(s.rules, "\n"), rule, rule)
	}
}
