package memnet

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// streamRoom is how much one direction of a connection buffers before a writer
// waits.
const streamRoom = 64 << 10

type stream struct {
	mu    sync.Mutex // guards what follows
	moved sync.Cond  // broadcast on every change; made with the connection, so it belongs to its bubble
	data  bytes.Buffer

	ended      bool // the writer is done: the reader gets io.EOF behind the data
	reset      bool // the connection was aborted: the reader gets ECONNRESET behind the data
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
