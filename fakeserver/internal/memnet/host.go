// Package memnet serves the fake in memory: at its own address, over connections that
// behave as TCP does, or without any connection. It opens no socket. It does not know the
// service: Host.Answer makes each Transmission, and memnet delivers it.
//
// host.go has the connections. Host.Client returns an http.Client whose Transport dials
// into memory: each connection is a net.Pipe with its own http.Server at the other end,
// so both ends run the real net/http. direct.go has the RoundTripper without a
// connection. delivery.go sends answers, whole or cut, at once or in drips. A fake on a
// real socket, as of httptest.NewServer, uses delivery.go too.
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
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// Host answers at an address in memory. Set its exported fields before its
// first use.
type Host struct {
	Addr   string // host and port of the URLs, which are https although nothing is encrypted
	Answer func(*http.Request) Transmission
	// Refuse is called before a request of a client with that address is sent. An error, such
	// as ErrRefused, refuses the connection.
	Refuse func(*http.Request, netip.Addr) error

	ports  atomic.Uint32
	closed atomic.Bool

	mu   sync.Mutex // guards what follows
	open map[*conn]openConn
}

// TB is the part of testing.TB that a client needs. Every fakeserver.TB is one.
type TB interface {
	Cleanup(func())
}

// Client returns a client that calls from ip and reaches nothing but the host. A cleanup
// of tb closes the client's connections and waits until their servers have ended. So it
// also waits for calls that ignore their context. With a nil tb, Close closes them.
func (h *Host) Client(tb TB, ip netip.Addr) *http.Client {
	d := &dialer{host: h, ip: ip, closedByCleanup: tb != nil}
	transport := &http.Transport{
		Proxy:          d.refuseBeforeConn,
		DialTLSContext: d.dial,
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			return nil, h.unreachable("http", address) // clients reach the host only as https
		},
		MaxIdleConnsPerHost: 1000, // connections cost nothing here; with the default of 2 they would be short-lived
	}
	if tb != nil {
		tb.Cleanup(func() {
			d.ended.Store(true)
			for _, done := range h.closeAll(func(by *dialer) bool { return by == d }) {
				<-done
			}
		})
	}
	return &http.Client{Transport: transport}
}

// Close refuses every later call, on open connections too. It ends the connections of
// clients without a TB. It does not wait, because a callback of a call may close the
// host.
func (h *Host) Close() {
	h.closed.Store(true)
	h.closeAll(func(by *dialer) bool { return !by.closedByCleanup })
}

// closeAll closes the connections of some clients. For each connection it returns a
// channel that is closed when the connection's server has ended. The caller must make
// sure that no later dial succeeds.
func (h *Host) closeAll(of func(*dialer) bool) (servers []chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c, opened := range h.open {
		if of(opened.by) {
			_ = c.Close()
			servers = append(servers, opened.served)
		}
	}
	return servers
}

// nextAddr returns a client address for a new connection. No other of the last 16,384
// connections had the same port, so that hooks can tell connections apart.
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

// errClosed is the error of a client whose host was closed, or whose test has ended. It
// wraps ECONNREFUSED, so that clients treat the host like a server that is gone.
var errClosed = fmt.Errorf("the fake is closed: %w", syscall.ECONNREFUSED)

// ErrRefused is the error of a client whose connection is refused. It has the type and
// the errno of a refused TCP connection.
var ErrRefused = dialError(fakeAddr, os.NewSyscallError("connect", syscall.ECONNREFUSED))

// dialError returns an error of the type that net.Dial returns. From this type clients
// know that nothing was sent.
func dialError(address addr, err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: address, Err: err}
}

// addr is a net.Addr with a host and a port. It does not look up the host.
type addr string

// fakeAddr is the host's address in the errors of clients that have reached it. Host.Addr
// would be misleading: its name tells a client without the fake's transport what it lacks.
const fakeAddr addr = "fake:443"

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// oneConnListener is a listener with one connection. The second Accept fails at once
// instead of waiting. The server then goes on with the connection, and no listening
// goroutine remains.
type oneConnListener struct {
	conn net.Conn
}

// Accept returns the connection once.
func (l *oneConnListener) Accept() (net.Conn, error) {
	c := l.conn
	l.conn = nil
	if c == nil {
		return nil, io.EOF
	}
	return c, nil
}

func (l *oneConnListener) Close() error   { return nil }
func (l *oneConnListener) Addr() net.Addr { return addr("memory") }

// openConn is a connection whose server has not ended. Each connection belongs to the
// bubble that dials it, so one WaitGroup cannot wait for all connections.
type openConn struct {
	by     *dialer
	served chan struct{} // closed when the server has ended
}

// dialer makes the connections of one client.
type dialer struct {
	host            *Host
	ip              netip.Addr
	closedByCleanup bool        // the client has a TB, whose cleanup closes the connections
	ended           atomic.Bool // the cleanup of the TB has run
}

// dial makes a connection and its server when a Transport dials for https. The server
// starts on the goroutine that dials, and so in the bubble of the client. One server for
// all clients would tie the host to one bubble. Nothing is encrypted, because the bytes
// stay in memory, and certificates would only cost time.
func (d *dialer) dial(_ context.Context, _, to string) (net.Conn, error) {
	h := d.host
	if err := h.unreachable("https", to); err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	address, reset, served := net.TCPAddrFromAddrPort(h.nextAddr(d.ip)), new(atomic.Bool), make(chan struct{})
	client := &conn{Conn: near, local: address, remote: fakeAddr, reset: reset}
	accepted := &conn{Conn: far, local: fakeAddr, remote: address, reset: reset}
	// The server closes its end when it has finished with the connection. The cleanup of a
	// client waits for this.
	accepted.onClose = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.open, client)
		close(served)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.ended.Load() || h.closed.Load() {
		return nil, dialError(fakeAddr, errClosed)
	}
	if h.open == nil {
		h.open = map[*conn]openConn{}
	}
	h.open[client] = openConn{d, served}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := h.Answer(r)
			answer.Write(w, r)
		}),
		// A map that is not nil keeps net/http from setting up HTTP/2 for each connection.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	_ = server.Serve(&oneConnListener{conn: accepted}) // returns once it has started a goroutine for the connection
	return client, nil
}

// refuseBeforeConn is the Proxy function of the Transport. It never returns a proxy. net/http
// calls it for each request before it looks for a connection, so it can refuse a request even if
// an idle connection is open. That is necessary for faults, and after Host.Close, which may run
// outside the bubble of the client and then cannot close the idle connection.
func (d *dialer) refuseBeforeConn(req *http.Request) (*url.URL, error) {
	err := d.host.unreachable("https", d.host.Addr)
	if err == nil {
		err = d.host.Refuse(req, d.ip)
	}
	if err != nil {
		runGetConn(req, d.host.Addr) // as net/http would before a dial, so that clients see that nothing was sent
	}
	return nil, err
}

// runGetConn runs the hook GetConn, which reports the search for a connection.
func runGetConn(req *http.Request, address string) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GetConn != nil {
		trace.GetConn(address)
	}
}

// conn is one end of a net.Pipe. The errors of reads, writes and Close look as over TCP, and
// it can be aborted. Nothing is buffered: a write waits for its reader. One direction cannot
// end alone, which net/http never needs.
type conn struct {
	net.Conn
	local, remote net.Addr
	closed        atomic.Bool
	// reset is set when one end aborts the connection. Both ends share it.
	reset   *atomic.Bool
	onClose func() // called by the first Close; nil means none
}

// Read returns at once if p is empty, as over TCP.
func (c *conn) Read(p []byte) (int, error) { return c.transfer("read", p, c.Conn.Read) }

// Write returns at once if p is empty, as over TCP.
func (c *conn) Write(p []byte) (int, error) { return c.transfer("write", p, c.Conn.Write) }

// transfer reads or writes. A pipe would wait for the other end even if p is empty. The error
// is the one that TCP would give. A deadline and io.EOF need no change. The end that closed
// the pipe sees net.ErrClosed. The other end sees ECONNRESET after an abort, and otherwise
// EPIPE.
func (c *conn) transfer(op string, p []byte, do func([]byte) (int, error)) (n int, err error) {
	if len(p) > 0 || c.closed.Load() {
		n, err = do(p)
	}
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
	case c.closed.Load():
		err = c.wrap(op, net.ErrClosed)
	case c.reset.Load():
		err = c.wrap(op, os.NewSyscallError(op, syscall.ECONNRESET))
	case errors.Is(err, io.ErrClosedPipe):
		err = c.wrap(op, os.NewSyscallError(op, syscall.EPIPE))
	}
	return n, err
}

// wrap makes the *net.OpError that a TCP connection returns.
func (c *conn) wrap(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// SetLinger with 0 makes the following Close abort the connection, so that the other end gets
// ECONNRESET. It has the name of the method of *net.TCPConn, so that the same code resets
// both types.
func (c *conn) SetLinger(seconds int) error {
	c.reset.Store(seconds == 0)
	return nil
}

// Close ends both directions.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return c.wrap("close", net.ErrClosed)
	}
	_ = c.Conn.Close()
	if c.onClose != nil {
		c.onClose()
	}
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }
