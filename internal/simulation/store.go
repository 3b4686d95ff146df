package simulation

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
)

var errDown = errors.New("the store is down")

// health is what a store does to those who ask.
type health int

const (
	fine health = iota
	dead        // refuses connections
	hung        // answers nobody until it is fine again
)

// store is a store in memory that can fail as a server does.
type store struct {
	mu     sync.Mutex
	delay  time.Duration // each way
	values map[string]entry
	health health
	fine   chan struct{} // closed when it is no longer hung
	did    operations
}

type entry struct {
	value   []byte
	version int
}

// operations counts what a store was asked.
type operations struct{ loads, swaps, conflicts int }

func (s *store) Load(_ context.Context, key string) (value []byte, version string, now time.Time, err error) {
	err = s.visit(func() {
		s.did.loads++
		now = time.Now()
		if e, has := s.values[key]; has {
			value, version = e.value, strconv.Itoa(e.version)
		}
	})
	return value, version, now, err
}

func (s *store) Swap(_ context.Context, key, version string, value []byte, _ time.Duration) (swapped bool, err error) {
	err = s.visit(func() {
		s.did.swaps++
		e, has := s.values[key]
		if has && version != strconv.Itoa(e.version) || !has && version != "" {
			s.did.conflicts++
			return
		}
		if s.values == nil {
			s.values = map[string]entry{}
		}
		s.values[key], swapped = entry{value, s.did.swaps}, true
	})
	return swapped, err
}

// visit does not heed a context, as some clients of a store do not.
func (s *store) visit(do func()) error {
	s.mu.Lock()
	delay, state, again := s.delay, s.health, s.fine
	s.mu.Unlock()
	switch state {
	case dead:
		return errDown
	case hung:
		<-again // what was sent meanwhile is carried out late
	}
	time.Sleep(delay)
	s.mu.Lock()
	do()
	s.mu.Unlock()
	time.Sleep(delay)
	return nil
}

func (s *store) set(h health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.health == hung {
		close(s.fine)
	}
	if s.health = h; h == hung {
		s.fine = make(chan struct{})
	}
}

// flush loses all values.
func (s *store) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values = nil
}

func (s *store) count() operations {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.did
}

// link is a process's way to the store.
type link struct {
	process *process
	store   *store
}

func (l link) Load(ctx context.Context, key string) ([]byte, string, time.Time, error) {
	if !l.process.pass() {
		return nil, "", time.Time{}, errDown
	}
	return l.store.Load(ctx, key)
}

func (l link) Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (bool, error) {
	if !l.process.pass() {
		return false, errDown
	}
	return l.store.Swap(ctx, key, version, value, ttl)
}
