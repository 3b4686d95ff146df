package memnet

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Direct returns a RoundTripper that calls the handler from ip, on the
// caller's goroutine and without a connection. The handler sees the request as
// net/http writes and reads it. It reaches no other host.
func (h *Host) Direct(ip netip.Addr) http.RoundTripper { return &direct{h, ip} }

// direct is a client without a connection. It keeps no state between calls, so any number
// of goroutines may use it.
type direct struct {
	host *Host
	ip   netip.Addr
}

// RoundTrip implements http.RoundTripper. It does the same steps as a Transport, in the same
// order: check the request, connect, send, and read the answer. It checks the context again at
// the end: if the context has ended by then, RoundTrip returns the context's cause, whatever
// the service answered.
func (d *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if err := checkSendable(req); err != nil {
		return nil, err
	}
	if err := d.connect(req); err != nil {
		return nil, err
	}
	sent, err := asSent(req)
	if err != nil {
		return nil, err
	}
	r, err := d.asReceived(req, sent)
	if err != nil {
		// net/http's server answers a request that it cannot read without calling a handler,
		// and ends the connection.
		const answer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
		return http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), req)
	}
	answer := d.host.Answer(r)
	if answer.Ends == Hangs {
		answer.hang(req.Context())
	}
	resp := answer.response(req, r.Close)
	switch ctx := req.Context(); {
	// As over a connection: a client that has given up gets no answer, even if one is
	// ready.
	case ctx.Err() != nil:
		_ = resp.Body.Close()
		return nil, context.Cause(ctx)
	case answer.Sent == Nothing:
		return nil, answer.endError()
	}
	return resp, nil
}

// checkSendable refuses a request that a Transport refuses to send, with the Transport's
// error. Without it, a test would pass here and fail on a network. It gives a real Transport
// the request with a context that has already ended. The Transport checks the request first,
// so a wrong request gets its error, and a right one gets the context's.
func checkSendable(req *http.Request) error {
	unsent := req.WithContext(endedContext)
	unsent.Body = nil
	if _, err := checker.RoundTrip(unsent); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// checker sends nothing, because every request that it gets has the endedContext.
var checker http.Transport

// endedContext is a context that has ended: its deadline has passed.
var endedContext, _ = context.WithDeadline(context.Background(), time.Time{})

// connect refuses other addresses, and runs the hooks of a connection. These hooks, and
// the hooks that Request.Write runs, tell a client whether a request that failed was
// sent.
func (d *direct) connect(req *http.Request) error {
	if req.Context().Err() != nil {
		return context.Cause(req.Context())
	}
	// The hooks run as in a Transport: GetConn before the dial, GotConn with the
	// connection.
	address := addressOf(req.URL)
	runGetConn(req, address)
	if err := d.host.unreachable(req.URL.Scheme, address); err != nil {
		return err
	}
	if err := d.host.Refuse(req, d.ip); err != nil {
		return err
	}
	d.runGotConn(req)
	return nil
}

// runGotConn runs the hook GotConn with a connection that was never opened, but has addresses.
func (d *direct) runGotConn(req *http.Request) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotConn != nil {
		local := net.TCPAddrFromAddrPort(d.host.nextAddr(d.ip))
		trace.GotConn(httptrace.GotConnInfo{Conn: &conn{Conn: new(net.TCPConn), local: local, remote: fakeAddr}})
	}
}

// addressOf returns the address that a Transport would dial.
func addressOf(u *url.URL) string {
	port := "443"
	if u.Scheme == "http" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}

// asSent returns the bytes of the request, as net/http writes it. If the body's reader
// fails, asSent returns the reader's error, and nothing was sent.
func asSent(req *http.Request) (*bytes.Buffer, error) {
	written, body := *req, callersBody{ReadCloser: req.Body}
	if req.Body != nil && req.Body != http.NoBody {
		written.Body = &body
	}
	var sent bytes.Buffer
	sent.Grow(1024) // enough for most requests, and for the 512 bytes that must be free to read a body into it
	// The error of the caller's reader comes first, because Request.Write replaces it with
	// another error.
	if err := written.Write(&sent); err != nil {
		return nil, cmp.Or(body.err, err)
	}
	return &sent, nil
}

// asReceived returns the request as a handler gets it. net/http parses the bytes that it
// has written, so the names of headers, the length and the host are as over a connection.
// Unlike net/http's server, which answers 431 to a header of more than a megabyte,
// asReceived has no bound.
func (d *direct) asReceived(req *http.Request, sent *bytes.Buffer) (*http.Request, error) {
	r, err := http.ReadRequest(bufio.NewReaderSize(sent, 512))
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = d.host.nextAddr(d.ip).String()
	if req.Header.Get("Accept-Encoding") == "" && req.Header.Get("Range") == "" && req.Method != http.MethodHead {
		r.Header.Add("Accept-Encoding", "gzip") // a Transport adds it, Request.Write does not
	}
	return r.WithContext(req.Context()), nil
}

// callersBody keeps the error of the caller's own reader, which Request.Write hides
// from errors.Is.
type callersBody struct {
	io.ReadCloser
	err error
}

// Read keeps an error other than io.EOF.
func (b *callersBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != io.EOF { //nolint:errorlint // the end of a body is io.EOF itself
		b.err = err
	}
	return n, err
}

// response returns the answer as a client gets it. It leaves out headers without values,
// which only keep net/http from adding such headers. closes says that the client asked to
// close the connection.
func (t *Transmission) response(req *http.Request, closes bool) *http.Response {
	header := t.Header.Clone()
	maps.DeleteFunc(header, func(_ string, values []string) bool { return len(values) == 0 })
	number := strconv.Itoa(t.Status)
	resp := &http.Response{
		StatusCode: t.Status, Status: number + " " + cmp.Or(http.StatusText(t.Status), "status code "+number), // the words of net/http
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(t.Body)), Request: req, Close: closes || t.Ends == GoesAway, Body: t.body(req.Context()),
	}
	if req.Method == http.MethodHead {
		_ = resp.Body.Close() // none of it is sent
		resp.Body = http.NoBody
	}
	return resp
}

// body returns the body as a client reads it. If the delivery cuts the body, it ends with the
// error of the broken connection, else with io.EOF.
func (t *Transmission) body(ctx context.Context) *directBody {
	b := &directBody{answer: t, end: io.EOF}
	b.ctx, b.stop = context.WithCancelCause(ctx)
	var whole bool
	if b.part, whole = t.Part(t.Body); !whole {
		b.end = t.endError()
	}
	return b
}

// endError returns the error that a client reads if the connection ends too early: io.EOF
// before the first byte of the answer, and io.ErrUnexpectedEOF after it.
func (t *Transmission) endError() error {
	switch {
	case t.Ends == Resets:
		return &net.OpError{Op: "read", Net: "tcp", Addr: fakeAddr, Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case t.Sent == Nothing:
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}

// directBody is the body of a response, which arrives in parts. Like a body of net/http, it
// may be closed while it is read.
type directBody struct {
	ctx    context.Context
	stop   context.CancelCauseFunc // ends ctx, when the body is closed
	answer *Transmission
	part   []byte     // the part of the answer's body that the delivery sends
	mu     sync.Mutex // guards the fields below, but for end
	// arrived is how many bytes have come over the connection. read is how many of these the
	// client has read.
	arrived, read int
	end           error // the error after the part
	reported      bool  // Progress knows that the body has ended
}

// errBodyClosed has the words of net/http's error, which is not exported.
var errBodyClosed = errors.New("http: read on closed response body")

// Read waits for the next drip once the client has read everything that has arrived. It
// copies only bytes that have arrived, so a client cannot read a slow answer faster than
// it comes. After Close and after the end of the context it fails like a body of
// net/http.
func (b *directBody) Read(p []byte) (int, error) {
	// The client has read everything that has arrived, and more will come. Only Read changes
	// these fields.
	waits := len(p) > 0 && b.read == b.arrived && b.arrived < len(b.part)
	if waits && b.arrived > 0 { // the first drip came with the header
		Pause(b.ctx, b.answer.Every)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if waits && b.ctx.Err() == nil {
		b.arrived = min(b.arrived+cmp.Or(b.answer.Drip, len(b.part)), len(b.part))
		b.report(b.arrived == len(b.part))
	}
	switch {
	case b.ctx.Err() != nil:
		b.report(true)
		return 0, context.Cause(b.ctx)
	case b.read == len(b.part):
		return 0, b.end
	}
	n := copy(p, b.part[b.read:b.arrived])
	b.read += n
	return n, nil
}

// report passes to Progress how much of a dripping body has arrived, until the body has ended.
// Any other body needs no report: all that is sent of it has arrived when RoundTrip returns.
func (b *directBody) report(ended bool) {
	if b.answer.Drip > 0 && !b.reported {
		b.reported = ended
		b.answer.Progress(b.arrived, ended)
	}
}

// Close ends the body. A client that closes early has received only the bytes that had
// arrived.
func (b *directBody) Close() error {
	b.stop(errBodyClosed)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report(true)
	return nil
}
