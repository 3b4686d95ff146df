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

// FromIP is the IP address that a client calls from instead of 192.0.2.1, for
// the limits per address of interface 8. A text that is no IP address panics
// where it is used.
type FromIP string

// address is the one of the newest FromIP, or one that is set aside for
// documentation (RFC 5737).
func address(method string, from []FromIP) netip.Addr {
	if len(from) == 0 {
		return netip.AddrFrom4([4]byte{192, 0, 2, 1})
	}
	return parseIP(method, string(from[len(from)-1]))
}

func parseIP(method, address string) netip.Addr {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		misuse(method, "%s is not an IP address such as 203.0.113.7", quoteName(address))
	}
	return ip
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
func (s *Server) HTTPClient(tb TB, from ...FromIP) *http.Client {
	return s.host.Client(tb, address("HTTPClient", from))
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
func (s *Server) Direct(from ...FromIP) http.RoundTripper {
	return s.host.Direct(address("Direct", from))
}
