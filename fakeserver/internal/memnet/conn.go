package memnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
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
	closed        func() // called once, after the first Close
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

// streamRoom is how much one direction of a connection buffers before a writer
// waits.
const streamRoom = 64 << 10

type stream struct {
	mu    sync.Mutex // guards what follows
	moved sync.Cond  // broadcast on every change; made with the connection, so it belongs to its bubble
	data  bytes.Buffer

	ended      bool // the writer is done: the reader gets io.EOF after the data
	reset      bool // the connection was aborted: the reader gets ECONNRESET after the data
	readClosed bool // the reader is gone: writers get EPIPE

	readBy, writeBy deadline
}

func newStream() *stream {
	s := new(stream)
	s.moved.L = &s.mu
	return s
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.readClosed:
			return 0, net.ErrClosed
		case s.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case s.data.Len() > 0 || len(p) == 0:
			n, _ := s.data.Read(p)
			s.moved.Broadcast()
			return n, nil
		case s.reset:
			return 0, os.NewSyscallError("read", syscall.ECONNRESET)
		case s.ended:
			return 0, io.EOF
		}
		s.moved.Wait()
	}
}

func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch room := streamRoom - s.data.Len(); {
		case s.ended:
			return n, net.ErrClosed
		case s.writeBy.passed:
			return n, os.ErrDeadlineExceeded
		case s.reset:
			return n, os.NewSyscallError("write", syscall.ECONNRESET)
		case s.readClosed:
			return n, os.NewSyscallError("write", syscall.EPIPE)
		case len(p) == 0:
			return n, nil
		case room > 0:
			wrote, _ := s.data.Write(p[:min(room, len(p))])
			n, p = n+wrote, p[wrote:]
			s.moved.Broadcast()
			continue
		}
		s.moved.Wait()
	}
}

// change sets a flag under the lock and wakes whoever waits for it.
func (s *stream) change(set func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set()
	s.moved.Broadcast()
}

// deadline is the time after which reads or writes fail. The stream's lock
// guards it.
type deadline struct {
	timer  *time.Timer
	passed bool
}

// set moves one of the stream's deadlines; the zero time means none.
func (s *stream) set(d *deadline, at time.Time) {
	s.change(func() {
		if d.timer != nil {
			d.timer.Stop()
		}
		wait := time.Until(at)
		d.timer, d.passed = nil, !at.IsZero() && wait <= 0
		if at.IsZero() || d.passed {
			return
		}
		var timer *time.Timer
		timer = time.AfterFunc(wait, func() {
			// A timer that was replaced meanwhile changes nothing.
			s.change(func() { d.passed = d.passed || d.timer == timer })
		})
		d.timer = timer
	})
}
