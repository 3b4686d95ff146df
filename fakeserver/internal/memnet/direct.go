package memnet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Direct returns a RoundTripper that calls the handler from ip, on the
// caller's goroutine and without a connection. What the handler sees and what
// the caller gets are shaped as net/http shapes them. It reaches no other host.
func (h *Host) Direct(ip netip.Addr) http.RoundTripper { return &direct{h, ip} }

type direct struct {
	host *Host
	ip   netip.Addr
}

// RoundTrip implements http.RoundTripper.
func (d *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if err := checkSent(req); err != nil {
		return nil, err
	}
	if err := d.connect(req); err != nil {
		return nil, err
	}
	body, err := sentBody(req)
	if err != nil {
		return nil, err
	}
	w := &directWriter{host: d.host, header: http.Header{}}
	err = d.call(w, d.served(req, body))
	if ctxErr := context.Cause(req.Context()); ctxErr != nil {
		return nil, ctxErr
	}
	if err != nil {
		return nil, err
	}
	return w.response(req), nil
}

// connect refuses other addresses, and runs the hooks of a request that is sent:
// from them a client learns whether one that failed was.
func (d *direct) connect(req *http.Request) error {
	if req.Context().Err() != nil {
		return context.Cause(req.Context())
	}
	trace, port := httptrace.ContextClientTrace(req.Context()), req.URL.Port()
	switch {
	case port != "":
	case req.URL.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	address := net.JoinHostPort(req.URL.Hostname(), port) // that a Transport would dial
	if trace == nil {
		trace = &noTrace
	}
	if trace.GetConn != nil {
		trace.GetConn(address)
	}
	if err := d.host.refuse(req.URL.Scheme, address); err != nil {
		return err
	}
	if err := d.host.refusal(req, d.ip); err != nil {
		return err
	}
	if trace.GotConn != nil {
		client := net.TCPAddrFromAddrPort(d.host.nextAddr(d.ip))
		trace.GotConn(httptrace.GotConnInfo{Conn: noConn{client}})
	}
	if trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	return nil
}

var noTrace httptrace.ClientTrace

// sentBody reads the body that the caller sends. An error of its reader is
// returned to the caller, and nothing was sent.
func sentBody(req *http.Request) (*bytes.Buffer, error) {
	body := new(bytes.Buffer)
	if !hasBody(req) {
		return body, nil
	}
	_, err := io.Copy(body, req.Body) // most bodies then write themselves, in one piece
	if err == nil && req.ContentLength > 0 && req.ContentLength != int64(body.Len()) {
		err = fmt.Errorf("http: ContentLength=%d with Body length %d", req.ContentLength, body.Len())
	}
	return body, err
}

// served is the request in the shape that net/http gives a handler.
func (d *direct) served(req *http.Request, body *bytes.Buffer) *http.Request {
	target := req.URL.RequestURI()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		u = &url.URL{Path: req.URL.Path, RawQuery: req.URL.RawQuery}
	}
	r := (&http.Request{
		Method: req.Method, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: servedHeader(req), Body: http.NoBody, ContentLength: int64(body.Len()),
		Host: req.URL.Host, RequestURI: target, RemoteAddr: d.host.nextAddr(d.ip).String(),
	}).WithContext(req.Context())
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	if req.Host != "" {
		r.Host = req.Host
	}
	if body.Len() > 0 {
		r.Body = io.NopCloser(body)
	}
	if hasBody(req) && req.ContentLength <= 0 && (body.Len() > 0 || namesLength(req.Method)) {
		r.ContentLength, r.TransferEncoding = -1, []string{"chunked"} // what a Transport does with an unknown length
	}
	return r
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// namesLength reports whether a Transport sends Content-Length: 0 for a method
// without a body.
func namesLength(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// call runs the handler. If the handler ends the connection before any of its
// answer has left, the caller gets an error and no response.
func (d *direct) call(w *directWriter, r *http.Request) error {
	func() {
		defer func() {
			if recover() != nil { // the handler reports its own panics
				w.ends = Closes
			}
		}()
		d.host.Handler.ServeHTTP(w, r)
	}()
	switch {
	case w.ends == Stays || w.flushed:
		return nil
	case w.ends == Resets:
		return d.host.resetError()
	}
	return io.EOF
}

// checkSent refuses what a Transport refuses to send, in the same words.
func checkSent(req *http.Request) error {
	switch {
	case req.URL == nil:
		return errors.New("http: nil Request.URL")
	case req.Header == nil:
		return errors.New("http: nil Request.Header")
	case req.Method != "" && !isToken(req.Method):
		return fmt.Errorf("net/http: invalid method %q", req.Method)
	}
	for name, values := range req.Header {
		if !isToken(name) {
			return fmt.Errorf("net/http: invalid header field name %q", name)
		}
		// The value may be a key, so it is not repeated.
		if slices.ContainsFunc(values, HoldsControl) {
			return fmt.Errorf("net/http: invalid header field value for %q", name)
		}
	}
	return nil
}

// isToken reports whether a text is a name as RFC 9110, 5.6.2, allows it.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// HoldsControl reports whether a text holds a control character, which could
// end the line of a header.
func HoldsControl(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// servedHeader is a header as it arrives: with canonical names and trimmed values,
// without the headers that a Transport writes by itself, and with those that it
// adds.
func servedHeader(req *http.Request) http.Header {
	h := make(http.Header, len(req.Header)+3)
	names := slices.AppendSeq(make([]string, 0, len(req.Header)), maps.Keys(req.Header))
	slices.Sort(names) // a Transport goes through them in order
	for _, name := range names {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		// In another case of letters a Transport sends User-Agent twice, and its other own
		// headers in a form that no server accepts.
		if name == "User-Agent" || slices.Contains(ownHeaders, canonical) {
			continue
		}
		for _, v := range req.Header[name] {
			h[canonical] = append(h[canonical], textproto.TrimString(v))
		}
	}
	agent, given := req.Header["User-Agent"]
	if !given {
		agent = []string{"Go-http-client/1.1"}
	}
	if len(agent) > 0 && textproto.TrimString(agent[0]) != "" {
		h["User-Agent"] = append([]string{textproto.TrimString(agent[0])}, h["User-Agent"]...)
	}
	if req.Header.Get("Accept-Encoding") == "" && req.Header.Get("Range") == "" && req.Method != http.MethodHead {
		h["Accept-Encoding"] = append(h["Accept-Encoding"], "gzip")
	}
	switch {
	case hasBody(req) && req.ContentLength > 0:
		h["Content-Length"] = []string{strconv.FormatInt(req.ContentLength, 10)}
	case !hasBody(req) && namesLength(req.Method):
		h["Content-Length"] = []string{"0"}
	}
	return h
}

// ownHeaders are those that a Transport writes by itself.
var ownHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Trailer"}

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
	number := strconv.Itoa(w.status)
	resp := &http.Response{
		StatusCode: w.status, Status: number + " " + cmp.Or(http.StatusText(w.status), "status code "+number), // the words of net/http
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: w.length(), Request: req, Close: w.sent.Get("Connection") == "close",
		Body: w.reader(req.Context()),
	}
	if req.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp
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

// Response is a whole answer. Nobody changes its parts once it is sent.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// write sends the response whole, and counts the bytes of the body that left: fewer
// if the client is gone.
func (r Response) write(w http.ResponseWriter) (sent int) {
	if direct, ok := w.(*directWriter); ok {
		direct.take(r)
		return len(r.Body)
	}
	maps.Copy(w.Header(), r.Header)
	w.WriteHeader(r.Status)
	sent, _ = w.Write(r.Body)
	return sent
}

// Ending is what happens to the connection after the part of a response that
// was sent.
type Ending int

// The endings.
const (
	Stays  Ending = iota // the connection stays, and all was sent
	Closes               // the client reads io.EOF, too early
	Resets               // the client reads ECONNRESET
	Hangs                // the client waits
	Leaves               // the whole response is sent, and the connection takes no other request
)

// Nothing of a response is sent, not even the header.
const Nothing = -1

// Delivery describes how a response leaves. With the zero value it arrives
// whole.
type Delivery struct {
	Ends  Ending
	Sent  int           // bytes of the body, unless the connection stays; or Nothing
	Drip  int           // bytes sent at a time; 0: all
	Every time.Duration // between two drips
}

// Progress is called with the bytes of a body that have left or are about to,
// and once with ended, when no more will leave. It is not called for a response
// that leaves at once, whole or as far as its Delivery says.
type Progress func(sent int, ended bool)

// Write sends the part of the response that the delivery leaves. If the
// connection ends too early, or the client leaves, it panics with
// http.ErrAbortHandler.
func (d Delivery) Write(w http.ResponseWriter, req *http.Request, r Response, progress Progress) {
	var whole bool
	if r.Body, whole = d.Part(r.Body); d.Ends == Leaves {
		r.Header["Connection"] = []string{"close"} // over HTTP/2 net/http makes it a GOAWAY
	}
	if d.Sent != Nothing {
		d.send(req.Context(), w, r, progress)
	}
	switch {
	case req.ProtoMajor == 2 && (whole || d.Ends == Closes && d.Sent != Nothing):
		// The stream ends, and the client knows from the length that something is
		// missing.
	case d.Ends == Closes:
		panic(http.ErrAbortHandler)
	case d.Ends == Resets:
		reset(w)
	case d.Ends == Hangs:
		<-req.Context().Done()
		progress(max(0, d.Sent), true)
		panic(http.ErrAbortHandler)
	}
}

// Part is the part of a body that leaves, and whether that is the whole.
func (d Delivery) Part(body []byte) (part []byte, whole bool) {
	if d.Ends == Stays || d.Ends == Leaves || d.Sent >= len(body) {
		return body, true
	}
	return body[:max(0, d.Sent)], false
}

// send sends the response, and flushes it if the connection then ends.
func (d Delivery) send(ctx context.Context, w http.ResponseWriter, r Response, progress Progress) {
	direct, isDirect := w.(*directWriter)
	switch {
	case d.Drip > 0 && isDirect: // the reader of the body waits
		direct.drip, direct.every, direct.progress = d.Drip, d.Every, progress
		r.write(w)
	case d.Drip > 0:
		d.dribble(ctx, w, r, progress)
	default:
		if sent := r.write(w); sent < len(r.Body) {
			progress(sent, true)
		}
	}
	if d.Ends != Stays {
		_ = http.NewResponseController(w).Flush()
	}
}

// dribble sends the body in small parts, until the client leaves.
func (d Delivery) dribble(ctx context.Context, w http.ResponseWriter, r Response, progress Progress) {
	var rest []byte
	r.Body, rest = d.part(r.Body)
	sent := len(r.Body)
	progress(sent, len(rest) == 0) // before it leaves, so that nobody has it before it is recorded
	r.write(w)
	for len(rest) > 0 {
		_ = http.NewResponseController(w).Flush() // a part that cannot be flushed leaves with a later one
		Pause(ctx, d.Every)
		if ctx.Err() != nil {
			progress(sent, true)
			panic(http.ErrAbortHandler)
		}
		var part []byte
		part, rest = d.part(rest)
		progress(sent+len(part), len(rest) == 0)
		n, _ := w.Write(part)
		sent += n
	}
}

func (d Delivery) part(body []byte) (first, rest []byte) {
	n := min(d.Drip, len(body))
	return body[:n], body[n:]
}

// reset aborts the connection below a response. Over HTTP/2, where calls share
// a connection, it resets the stream; net/http chooses the code INTERNAL_ERROR.
func reset(w http.ResponseWriter) {
	if direct, is := w.(*directWriter); is {
		direct.ends = Resets
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	// Below TLS, whose Close would say goodbye.
	if secure, is := conn.(interface{ NetConn() net.Conn }); is {
		conn = secure.NetConn()
	}
	if lingering, is := conn.(interface{ SetLinger(int) error }); is {
		_ = lingering.SetLinger(0)
	}
	_ = conn.Close()
}

// Pause waits for d, or until ctx ends. It makes its timer in the bubble of the
// call.
func Pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
