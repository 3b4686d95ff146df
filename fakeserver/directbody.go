package fakeserver

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// length is what the header announces; of the body a part may be missing.
func (w *directWriter) length() int64 {
	if n, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil {
		return n
	}
	return int64(w.body.Len())
}

// reader is the body as the caller reads it.
func (w *directWriter) reader(ctx context.Context) io.ReadCloser {
	if w.ends == stays && w.drip == 0 {
		return io.NopCloser(&w.body)
	}
	b := &faultyBody{ctx: ctx, rest: w.body.Bytes(), drip: w.drip, every: w.every, end: io.EOF}
	switch missing := w.length() > int64(w.body.Len()); {
	case missing && w.ends == resets:
		b.end = resetError()
	case missing:
		b.end = io.ErrUnexpectedEOF
	}
	return b
}

// resetError is what reading from a connection gives that was aborted.
func resetError() error {
	return &net.OpError{Op: "read", Net: "tcp", Addr: dialledAddr(host), Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// faultyBody is a body that comes slowly, or not to its end.
type faultyBody struct {
	ctx    context.Context
	rest   []byte
	drip   int // 0: all at once
	every  time.Duration
	arrive int // bytes of rest that have arrived
	begun  bool
	end    error // behind the rest
	closed bool
}

// errBodyClosed says what net/http says, whose error has no name.
var errBodyClosed = errors.New("http: read on closed response body")

func (b *faultyBody) Read(p []byte) (int, error) {
	if len(p) > 0 && b.arrive == 0 && len(b.rest) > 0 && !b.closed {
		b.await()
	}
	switch {
	case b.closed:
		return 0, errBodyClosed
	case context.Cause(b.ctx) != nil:
		return 0, context.Cause(b.ctx)
	case len(b.rest) == 0:
		return 0, b.end
	}
	n := copy(p, b.rest[:b.arrive])
	b.rest, b.arrive = b.rest[n:], b.arrive-n
	return n, nil
}

// await waits for the next part; the first came with the header.
func (b *faultyBody) await() {
	if b.begun {
		pause(b.ctx, b.every)
	}
	b.begun, b.arrive = true, len(b.rest)
	if b.drip > 0 {
		b.arrive = min(b.drip, len(b.rest))
	}
}

func (b *faultyBody) Close() error {
	b.closed = true
	return nil
}
