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

// defaultIP is set aside for documentation (RFC 5737).
var defaultIP = netip.AddrFrom4([4]byte{192, 0, 2, 1})

// FromIP makes the client call from this IP address instead of 192.0.2.1, for
// the limits per address of interface 8. A text that is no IP address panics.
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
// net/http at both ends and an in-memory connection between them. It reaches no
// other host and ignores the proxies of the environment. In a synctest bubble,
// call it inside, with the bubble's tb.
//
// A cleanup of tb closes the connections and waits until the fake's goroutines
// for them have ended. If that takes longer than five seconds, it logs the
// calls that it waits for. With a nil tb, Close closes the connections. It then
// waits only for connections without a call under way, since Close may be
// called by a callback of such a call. A response body that the caller never
// closed holds goroutines of net/http until the context of its request ends, as
// on a socket; in a bubble that fails the test.
func (s *Server) HTTPClient(tb TB, opts ...ClientOption) *http.Client {
	return s.host.Client(tb, newClientConfig("HTTPClient", opts).ip)
}

// Direct returns a RoundTripper that calls the fake on the caller's goroutine,
// without connection or goroutine. It is several times as fast as HTTPClient,
// and nothing needs closing. Requests reach the fake and answers reach the
// caller in the shape that net/http gives them. A call whose context has ended
// never yields a response. Direct reaches no host but the one in BaseURL.
//
// It does not model connections: none is reused, and the timeouts of a
// Transport do not apply. Of the hooks of net/http/httptrace only GetConn,
// GotConn and WroteHeaders run. It leaves out headers such as host or
// content-length in lower case, which net/http would send besides its own. If a
// callback of the test waits for ever, so does the caller.
func (s *Server) Direct(opts ...ClientOption) http.RoundTripper {
	return s.host.Direct(newClientConfig("Direct", opts).ip)
}
