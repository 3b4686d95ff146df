package fakeserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync"
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
// for them have ended. With a nil tb, Close does. A response body that the
// caller never closed holds goroutines of net/http until the context of its
// request ends, as it does on a socket; in a bubble that fails the test.
func (s *Server) HTTPClient(tb TB, opts ...ClientOption) *http.Client {
	return s.clientOf(s, tb, newClientConfig("HTTPClient", opts))
}

// clientOf returns a client of a handler: of the fake, but in tests of the
// connection itself.
func (s *Server) clientOf(h http.Handler, tb TB, c clientConfig) *http.Client {
	n := &network{server: s, handler: h, config: c, open: map[*conn]chan struct{}{}}
	n.transport = &http.Transport{
		DialContext:         n.dial,
		MaxIdleConnsPerHost: 1000, // connections cost nothing here; the default of 2 makes them short-lived
	}
	if tb != nil {
		tb.Cleanup(n.hangUp)
	} else {
		s.mu.Lock()
		s.hangUps = append(s.hangUps, n.hangUp)
		s.mu.Unlock()
	}
	return &http.Client{Transport: n.transport}
}

// network is the connections of one client. All of it belongs to the bubble
// that the client was made in.
type network struct {
	server    *Server
	handler   http.Handler
	config    clientConfig
	transport *http.Transport

	mu    sync.Mutex
	open  map[*conn]chan struct{} // the client's ends; the channel is closed when the server is done
	ended bool                    // hung up: nothing more is dialled
}

// dial makes a connection and a server for it. The server starts on the
// goroutine that dials, and so in the bubble of the client: a server shared by
// several clients would tie the fake to one bubble.
func (n *network) dial(_ context.Context, _, address string) (net.Conn, error) {
	if err := n.server.refuse("http", address); err != nil {
		return nil, err
	}
	client := net.TCPAddrFromAddrPort(n.server.nextAddr(n.config.ip))
	dialled, accepted := newConns(client, dialledAddr(host))
	done := make(chan struct{})
	accepted.closed = func() { n.forget(dialled); close(done) }
	if !n.remember(dialled, done) {
		return nil, dialError(address, errClosed)
	}
	serve(n.handler, accepted)
	return dialled, nil
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

// remember keeps a connection for hangUp, and reports false behind it.
func (n *network) remember(dialled *conn, done chan struct{}) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ended {
		n.open[dialled] = done
	}
	return !n.ended
}

func (n *network) forget(dialled *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, dialled)
}

// hangUp closes all connections and waits for their servers, and so for the
// calls that are under way and do not watch their context.
func (n *network) hangUp() {
	n.transport.CloseIdleConnections()
	for dialled, done := range n.end() {
		_ = dialled.Close()
		<-done
	}
}

// end stops dialling and returns what is still open.
func (n *network) end() map[*conn]chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	return maps.Clone(n.open)
}

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
