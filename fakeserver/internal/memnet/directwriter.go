package memnet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"
)

// directWriter is the http.ResponseWriter and http.Flusher of a call.
type directWriter struct {
	host   *Host
	header http.Header
	sent   http.Header // header at the time of WriteHeader
	status int
	body   bytes.Buffer

	flushed bool   // the written part has left
	ends    Ending // of the connection: Stays, Closes or Resets
	drip    int    // bytes that the reader of the body gets at a time; 0 means all
	every   time.Duration
	// progress is called as the reader of the body gets it in drips.
	progress Progress
}

func (w *directWriter) Header() http.Header { return w.header }

func (w *directWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.begin(status, w.header.Clone())
	}
}

// begin notes the status and the header. A header without values keeps net/http
// from adding its own, and is not sent.
func (w *directWriter) begin(status int, header http.Header) {
	w.status, w.sent = status, header
	maps.DeleteFunc(w.sent, func(_ string, values []string) bool { return len(values) == 0 })
}

// take notes a whole response, whose header and body nobody changes any more.
func (w *directWriter) take(r Response) {
	w.begin(r.Status, r.Header)
	w.body = *bytes.NewBuffer(r.Body)
}

func (w *directWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *directWriter) Flush() {
	w.WriteHeader(http.StatusOK)
	w.flushed = true
}

func (w *directWriter) response(req *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	resp := &http.Response{
		StatusCode: w.status, Status: statusLine(w.status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: w.length(), Request: req, Close: w.sent.Get("Connection") == "close",
		Body: w.reader(req.Context()),
	}
	if req.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp
}

// statusLine has the words of net/http for a status without a name.
func statusLine(status int) string {
	number := strconv.Itoa(status)
	return number + " " + cmp.Or(http.StatusText(status), "status code "+number)
}

// length is the announced length; the body may be shorter.
func (w *directWriter) length() int64 {
	if n, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil {
		return n
	}
	return int64(w.body.Len())
}

func (w *directWriter) reader(ctx context.Context) io.ReadCloser {
	if w.ends == Stays && w.drip == 0 {
		return io.NopCloser(&w.body)
	}
	b := &faultyBody{ctx: ctx, rest: w.body.Bytes(), drip: w.drip, every: w.every, progress: w.progress, end: io.EOF}
	switch missing := w.length() > int64(w.body.Len()); {
	case missing && w.ends == Resets:
		b.end = w.host.resetError()
	case missing:
		b.end = io.ErrUnexpectedEOF
	}
	return b
}

func (h *Host) resetError() error {
	return &net.OpError{Op: "read", Net: "tcp", Addr: self, Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

type faultyBody struct {
	ctx    context.Context
	rest   []byte
	drip   int // 0 means all at once
	every  time.Duration
	arrive int // bytes of rest that have arrived
	begun  bool
	sent   int   // bytes that have arrived so far
	end    error // follows the rest

	progress Progress // nil where it came at once
	closed   bool
}

// errBodyClosed has the words of net/http, which exports no such error.
var errBodyClosed = errors.New("http: read on closed response body")

func (b *faultyBody) Read(p []byte) (int, error) {
	if len(p) > 0 && b.arrive == 0 && len(b.rest) > 0 && !b.closed {
		b.await()
	}
	switch {
	case b.closed:
		return 0, errBodyClosed
	case context.Cause(b.ctx) != nil:
		b.report(true)
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
		Pause(b.ctx, b.every)
	}
	b.begun, b.arrive = true, len(b.rest)
	if b.drip > 0 {
		b.arrive = min(b.drip, len(b.rest))
	}
	if b.ctx.Err() == nil {
		b.sent += b.arrive
		b.report(b.arrive == len(b.rest))
	}
}

// report tells how much has arrived, until it has ended.
func (b *faultyBody) report(ended bool) {
	if b.progress == nil {
		return
	}
	progress := b.progress
	if ended {
		b.progress = nil
	}
	progress(b.sent, ended)
}

func (b *faultyBody) Close() error {
	b.closed = true
	b.report(true)
	return nil
}
