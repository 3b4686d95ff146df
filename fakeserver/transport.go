package fakeserver

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
)

// host is where the fake pretends to listen. Nothing ever listens on port 1,
// so a client that was not given HTTPClient is refused at once, and nothing
// leaves the machine. A loopback address, because clients refuse plain http
// to any other.
const host = "127.0.0.1:1"

// BaseURL returns the base address (interface 1) of the fake for the clients
// that HTTPClient and Direct make. For a socket, put the Server into an
// httptest.Server and use that one's URL.
func (s *Server) BaseURL() string { return "http://" + host }

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

// nextAddr is the address of a new connection.
func (s *Server) nextAddr(ip netip.Addr) netip.AddrPort {
	const first, count = 49152, 16384 // the ports for clients
	return netip.AddrPortFrom(ip, uint16(first+s.ports.Add(1)%count))
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
	return s.clientOf(s, tb, newClientConfig("HTTPClient", opts))
}

// errClosed is what a client gets whose fake, or whose test, has ended.
var errClosed = fmt.Errorf("the fake is closed: %w", syscall.ECONNREFUSED)

// refuse returns why an address cannot be reached.
func (s *Server) refuse(scheme, address string) error {
	switch {
	case scheme != "http" || address != host:
		return dialError(address, fmt.Errorf("this client reaches only the fake at http://%s, not %s://%s", host, scheme, address))
	case s.closed.Load():
		return dialError(address, errClosed)
	}
	return nil
}

func dialError(address string, err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: dialledAddr(address), Err: err}
}

// dialledAddr is a host and a port as an address, without looking up the host.
type dialledAddr string

func (dialledAddr) Network() string  { return "tcp" }
func (a dialledAddr) String() string { return string(a) }

// serve answers what arrives on one connection, on a goroutine that ends with
// it.
func serve(h http.Handler, c net.Conn) {
	server := &http.Server{
		Handler: h,
		// Not nil, so that HTTP/2 is not set up for each connection.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	_ = server.Serve(&oneConn{conn: c}) // returns when oneConn has no other
}

// oneConn is a listener with one connection. Behind it, Accept fails at once
// instead of waiting: the server then goes on with the connection, and there
// is no listening goroutine to end.
type oneConn struct {
	conn net.Conn
}

func (l *oneConn) Accept() (net.Conn, error) {
	c := l.conn
	l.conn = nil
	if c == nil {
		return nil, io.EOF
	}
	return c, nil
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return dialledAddr(host) }
