package loadsim

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// ErrDown is how a dead store fails.
var ErrDown = errors.New("the store is down, and says in many words which of its settings is wrong and what to do about that")

// Store is a store in memory that can fail as a server does: a pacer.Store.
type Store struct {
	*server
	by *Process // who asks; nil: somebody who is never frozen
}

type server struct {
	Clock agentmessaging.Clock
	Away  time.Duration // each way

	mu     sync.Mutex
	values map[string]Entry
	dead   bool
	hung   barrier
	did    operations
}

// NewStore is empty.
func NewStore() *Store {
	return &Store{server: &server{Clock: quota.RealClock{}, values: map[string]Entry{}}}
}

// Entry is what a store keeps for a key.
type Entry struct {
	Value   []byte
	Expires time.Time
	version string
}

// operations counts what a store was asked.
type operations struct{ loads, swaps, conflicts int }

// Load is of pacer.Store.
func (s *Store) Load(_ context.Context, key string) (value []byte, version string, now time.Time, err error) {
	err = s.visit(func() {
		s.did.loads++
		now = s.Clock.Now()
		e := s.entry(key)
		value, version = slices.Clone(e.Value), e.version
	})
	return value, version, now, err
}

// Swap is of pacer.Store.
func (s *Store) Swap(_ context.Context, key, version string, value []byte, ttl time.Duration) (swapped bool, err error) {
	err = s.visit(func() {
		s.did.swaps++
		if swapped = s.entry(key).version == version; swapped {
			s.values[key] = Entry{value, s.Clock.Now().Add(ttl), strconv.Itoa(s.did.swaps)}
		} else {
			s.did.conflicts++
		}
	})
	return swapped, err
}

func (s *server) entry(key string) (e Entry) {
	if e = s.values[key]; s.Clock.Now().After(e.Expires) {
		return Entry{}
	}
	return e
}

// visit carries something out on its server. It does not heed a context, as
// some clients of a store do not. What was sent while it hung is carried out late.
func (s *Store) visit(do func()) error {
	if s.by != nil && !s.by.pass() {
		return ErrDown
	}
	s.hung.pass()
	time.Sleep(s.Away)
	s.mu.Lock()
	defer time.Sleep(s.Away)
	defer s.mu.Unlock()
	if s.dead {
		return ErrDown
	}
	do()
	return nil
}

// Kill makes the store refuse connections, until it may live again.
func (s *server) Kill(dead bool) { s.Values(func(map[string]Entry) { s.dead = dead }) }

// Hang makes it answer nobody, until it may go on.
func (s *server) Hang(hung bool) { s.hung.set(hung) }

// Values lets f see, and change, all that is kept.
func (s *server) Values(f func(map[string]Entry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.values)
}

func (s *server) count() (did operations) {
	s.Values(func(map[string]Entry) { did = s.did })
	return did
}

// barrier holds up who passes while it is shut.
type barrier struct {
	mu   sync.Mutex
	shut chan struct{} // not nil: until it is closed
}

func (b *barrier) set(shut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut != nil {
		close(b.shut)
	}
	if b.shut = nil; shut {
		b.shut = make(chan struct{})
	}
}

func (b *barrier) pass() {
	b.mu.Lock()
	shut := b.shut
	b.mu.Unlock()
	if shut != nil {
		<-shut
	}
}
