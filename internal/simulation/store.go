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
	version string
}

// operations counts what a store was asked.
type operations struct{ loads, swaps, conflicts int }

// visit carries something out on its server. It does not heed a context, as
// some clients of a store do not.
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
	clear(s.values)
}

func (s *store) count() operations {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.did
}

// link is a process's way to the store: a pacer.Store.
type link struct {
	process *process
	store   *store
}

func (l link) Load(_ context.Context, key string) (value []byte, version string, now time.Time, err error) {
	if !l.process.pass() {
		return nil, "", now, errDown
	}
	err = l.store.visit(func() {
		l.store.did.loads++
		e := l.store.values[key]
		value, version, now = e.value, e.version, time.Now()
	})
	return value, version, now, err
}

func (l link) Swap(_ context.Context, key, version string, value []byte, _ time.Duration) (swapped bool, err error) {
	if !l.process.pass() {
		return false, errDown
	}
	err = l.store.visit(func() {
		l.store.did.swaps++
		if swapped = l.store.values[key].version == version; swapped {
			l.store.values[key] = entry{value, strconv.Itoa(l.store.did.swaps)}
		} else {
			l.store.did.conflicts++
		}
	})
	return swapped, err
}
