package fakeserver

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
)

// TB is the part of testing.TB that the fake needs. Because it is an interface, a program
// that contains a fake does not link package testing, and other test frameworks can
// implement it.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
	Failed() bool
}

// Server is the service in memory. New and Open make a Server; the zero Server cannot be
// used. All methods may be called from any goroutine and from inside callbacks. One
// Server may serve several synctest bubbles at once if each uses its own API key
// (IssueKey) and address (FromIP).
type Server struct {
	// No field may hold a channel, timer, WaitGroup or Cond: if it was made in a bubble, it
	// would tie the fake to that bubble.

	config config
	tb     TB          // nil when made by Open
	host   memnet.Host // the address that clients of HTTPClient and Direct reach

	// These fields are atomic. They are read on every call, where the lock would cost time, or
	// by code that calls a TB, which must not run under the lock.
	refusing atomic.Bool  // a RefuseConnection was injected; until then refuseConnection returns at once
	offset   atomic.Int64 // nanoseconds that Advance and Sleep have added to the clock
	closed   atomic.Bool
	unknown  atomic.Int32 // calls to paths and methods that no endpoint has

	serverLock // guards the fields below, and writes of offset
	generation *generation
	activity   int        // counts arrivals, answers, and beginnings and ends of Sleep
	problems   []error    // the errors that Close reports if tb is nil
	answered   int        // counts the recorded calls; Reset does not set it back
	watchers   []*watcher // its items never change in place, so a copy of the slice header is a snapshot
	sleepers   []int64    // the offsets of the clock at which each Sleep under way wakes
}

// generation is the part of a Server that Reset replaces. A call that is under way ends
// in the generation in which it began, so it cannot change the next test's state. The
// server's lock guards it.
type generation struct {
	service *service.State
	traces  int // trace identifiers given so far
	log     callLog

	// Rules in the order in which they were made. Each slice only grows or is replaced, so a
	// copy of its header is a snapshot.
	scripts    []*rule
	injections []*rule
	refusals   []*rule // of RefuseConnection, asked before a call is sent
}

// maxProblems bounds the errors that a fake without a test keeps for Close.
const maxProblems = 100

// reportf fails the test, or keeps the sentence for Close. After Close it reports
// nothing, since a finished test must not be failed.
func (s *Server) reportf(format string, args ...any) {
	if !s.closed.Load() {
		s.failf(format, args...)
	}
}

// failf is reportf for Close itself. The lock must not be held: a TB may call the fake.
func (s *Server) failf(format string, args ...any) {
	if s.tb != nil {
		s.tb.Helper()
		s.tb.Errorf("fakeserver: "+format, args...)
		return
	}
	problem := fmt.Errorf("fakeserver: "+format, args...) // before the lock is taken, because a rule among args takes the lock to print itself
	defer s.lock().Unlock()
	kept := s.problems[max(0, len(s.problems)-maxProblems+1):] // drops the oldest, never an error that Close itself adds last
	s.problems = append(kept, problem)
}

// Format prints "fakeserver.Server" for every verb: a fake holds texts that must
// not get into a log.
func (s *Server) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("fakeserver.Server")) }

// hostName is a name that cannot be resolved, so that a client without HTTPClient gets an
// error that says what is missing: "dial tcp: lookup
// WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid: no such host". It is not a valid
// domain name, so package net asks no name server for it.
const hostName = "WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid"

// watcher gets each recorded call, for one OnCall or for one AwaitCalls that waits.
type watcher struct {
	name     string // for messages
	matchers []Matcher
	show     func(*entry)
	failed   func() // ends the AwaitCalls if its matcher or show fails; nil for an OnCall
}

// serverLock guards a Server and its rules. memnet.Host has its own lock.
type serverLock struct{ mu sync.Mutex }

// lock takes the lock until the end of the function that calls it:
//
//	defer s.lock().Unlock()
//
// A function that needs the lock for a part of its work calls another function for that part.
// While it holds the lock, a function must not wait, read or write a body, or call a callback
// of the test. A panic for a mistake of the test releases the lock, since the Unlock is
// deferred. A function whose name ends in Locked must be called with the lock held.
func (l *serverLock) lock() *sync.Mutex {
	l.mu.Lock()
	return &l.mu
}
