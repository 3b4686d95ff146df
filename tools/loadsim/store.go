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

// Store is a pacer.Store in memory that can fail like a server.
type Store struct {
	*server
	pass func(travel time.Duration) error // takes a message across the network of the process that uses the store; fails if the process was killed
	note func(Event)
}

type server struct {
	Clock agentmessaging.Clock
	Away  time.Duration // from a process to the store, each way

	mu         sync.Mutex
	values     map[string]Entry
	swaps      int
	dead, hung deadline
}

// NewStore returns an empty store that belongs to no World.
func NewStore() *Store {
	return &Store{&server{Clock: quota.RealClock{}, values: map[string]Entry{}}, func(time.Duration) error { return nil }, func(Event) {}}
}

// Entry is the value of a key.
type Entry struct {
	Value   []byte
	Expires time.Time
	version string
}

// Load implements pacer.Store.
func (s *Store) Load(_ context.Context, key string) (value []byte, version string, now time.Time, err error) {
	err = s.visit(func() Kind {
		now = s.Clock.Now()
		e := s.entry(key)
		value, version = slices.Clone(e.Value), e.version
		return loaded
	})
	return value, version, now, err
}

// Swap implements pacer.Store.
func (s *Store) Swap(_ context.Context, key, version string, value []byte, ttl time.Duration) (done bool, err error) {
	err = s.visit(func() Kind {
		if s.entry(key).version != version {
			return conflicted
		}
		s.swaps++
		s.values[key] = Entry{value, s.Clock.Now().Add(ttl), strconv.Itoa(s.swaps)}
		done = true
		return swapped
	})
	return done, err
}

func (s *server) entry(key string) (e Entry) {
	if e = s.values[key]; s.Clock.Now().After(e.Expires) {
		return Entry{}
	}
	return e
}

// visit runs do on the server. It ignores contexts, as some store clients do. If the server
// hangs, do runs when it answers again.
func (s *Store) visit(do func() Kind) error {
	if err := s.pass(0); err != nil {
		return err
	}
	time.Sleep(s.hung.left())
	time.Sleep(s.Away)
	s.mu.Lock()
	defer time.Sleep(s.Away)
	defer s.mu.Unlock()
	if s.dead.left() > 0 { // a long text with the key, which the Pacer has to shorten and mask
		return errors.New("the store is down, and says in many words which setting of " + Key + " is wrong and what to do about that")
	}
	s.note(Event{Kind: do()})
	return nil
}

// Kill makes the store refuse connections for this time.
func (s *server) Kill(during time.Duration) { s.dead.set(during) }

// Hang makes the store answer nobody for this time.
func (s *server) Hang(during time.Duration) { s.hung.set(during) }

// Values calls f with all entries, which f may change.
func (s *server) Values(f func(map[string]Entry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.values)
}
