package memnet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// conn is one end of an in-memory connection. Each direction is a net.Pipe, so that
// one may end alone, as with TCP. An end can be aborted too, which a pipe cannot.
// Nothing is buffered: a write waits for its reader.
type conn struct {
	net.Conn      // that this end reads from
	out           net.Conn
	local, remote net.Addr
	ended         atomic.Bool  // this end writes no more
	abort         atomic.Bool  // the next Close is a reset
	reset         *atomic.Bool // somebody aborted the connection; shared by both ends
	once          sync.Once
	closed        func() // called once, after the first Close
}

func newConns(client, server net.Addr) (dialled, accepted *conn) {
	up, fromClient := net.Pipe()
	down, fromServer := net.Pipe()
	reset, nothing := new(atomic.Bool), func() {}
	return &conn{Conn: down, out: up, local: client, remote: server, reset: reset, closed: nothing},
		&conn{Conn: fromClient, out: fromServer, local: server, remote: client, reset: reset, closed: nothing}
}

// closedConn is the client's end of a connection that was closed.
func closedConn(client net.Addr) *conn {
	c := &conn{Conn: closedPipe, out: closedPipe, local: client, remote: self, closed: func() {}}
	c.ended.Store(true)
	return c
}

var closedPipe = func() net.Conn {
	end, _ := net.Pipe()
	_ = end.Close()
	return end
}()

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.asTCP("read", err)
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	return n, c.asTCP("write", err)
}

// asTCP gives an error of a pipe the shape that it has over TCP. A deadline's has
// it already.
func (c *conn) asTCP(op string, err error) error {
	switch here := errors.Is(err, io.ErrClosedPipe); {
	case !here && !errors.Is(err, io.EOF):
		return err
	case here && c.ended.Load():
		return c.wrap(op, net.ErrClosed)
	case c.reset.Load():
		return c.wrap(op, os.NewSyscallError(op, syscall.ECONNRESET))
	case here:
		return c.wrap(op, os.NewSyscallError(op, syscall.EPIPE))
	}
	return io.EOF
}

func (c *conn) wrap(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// CloseWrite ends this direction: the other end reads io.EOF and may go on
// writing. net/http uses it where it finds it.
func (c *conn) CloseWrite() error {
	c.ended.Store(true)
	return c.out.Close()
}

// SetLinger with 0 makes the next Close abort the connection, so that the other
// end gets ECONNRESET. It has the name of the method of *net.TCPConn, so that
// the same code resets both.
func (c *conn) SetLinger(seconds int) error {
	c.abort.Store(seconds == 0)
	return nil
}

// Close ends both directions.
func (c *conn) Close() error {
	if c.abort.Load() {
		c.reset.Store(true)
	}
	_ = c.CloseWrite()
	_ = c.Conn.Close()
	c.once.Do(c.closed)
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetWriteDeadline(t) // fails after CloseWrite
	return c.SetReadDeadline(t)
}

func (c *conn) SetWriteDeadline(t time.Time) error { return c.out.SetWriteDeadline(t) }
