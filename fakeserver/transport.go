package fakeserver

import (
	"net/http"
	"net/netip"
)

// BaseURL returns the base address (interface 1) of the fake for the clients
// that HTTPClient and Direct make. Any other client fails to dial it, and its
// error names what is missing. It is https, since clients refuse plain http to
// another machine, but nothing is encrypted. For a socket, put the Server into
// an httptest.Server and use that one's URL.
func (s *Server) BaseURL() string { return "https://" + host }

// ClientOption changes a client of the fake.
type ClientOption func(*clientConfig)

type clientConfig struct {
	ip netip.Addr
}

// defaultIP is an address that is set aside for documentation (RFC 5737).
var defaultIP = netip.AddrFrom4([4]byte{192, 0, 2, 1})

// FromIP makes the client call from this IP address instead of 192.0.2.1, for
// the limits per address of interface 8. What is no IP address panics.
func FromIP(address string) ClientOption {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		misuse("FromIP", "%s is not an IP address such as 203.0.113.7", quoteName(address))
	}
	return func(c *clientConfig) { c.ip = ip }
}

func newClientConfig(method string, opts []ClientOption) clientConfig {
	c := clientConfig{ip: defaultIP}
	for i, opt := range opts {
		if opt == nil {
			misuse(method, "option %d is nil", i+1)
		}
		opt(&c)
	}
	return c
}

// HTTPClient returns a client whose every call goes to the fake, through real
// net/http at both ends and an in-memory connection between them. It reaches
// no other host, proxies of the environment included. In a synctest bubble,
// call it inside, with the bubble's tb.
//
// A cleanup of tb closes the connections and waits until the fake's goroutines
// for them have ended; what it waits for longer than five seconds stands in the
// log of tb. With a nil tb, Close closes them, and waits only for those without
// a call under way: a callback that calls Close waits for itself otherwise. A
// response body that the caller never closed holds goroutines of net/http until
// the context of its request ends, as it does on a socket; in a bubble that
// fails the test.
func (s *Server) HTTPClient(tb TB, opts ...ClientOption) *http.Client {
	return s.host.Client(tb, newClientConfig("HTTPClient", opts).ip)
}

// Direct returns a RoundTripper that calls the fake on the caller's goroutine,
// without connection or goroutine: several times as fast as HTTPClient, and
// with nothing to clean up. What the fake sees and what the caller gets are
// shaped as net/http shapes them. A call whose context has ended never yields
// a response. It reaches no other host than that of BaseURL.
//
// What it does not model: connections, so no reuse, no timeouts of a Transport,
// and of the hooks of net/http/httptrace only GetConn, GotConn and
// WroteHeaders; names in Request.Header such as host or content-length in lower
// case, which net/http sends besides its own, and which are left out here; and
// a callback of the test that waits without end is waited for.
func (s *Server) Direct(opts ...ClientOption) http.RoundTripper {
	return s.host.Direct(newClientConfig("Direct", opts).ip)
}
