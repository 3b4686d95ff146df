// Package memnet serves the fake in memory: at its own address, over connections that
// behave as TCP does, or without any connection. It opens no socket. It knows nothing
// of the service: Host.Answer makes each Answer, and memnet delivers it.
//
// host.go has the connections. Host.Client returns an http.Client whose Transport dials
// into memory: each connection is a net.Pipe with its own http.Server at the
// other end, so both ends run the real net/http. direct.go has the RoundTripper without
// a connection. delivery.go says how an answer leaves, whole or cut, at once or in
// drips; a real socket, as of httptest.NewServer, uses it too.
//
// Several testing/synctest bubbles may reach a Host at once. The Host holds no channel,
// timer, WaitGroup or Cond, since those belong to the bubble that made them. A
// connection belongs to the bubble that dials it.
package memnet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// Host answers at an address in memory. Set its exported fields before its
// first use.
type Host struct {
	Addr   string // host and port, by which it is reached as https without TLS
	Answer func(*http.Request) Answer
	// Refuse returns ErrRefused if nobody accepts the connection for a request of a
	// client with that address. It is asked before anything is sent.
	Refuse func(*http.Request, netip.Addr) error

	ports  atomic.Uint32
	closed atomic.Bool

	mu        sync.Mutex     // guards what follows
	withoutTB []*clientConns // of clients without a TB, for Close
}

// TB is the part of testing.TB that a client needs. Every fakeserver.TB is one.
type TB interface {
	Cleanup(func())
}

// Client returns a client that calls from ip and reaches nothing but the host.
// A cleanup of tb closes its connections and waits until their servers have
// ended, and so for calls that ignore their context. With a nil tb, Close closes them.
func (h *Host) Client(tb TB, ip netip.Addr) *http.Client {
	n := &clientConns{host: h, ip: ip, open: map[*conn]chan struct{}{}}
	transport := &http.Transport{
		Proxy:          n.refuse,
		DialTLSContext: n.dial,
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			return nil, h.unreachable("http", address) // the host is reached as https
		},
		MaxIdleConnsPerHost: 1000, // connections cost nothing here; the default of 2 makes them short-lived
	}
	if tb != nil {
		tb.Cleanup(func() {
			for _, done := range n.closeAll() {
				<-done
			}
		})
	} else {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.withoutTB = append(h.withoutTB, n)
	}
	return &http.Client{Transport: transport}
}

// Close refuses every later call, on open connections too. It ends the connections
// of clients without a TB, and does not wait: a callback of a call may close the host.
func (h *Host) Close() {
	h.closed.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.withoutTB {
		n.closeAll()
	}
}

// nextAddr returns an address of a client, with a port that no other of the last 16,384
// connections had, so that hooks can tell connections apart.
func (h *Host) nextAddr(ip netip.Addr) netip.AddrPort {
	const first, count = 49152, 16384 // the ports for clients
	return netip.AddrPortFrom(ip, uint16(first+h.ports.Add(1)%count))
}

// unreachable returns the error of a dial to another address, or to a closed host; nil for
// any other dial.
func (h *Host) unreachable(scheme, address string) error {
	switch {
	case scheme != "https" || address != h.Addr:
		return dialError(addr(address), fmt.Errorf("this client reaches only the fake at https://%s, not %s://%s", h.Addr, scheme, address))
	case h.closed.Load():
		return dialError(fakeAddr, errClosed)
	}
	return nil
}

// errClosed is the error of a client whose host has closed, or whose test has ended. It
// wraps ECONNREFUSED, so that clients treat it like a server that is gone.
var errClosed = fmt.Errorf("the fake is closed: %w", syscall.ECONNREFUSED)

// ErrRefused is the error of a client whose connection nobody accepts. It has the type
// and the errno of a refused TCP connection.
var ErrRefused = dialError(fakeAddr, os.NewSyscallError("connect", syscall.ECONNREFUSED))

// dialError returns an error of the type that net.Dial returns, which clients look for to
// learn that nothing was sent.
func dialError(address addr, err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: address, Err: err}
}

// addr is a host and a port as an address, without looking up the host.
type addr string

// fakeAddr is the host's address in the errors of clients that have reached it. Addr
// would mislead them: it may be a name that says what other clients lack.
const fakeAddr addr = "fake:443"

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// oneConn is a listener with one connection. The second Accept fails at once instead of
// waiting: the server then goes on with the connection, and no listening goroutine is
// left to end.
type oneConn struct {
	conn net.Conn
}

// Accept returns the connection once.
func (l *oneConn) Accept() (net.Conn, error) {
	c := l.conn
	l.conn = nil
	if c == nil {
		return nil, io.EOF
	}
	return c, nil
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return addr("memory") }

// clientConns holds the connections of one client. Each belongs to the bubble that dials
// it, so one WaitGroup cannot wait for all of them: closeAll returns a channel for each.
type clientConns struct {
	host *Host
	ip   netip.Addr

	mu sync.Mutex // guards what follows
	// open has the client's end of each connection, with a channel that closes when its
	// server has ended.
	open  map[*conn]chan struct{}
	ended bool // no more connections are made
}

// dial makes a connection and a server for it, as a Transport asks for https. The
// server starts on the goroutine that dials, and so in the bubble of the client. One
// server for all clients would tie the host to one bubble. Nothing is encrypted: there
// is nobody to listen in, and certificates would only cost time.
func (n *clientConns) dial(_ context.Context, _, address string) (net.Conn, error) {
	if err := n.host.unreachable("https", address); err != nil {
		return nil, err
	}
	client, accepted := newConns(net.TCPAddrFromAddrPort(n.host.nextAddr(n.ip)), fakeAddr)
	done := make(chan struct{})
	// The server closes its end when it is through with the connection. That is what
	// the cleanup of a client waits for.
	accepted.onClose = func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.open, client)
		close(done)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return nil, dialError(fakeAddr, errClosed)
	}
	n.open[client] = done
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := n.host.Answer(r)
			answer.Write(w, r)
		}),
		// Not nil, so that HTTP/2 is not set up for each connection.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	_ = server.Serve(&oneConn{conn: accepted}) // returns once it has started a goroutine for the connection
	return client, nil
}

// refuse is the Proxy function of the Transport, though there is never a proxy. net/http
// calls it for each request before it looks for a connection, so it can refuse a request
// even if an idle connection is open. After Host.Close it has to: Close may run outside the
// bubble of the client, so it cannot close that connection.
func (n *clientConns) refuse(req *http.Request) (*url.URL, error) {
	if n.host.closed.Load() {
		return nil, dialError(fakeAddr, errClosed)
	}
	err := n.host.Refuse(req, n.ip)
	if err != nil {
		runGetConn(req, n.host.Addr) // as net/http would, before it dials
	}
	return nil, err
}

// closeAll closes all connections, and returns a channel for each that is closed when its
// server has ended. Later dials fail.
func (n *clientConns) closeAll() []chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	for c := range n.open {
		_ = c.Close()
	}
	return slices.Collect(maps.Values(n.open))
}

// conn is one end of a net.Pipe whose errors look as over TCP, and that can be aborted.
// Nothing is buffered: a write waits for its reader. Neither direction can end alone,
// which net/http never needs. Deadlines are those of the pipe.
type conn struct {
	net.Conn
	local, remote net.Addr
	closed        atomic.Bool
	abort         atomic.Bool // Close is a reset
	// reset is set when one end has aborted the connection. Both ends share it.
	reset   *atomic.Bool
	onClose func() // called by the first Close; nil means none
}

// newConns returns the two ends of a connection with the addresses of client and
// server. Each end sees the other's as remote.
func newConns(client, server net.Addr) (dialled, accepted *conn) {
	reset := new(atomic.Bool)
	near, far := net.Pipe()
	return &conn{Conn: near, local: client, remote: server, reset: reset},
		&conn{Conn: far, local: server, remote: client, reset: reset}
}

// closedConn returns the client's end of a closed connection, for hooks that ask a
// connection for its addresses. Reads and writes return net.ErrClosed.
func closedConn(client net.Addr) *conn {
	c := &conn{Conn: new(net.TCPConn), local: client, remote: fakeAddr} // it was never opened
	c.closed.Store(true)
	return c
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.asTCP("read", err)
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.asTCP("write", err)
}

// asTCP gives an error of a pipe the shape that it has over TCP. The error of a deadline
// and io.EOF have it already. The end that closed sees net.ErrClosed, the other one
// ECONNRESET after an abort. A write to an end that was closed without an abort returns
// the pipe's own error.
func (c *conn) asTCP(op string, err error) error {
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case c.closed.Load():
		return c.wrap(op, net.ErrClosed)
	case c.reset.Load():
		return c.wrap(op, os.NewSyscallError(op, syscall.ECONNRESET))
	}
	return err
}

// wrap makes the *net.OpError that a TCP connection returns.
func (c *conn) wrap(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// SetLinger with 0 makes Close abort the connection, so that the other end gets
// ECONNRESET. It has the name of the method of *net.TCPConn, so that the same code
// resets both.
func (c *conn) SetLinger(seconds int) error {
	c.abort.Store(seconds == 0)
	return nil
}

// Close ends both directions. The reset is marked before the pipe closes, so that the
// other end sees it when the close wakes that end.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	if c.abort.Load() {
		c.reset.Store(true)
	}
	_ = c.Conn.Close()
	if c.onClose != nil {
		c.onClose()
	}
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }
