package memnet

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// conn is one end of a net.Pipe whose errors look as over TCP, and that can be
// aborted. Nothing is buffered: a write waits for its reader. Neither direction can
// end alone, which net/http needs of no connection.
type conn struct {
	net.Conn
	local, remote net.Addr
	closed        atomic.Bool
	abort         atomic.Bool  // Close is a reset
	reset         *atomic.Bool // one end aborted the connection; shared by both
	onClose       func()       // called by the first Close; nil means none
}

func newConns(client, server net.Addr) (dialled, accepted *conn) {
	reset := new(atomic.Bool)
	near, far := net.Pipe()
	return &conn{Conn: near, local: client, remote: server, reset: reset},
		&conn{Conn: far, local: server, remote: client, reset: reset}
}

// closedConn is the client's end of a connection that was closed.
func closedConn(client net.Addr) *conn {
	c := &conn{Conn: closedPipe, local: client, remote: self}
	c.closed.Store(true)
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
	n, err := c.Conn.Write(p)
	return n, c.asTCP("write", err)
}

// asTCP gives an error of a pipe the shape that it has over TCP. A deadline's and
// io.EOF have it already.
func (c *conn) asTCP(op string, err error) error {
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case c.closed.Load():
		return c.wrap(op, net.ErrClosed)
	case c.reset.Load():
		return c.wrap(op, os.NewSyscallError(op, syscall.ECONNRESET))
	case op == "write":
		return c.wrap(op, os.NewSyscallError(op, syscall.EPIPE))
	}
	return err
}

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
