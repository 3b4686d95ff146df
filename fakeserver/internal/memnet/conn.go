package memnet

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// conn is one end of an in-memory connection that behaves as TCP does: writes
// are buffered, either direction may end alone, deadlines work, and an abort
// resets the other end. net.Pipe does neither buffer nor reset.
type conn struct {
	in, out       *stream
	local, remote net.Addr
	abort         bool // the next Close is a reset; out's lock guards it
	once          sync.Once
	closed        func() // called once, behind the first Close
}

func newConns(client, server net.Addr) (dialled, accepted *conn) {
	up, down := newStream(), newStream()
	nothing := func() {}
	return &conn{in: down, out: up, local: client, remote: server, closed: nothing},
		&conn{in: up, out: down, local: server, remote: client, closed: nothing}
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.wrap("read", err)
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.wrap("write", err)
}

// wrap gives an error the shape that package net gives its errors.
func (c *conn) wrap(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// CloseWrite ends this direction: the other end reads io.EOF and may go on
// writing. net/http uses it where it finds it.
func (c *conn) CloseWrite() error {
	c.out.change(func() { c.out.ended = true })
	return nil
}

// SetLinger with 0 makes the next Close abort the connection, so that the other
// end gets ECONNRESET. It has the name of the method of *net.TCPConn, so that
// the same code resets both.
func (c *conn) SetLinger(seconds int) error {
	c.out.change(func() { c.abort = seconds == 0 })
	return nil
}

// Close ends both directions. As with TCP, unread data makes it an abort.
func (c *conn) Close() error {
	var unread, aborted bool
	c.in.change(func() { unread = c.in.data.Len() > 0 && !c.in.readClosed })
	c.out.change(func() {
		c.out.reset = c.out.reset || c.abort || unread
		c.out.ended, aborted = true, c.out.reset
	})
	c.in.change(func() {
		c.in.readClosed = true
		c.in.reset = c.in.reset || aborted
		c.in.data.Reset()
	})
	_ = c.SetDeadline(time.Time{}) // stops the timers
	c.once.Do(c.closed)
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.set(&c.in.readBy, t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.set(&c.out.writeBy, t)
	return nil
}

// noConn is the connection that a hook gets from Direct, which has none: it has
// addresses, and is closed.
type noConn struct{ client net.Addr }

func (noConn) Read([]byte) (int, error)         { return 0, net.ErrClosed }
func (noConn) Write([]byte) (int, error)        { return 0, net.ErrClosed }
func (noConn) Close() error                     { return nil }
func (c noConn) LocalAddr() net.Addr            { return c.client }
func (c noConn) RemoteAddr() net.Addr           { return self }
func (noConn) SetDeadline(time.Time) error      { return net.ErrClosed }
func (noConn) SetReadDeadline(time.Time) error  { return net.ErrClosed }
func (noConn) SetWriteDeadline(time.Time) error { return net.ErrClosed }
