package fakeserver

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// TB is the part of testing.TB that the fake needs. With its own interface, a program
// that contains a fake does not link package testing, and other test frameworks fit.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
	Failed() bool
}

// Server is the service in memory. New and Open make one; the zero Server is of no use.
// All methods may be called from any goroutine and from inside callbacks. One Server may
// serve several synctest bubbles at once if each uses its own API key (IssueKey) and
// address (FromIP).
type Server struct {
	// No field may hold a channel, timer, WaitGroup or Cond: one that was made in a
	// bubble would tie the fake to that bubble.

	config config
	tb     TB          // nil when made by Open
	host   memnet.Host // the address that clients of HTTPClient and Direct reach

	// Atomic, since each is read where the lock would cost every call time, or must not
	// be held because a TB may be called next.
	refusing atomic.Bool  // a RefuseConnection was injected; until then refuseConnection returns at once
	offset   atomic.Int64 // nanoseconds that Advance and Sleep have added to the clock
	closed   atomic.Bool
	unknown  atomic.Int32 // calls to paths and methods that no endpoint has

	mu       sync.Mutex // guards the fields below, and writes of offset; only Server.lock takes it
	gen      *generation
	activity int        // counts arrivals, answers, and beginnings and ends of Sleep
	problems []error    // what Close reports when tb is nil
	answered int        // counts the recorded calls; Reset does not set it back
	watchers []*watcher // items never change in place, so a copy of the slice header is a snapshot
	sleepers []int64    // the offsets of the clock at which each Sleep under way wakes
}

// generation is the part of a Server that Reset replaces. A call that is under way ends
// in the generation that it began in, so it cannot change the next test's state. The
// server's lock guards it.
type generation struct {
	service *service.State
	traces  int // trace identifiers given so far
	log     callLog

	// Rules in the order in which they were made. A slice only grows, or is
	// replaced, so a copy of its header is a snapshot.
	scripts    []*rule
	injections []*rule
	refusals   []*rule // of RefuseConnection, asked before a call is sent
}

// lock takes the lock until the end of the function that calls it:
//
//	defer s.lock().Unlock()
//
// A function that needs the lock for a part of its work calls another function for
// that part. While the lock is held, nothing may wait, read or write a body, or call
// anything of the test. A panic for a mistake of the test releases it. A function whose
// name ends in Locked needs the lock held.
func (s *Server) lock() *sync.Mutex {
	s.mu.Lock()
	return &s.mu
}

// New returns a fake that lives as long as the test: a cleanup closes it, and
// the errors of Close fail the test. Without options it has the defaults that each
// Option names. New panics for a nil tb and for an unusable option.
func New(tb TB, opts ...Option) *Server {
	if tb == nil {
		panic("fakeserver: New needs a test; Open makes a fake outside tests")
	}
	tb.Helper()
	s, err := Open(opts...)
	if err != nil {
		panic(err.Error())
	}
	s.tb = tb
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// Open returns a fake for use outside tests. The caller must call Close, which
// returns the errors that would have failed the test of New. Open returns an error
// for an unusable option.
func Open(opts ...Option) (*Server, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("fakeserver: %w", err)
	}
	s := &Server{config: c}
	s.gen = s.newGeneration()
	s.host.Addr, s.host.Answer, s.host.Refuse = hostName+":443", s.serve, s.refuseConnection
	return s, nil
}

// newGeneration makes the state of a new fake, or of one after Reset: the default key
// is issued, and nothing else is there.
func (s *Server) newGeneration() *generation {
	c := &s.config
	exchanges := cmp.Or(c.exchanges, max(c.callLimit, spec.KeptExchanges))
	g := &generation{service: service.New(c.behavior, c.maxima, exchanges)}
	g.log.limit = c.callLimit
	g.service.Issue(service.DigestOf(c.keyText(1)), string(c.plan), true, s.Now())
	return g
}

// Reset brings the fake back to the state after New. The default key keeps its
// text and is valid. Every other key, agent, configuration, limit, script,
// injection and recorded call is forgotten, and identifiers start again at 1. A
// call that is under way still changes only the old state, and its record is
// forgotten too. The clock is not set back, since it must not run backwards. Reset
// reports Required scripts and injections that were never used, as Close does.
func (s *Server) Reset() {
	s.reportUnused(s.reportf)
	g := s.newGeneration() // without the lock: it calls the function of WithClock
	defer s.lock().Unlock()
	s.gen = g // calls under way keep theirs
}

// Close ends the fake: from now on it refuses its in-memory clients, on open
// connections too. A call that is under way still gets its answer, except over
// HTTPClient(nil), whose connections Close ends. Only the first Close does
// anything.
//
// Close fails the test of New if a Required script or injection was never used. A
// fake of Open has no test: Close then returns that as an error, joined with other
// things that would have failed a test, such as a panic in a callback: the newest
// 100 in all.
func (s *Server) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.reportUnused(s.failf)
	s.logCalls()
	s.host.Close()
	defer s.lock().Unlock()
	return errors.Join(s.problems...)
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
	problem := fmt.Errorf("fakeserver: "+format, args...) // before the lock is taken: a rule among args takes it to print itself
	defer s.lock().Unlock()
	kept := s.problems[max(0, len(s.problems)-maxProblems+1):] // drop the oldest, and never what Close reports: it comes last
	s.problems = append(kept, problem)
}

// Format prints "fakeserver.Server" for every verb: a fake holds texts that must
// not get into a log.
func (s *Server) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("fakeserver.Server")) }

// hostName is a name that cannot be found, so that the error of a client that does not
// use HTTPClient says what is missing: "dial tcp: lookup
// WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid: no such host". It is no
// domain name, so net asks no name server for it.
const hostName = "WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid"

// BaseURL returns the base address (interface 1) of the fake for the clients
// that HTTPClient and Direct make. Any other client fails to dial it, and its
// error names what is missing. It is https, since clients refuse plain http to
// another machine, but nothing is encrypted. For a socket, put the Server into
// an httptest.Server and use that one's URL.
func (s *Server) BaseURL() string { return "https://" + hostName }

// HTTPClient returns a client whose every call goes to the fake, through real
// net/http at both ends and an in-memory connection between them. It reaches no
// other host and ignores the proxies of the environment. In a synctest bubble,
// call it inside, with the bubble's tb.
//
// A cleanup of tb closes the connections and waits until the fake's goroutines for
// them have ended, and so for each callback of the test that still runs. With a nil
// tb, Close closes the connections, and does not wait. A response body that the
// caller never closed holds goroutines of net/http until the context of its request
// ends, as on a socket; in a bubble that fails the test.
func (s *Server) HTTPClient(tb TB, from ...FromIP) *http.Client {
	return s.host.Client(tb, address("HTTPClient", from))
}

// Direct returns a RoundTripper that calls the fake on the caller's goroutine,
// without connection or goroutine. It is about twice as fast as HTTPClient,
// and nothing needs closing. Requests reach the fake and answers reach the
// caller in the shape that net/http gives them, and what net/http's server cannot
// read gets its 400. A header may have any size here; net/http's server answers 431 to one
// of more than a megabyte. A call whose context has ended never yields a response. Direct
// reaches no host but the one in BaseURL.
//
// It does not model connections: none is reused, and the timeouts of a
// Transport do not apply. Of the hooks of net/http/httptrace only GetConn,
// GotConn and WroteHeaders run. It leaves out headers such as host or
// content-length in lower case, which net/http would send besides its own. If a
// callback of the test waits for ever, so does the caller.
func (s *Server) Direct(from ...FromIP) http.RoundTripper {
	return s.host.Direct(address("Direct", from))
}
