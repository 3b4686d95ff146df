package fakeserver

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
)

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
	s.generation = s.newGeneration()
	s.host.Addr, s.host.Answer, s.host.Refuse = hostName+":443", s.serve, s.refuseConnection
	return s, nil
}

// newGeneration makes the state of a fake that is new or was reset. The default key is
// issued, and nothing else exists.
func (s *Server) newGeneration() *generation {
	c := &s.config
	exchanges := cmp.Or(c.exchanges, max(c.callLimit, decisions.KeptExchanges))
	g := &generation{service: service.New(c.behavior, c.maxima, exchanges), log: callLog{limit: c.callLimit}}
	g.service.Issue(service.DigestOf(c.keyText(1)), string(c.plan), true, s.Now())
	return g
}

// Reset brings the fake back to the state after New. The default key keeps its text and
// is valid. Reset removes every other key, agent, configuration, limit, script, injection
// and recorded call, and identifiers start again at 1. A call that is under way changes
// only the old state, and its record is removed too. The clock is not set back, since it
// must not run backwards. Reset reports Required scripts and injections that were never
// used, as Close does.
//
// A client of the fake remembers closed limits. Make a new client, or its calls wait for
// limits that are open again.
func (s *Server) Reset() {
	s.reportUnused(s.reportf)
	g := s.newGeneration() // without the lock, because it runs the callback of WithClock
	defer s.lock().Unlock()
	s.generation = g // calls under way keep their old generation
}

// reportUnused reports the required rules that were never used, scripts first, each in
// its own sentence with the call that came nearest.
func (s *Server) reportUnused(reportf func(format string, args ...any)) {
	for _, r := range s.unusedRules() {
		reportf("%s at %s is required and was never used; calls that it matched: %d; %s", r.description(), r.at, r.matched, r.nearMiss(&s.config, s.kept()))
	}
}

// unusedRules returns copies of the required rules that were never used, since other
// calls may match the rules meanwhile.
func (s *Server) unusedRules() (unused []rule) {
	defer s.lock().Unlock()
	for _, r := range slices.Concat(s.generation.scripts, s.generation.injections, s.generation.refusals) {
		if r.required && r.hits == 0 {
			unused = append(unused, *r)
		}
	}
	return unused
}

// Close ends the fake: from now on it refuses its in-memory clients, on open
// connections too. A call that is under way still gets its answer, except over
// HTTPClient(nil), whose connections Close ends. Only the first Close does
// anything.
//
// Close fails the test of New if a Required script or injection was never used, unless the
// test was skipped. A fake of Open has no test: Close then returns an error for it, joined
// with the other errors that would have failed a test, such as a panic in a callback. It
// returns at most the newest 100.
func (s *Server) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if test, ok := s.tb.(interface{ Skipped() bool }); !ok || !test.Skipped() { // a test that is skipped need not reach a rule
		s.reportUnused(s.failf)
	}
	s.logCalls()
	s.host.Close()
	defer s.lock().Unlock()
	return errors.Join(s.problems...)
}

// BaseURL returns the base address (interface 1) of the fake for the clients that
// HTTPClient and Direct make. Any other client fails to dial it, and its error names what
// is missing. It is https, since clients refuse plain http to another machine, but
// nothing is encrypted. For a socket, put the Server into an httptest.Server and use the
// URL of the httptest.Server.
func (s *Server) BaseURL() string { return "https://" + hostName }

// HTTPClient returns a client whose every call goes to the fake, through real
// net/http at both ends and an in-memory connection between them. It reaches no
// other host and ignores the proxies of the environment. In a synctest bubble,
// call it inside, with the bubble's tb.
//
// A cleanup of tb closes the connections and waits until their goroutines in the fake
// have ended, including callbacks of the test that still run. With a nil tb, Close closes
// the connections, and does not wait. A response body that the caller never closed holds
// goroutines of net/http until the context of its request ends, as on a socket; in a
// bubble that fails the test.
func (s *Server) HTTPClient(tb TB, from ...FromIP) *http.Client {
	return s.host.Client(tb, address("HTTPClient", from))
}

// Direct returns a RoundTripper that calls the fake on the caller's goroutine, without a
// connection. It is about twice as fast as HTTPClient, and nothing needs
// closing. Requests reach the fake and answers reach the caller in the shape that
// net/http gives them. A request that net/http's server could not read is answered with
// the server's 400. A few requests reach the fake that net/http's server would answer by
// itself: a header of more than a megabyte (431), an Expect other than 100-continue (417),
// and OPTIONS * (200). A call whose context has ended never yields a response. Direct
// reaches no host but the one in BaseURL.
//
// Direct does not model connections: none is reused, and the timeouts of a Transport do not
// apply. Of the hooks of net/http/httptrace only GetConn, GotConn and WroteHeaders run. It
// leaves out headers such as host or content-length in lower case, which net/http would
// send in addition to its own headers. If a callback of the test never returns, the call
// never returns.
func (s *Server) Direct(from ...FromIP) http.RoundTripper {
	return s.host.Direct(address("Direct", from))
}
