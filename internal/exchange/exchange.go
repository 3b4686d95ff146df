// Package exchange sends one request and reads its answer. It sends the request at most
// once. It keeps net/http from repeating the request, because no retry policy, limiter or
// observer would notice the repeat. It reports whether the service may have seen the
// request, and reads answers within bounds of size and time.
//
// One [Sender.Send] is one attempt of a call. It may take several tries to find a connection. If
// an HTTP/2 connection cannot take the request, nothing of it is written, and the next try looks
// for another connection. The hooks of net/http/httptrace show what happens in a try.
package exchange

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/agent-messaging-service/agentmessaging-go/internal/isnil"
)

// A Sender sends requests to one service. It holds the state that these requests share.
type Sender struct {
	transport    http.RoundTripper
	runsHooks    atomic.Bool // the transport has run a hook of httptrace
	everAnswered atomic.Bool // the service has answered a request
	queue        dialQueue   // for an HTTP/2 connection
}

// New returns the Sender to the service at base through transport. A nil transport means
// the value of http.DefaultTransport when a request is sent, as in net/http. All clients
// that use the same http.Transport share a Sender, whatever their keys, if the transport
// keeps connections. Otherwise each client would dial for its first request.
func New(transport http.RoundTripper, base *url.URL) *Sender {
	s := &Sender{transport: transport}
	own, ok := cmp.Or(transport, http.DefaultTransport).(*http.Transport)
	// The queue needs the hook GotConn, which other transports may not run. A transport that
	// keeps no connections has none to share, and several synctest bubbles may use it at
	// once.
	if !ok || own.DisableKeepAlives {
		return s
	}
	s.queue.untried = true
	s.queue.pending.Store(1)
	key, self := route{weak.Make(own), transport == nil, base.Scheme, base.Host}, weak.Make(s)
	runtime.AddCleanup(s, func(on route) { senders.CompareAndDelete(on, self) }, key)
	known, _ := senders.LoadOrStore(key, self)
	if shared := known.(weak.Pointer[Sender]).Value(); shared != nil {
		return shared
	}
	senders.Store(key, self) // the known Sender was garbage-collected
	return s
}

// senders has a weak.Pointer[Sender] for each route in use.
var senders sync.Map

// route identifies a Sender: its transport and its destination.
type route struct {
	transport    weak.Pointer[http.Transport]
	byDefault    bool // the transport was nil, so http.DefaultTransport is used
	scheme, host string
}

// Request holds the request to send.
type Request struct {
	Method   string
	URL      *url.URL    // copied
	Header   http.Header // copied, but without Content-Type if there is no Body
	Cookies  []string    // in addition to Header
	Body     []byte      // nil: none
	Deadline time.Time   // for the request and its answer
}

// Answer is the result of a request.
type Answer struct {
	Status  int         // 0: none came
	Header  http.Header // may belong to the transport: read it, or change a clone
	Body    []byte      // of a 2xx at most 1 MiB, of another status 64 KiB
	Err     error       // why no answer came, or why the body of a 2xx is incomplete
	BodyErr error       // why the body of another status is incomplete
	Missed  Missed      // how the answer was missed; NotMissed if Err is nil
	Sent    bool        // the service may have seen the request
	// OtherConnection is true if the HTTP/2 connection was closing or had no room. If the caller
	// may send the request again, it can do so at once, on another connection.
	OtherConnection bool
}

// Missed says how an answer was missed.
type Missed int

const (
	NotMissed     Missed = iota
	NoAnswer             // no answer came before the context or a timeout ended the request
	Broken               // the connection could not be made, or broke
	StreamRefused        // the HTTP/2 stream was refused (REFUSED_STREAM)
	Denied               // a certificate was refused, or a proxy refused CONNECT: the service has done nothing
	Unreadable           // the answer is not HTTP, or its body is larger than the bound
)

// Send sends the request at most once and reads the answer. When it returns, the
// request's context has ended.
func (s *Sender) Send(ctx context.Context, r Request) Answer {
	for try := 1; ; try++ {
		answer, again := s.send(ctx, r, try)
		if !again || try == maxTries {
			return answer
		}
	}
}

// maxTries bounds how often a request looks for an HTTP/2 connection that takes it, because
// perhaps none ever has room.
const maxTries = 50

// send makes one try to find a connection that takes the request. try counts from 1. again
// means that no connection took the request, and another try may help.
func (s *Sender) send(ctx context.Context, r Request, try int) (_ Answer, again bool) {
	ctx, stop := context.WithDeadline(ctx, r.Deadline)
	defer stop()
	rt := &roundTrip{sender: s, ctx: ctx, stop: stop}
	defer func() {
		if conn := rt.firstOn.Load(); conn != nil {
			conn.endFirst()
		}
	}()
	transport := cmp.Or(s.transport, http.DefaultTransport)
	rt.httpTransport, _ = transport.(*http.Transport)
	rt.build(r)
	if try > 1 || s.queue.pending.Load() != 0 {
		rt.queueUp()
		defer rt.leaveQueue(false)
	}
	if err := rt.ctx.Err(); err != nil {
		return Answer{Err: err, Missed: NoAnswer}, false
	}
	resp, err := transport.RoundTrip(&rt.request)
	switch { // some test transports break the rules of RoundTripper
	case err != nil && !isnil.Value(err): // not a nil *Error in an error
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return rt.failed(err)
	case resp == nil:
		return rt.failed(errNothing)
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	return rt.read(resp), false
}

// roundTrip holds the request of one try, and what the hooks have seen of it. build sets
// the hooks. They run on the transport's goroutines, maybe after RoundTrip has returned.
// So each try has a new roundTrip, and what hooks set is atomic or guarded by mu.
//
// The hooks come in these orders. For an HTTP/2 connection that another request has
// dialed, net/http leaves GetConn out.
//
//	GetConn, GotConn, WroteHeaders, FirstResponseByte   the usual exchange
//	GetConn, and an error                               no connection: nothing was sent
//	GetConn, GotConn, and an error                      the header may be on its way
//	GotConn, GetConn                                    the HTTP/2 connection is full: the try ends
//	WroteHeaders, then GetConn or GotConn               net/http wants to repeat: the try ends
//	FirstResponseByte, Got1xxResponse, ...              the first byte was of an interim answer
//	none                                                a transport without hooks: see facts.bodyReadEarly
type roundTrip struct {
	sender        *Sender
	httpTransport *http.Transport // the transport, if it is a net/http Transport; nil: it is another type
	ctx           context.Context // of the try
	stop          func()          // ends ctx, and so the try
	request       http.Request
	url           url.URL
	body          bytes.Reader
	hooks         httptrace.ClientTrace

	mu    sync.Mutex
	known facts // guarded by mu; update and facts return a copy

	conn      atomic.Pointer[connection] // nil: none yet, or not HTTP/2
	firstOn   atomic.Pointer[connection] // the connection whose first request this is; nil: none
	hasTurn   atomic.Bool                // this request has the turn in the dialQueue
	turnTimer *time.Timer                // ends the turn
}

// build makes the request. A transport may change it, so requests share nothing of it.
func (rt *roundTrip) build(r Request) {
	rt.hooks = httptrace.ClientTrace{
		GetConn:              rt.getConn,
		GotConn:              rt.gotConn,
		WroteHeaders:         func() { rt.update(func(f *facts) { f.headers++ }) },
		GotFirstResponseByte: rt.gotFirstByte,
		Got1xxResponse:       rt.got1xx,
	}
	rt.url = *r.URL
	rt.request = *(&http.Request{
		Method: r.Method,
		URL:    &rt.url,
		Host:   r.URL.Host,
		Header: r.Header.Clone(), // also the values: some transports mask them in place, for a log
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(httptrace.WithClientTrace(rt.ctx, &rt.hooks))
	if r.Cookies != nil {
		rt.request.Header["Cookie"] = r.Cookies
	}
	rt.body.Reset(r.Body) // no GetBody: net/http cannot send the request again by itself
	rt.request.ContentLength = rt.body.Size()
	rt.known.isHTTPTransport, rt.known.hasBody = rt.httpTransport != nil, rt.body.Size() > 0
	switch {
	case r.Body == nil:
		delete(rt.request.Header, "Content-Type")
		rt.known.bodyReadEarly = r.Method == http.MethodPost
	case rt.httpTransport != nil && rt.sender.runsHooks.Load():
		rt.known.bodyReadEarly = true            // this body does not notice reads: assume that it was sent, unless hooks run
		rt.request.Body = io.NopCloser(&rt.body) // net/http knows this type: it writes header and body at once
	default:
		rt.request.Body = requestBody{rt}
	}
}

// update adds to what is known of the try, and returns a copy. add runs under the lock, so
// it must not wait.
func (rt *roundTrip) update(add func(*facts)) facts {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	add(&rt.known)
	rt.known.ended, rt.known.everAnswered = rt.ctx.Err() != nil, rt.sender.everAnswered.Load()
	return rt.known
}

// facts returns what is known of the try now.
func (rt *roundTrip) facts() facts { return rt.update(func(*facts) {}) }

// requestBody is a request body that records that the transport has read it.
type requestBody struct{ *roundTrip }

func (b requestBody) Read(p []byte) (int, error) {
	// Once the transport has a connection, the hooks show whether it sends the request.
	f := b.update(func(f *facts) { f.bodyReadEarly = f.bodyReadEarly || !f.connected })
	if f.bodySealed {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.body.Read(p)
}

func (requestBody) Close() error { return nil }

// PeekBody returns the body of a request that a Sender has given to a transport. It does
// not count as a read of the body. It is for the transports of tests. It returns nil if
// the transport is net/http's.
func PeekBody(req *http.Request) []byte {
	b, ok := req.Body.(requestBody)
	if !ok {
		return nil
	}
	unread := b.body
	text, _ := io.ReadAll(&unread)
	return text
}

// queueUp waits for the request's turn to look for a connection.
func (rt *roundTrip) queueUp() {
	if rt.sender.queue.enter(rt.ctx) {
		rt.turnTimer = time.AfterFunc(firstAnswerWait, func() { rt.leaveQueue(false) })
		rt.hasTurn.Store(true)
	}
}

// leaveQueue ends the request's turn, if it has one. found says whether the request has found an
// HTTP/2 connection, which the next in the queue may share.
func (rt *roundTrip) leaveQueue(found bool) {
	if rt.hasTurn.CompareAndSwap(true, false) {
		rt.turnTimer.Stop()
		rt.sender.queue.leave(found)
	}
}

func (rt *roundTrip) getConn(string) {
	rt.sender.runsHooks.Store(true)
	f := rt.update(func(f *facts) {
		f.lookedForConn, f.connected = true, false // net/http has given up an earlier connection
		f.checkRepeat()
	})
	switch {
	case f.repeat:
		rt.stop()
	case f.http2 && f.headers == 0 && !f.maybeSentUnseen():
		rt.refuse(noRoom) // the next try waits its turn; here net/http would dial for each request
	}
}

func (rt *roundTrip) gotConn(info httptrace.GotConnInfo) {
	var conn *connection // nil: it is not HTTP/2
	overTLS, secure := info.Conn.(*tls.Conn)
	if secure {
		conn = rt.sender.queue.connectionOf(overTLS)
	}
	rt.leaveQueue(conn != nil)
	f := rt.update(func(f *facts) {
		f.lookedForConn, f.connected = true, true
		if f.checkRepeat(); f.repeat {
			f.sameConn = conn == rt.conn.Load()
		} else {
			f.reused = info.Reused
		}
	})
	switch {
	case f.repeat:
		rt.stop()
		if conn == nil && (secure || plainIsHTTP1(rt.httpTransport)) {
			info.Conn.Close() // net/http may write to an idle connection even after the context has ended
		}
	case conn != nil:
		rt.useHTTP2(conn)
	}
}

// useHTTP2 waits until the request may be written to conn, or refuses it. net/http checks
// the context after the hook gotConn, so it does not write a refused request.
func (rt *roundTrip) useHTTP2(conn *connection) {
	f := rt.update(func(f *facts) { f.http2 = true })
	switch before := rt.conn.Swap(conn); {
	case f.maybeSentUnseen(): // never refuse the request: it may have been sent, so it must not be sent again
	case before != nil && f.headers == 0: // the earlier connection had no room
		rt.refuse(noRoom)
		return
	}
	first, err := conn.admit(rt.ctx)
	if first {
		rt.firstOn.Store(conn)
	}
	if err != nil {
		rt.refuse(noFirstAnswer)
	}
}

// refuse ends the try before the request is written. The first reason counts.
func (rt *roundTrip) refuse(why rejection) {
	rt.update(func(f *facts) { f.rejection = cmp.Or(f.rejection, why) })
	rt.stop()
}

// checkRepeat notes whether the transport is about to send the request again, as net/http does
// after some failures: it looks for a connection although the request was written and is not
// answered. A request with a body cannot be repeated, because build sets no GetBody. For any
// other, getConn and gotConn end the try before it is sent. Both check: getConn runs before a
// dial, but net/http skips it for an HTTP/2 connection that it dialed for another request. After
// an answer, the user's transport may send the request again, for example with a credential that
// the answer asked for.
func (f *facts) checkRepeat() { f.repeat = f.repeat || f.headers > f.answers }

// noteInterim sets answers back to 0: the first byte belonged to an interim answer, after
// which net/http may still repeat the request.
func (f *facts) noteInterim() { f.answers, f.interim = 0, f.interim+1 }

// plainIsHTTP1 reports that a connection without TLS is certainly HTTP/1.1. Otherwise it may
// be HTTP/2, and shared with other requests. Only net/http's own transport shows whether it
// speaks HTTP/2 without TLS. transport is nil if it is of another type.
func plainIsHTTP1(transport *http.Transport) bool {
	return transport != nil && (transport.Protocols == nil || !transport.Protocols.UnencryptedHTTP2())
}

func (rt *roundTrip) gotFirstByte() {
	rt.update(func(f *facts) { f.answers++ })
	if conn := rt.conn.Load(); conn != nil {
		conn.noteAnswer()
	}
}

func (rt *roundTrip) got1xx(int, textproto.MIMEHeader) error {
	if f := rt.update((*facts).noteInterim); f.interim > maxInterim {
		return errTooManyInterim
	}
	return nil
}

// maxInterim is the largest number of interim answers. It is enough for a service that
// sends one each second while it works on a slow reply. net/http bounds the number only if
// the hook Got1xxResponse is not set.
const maxInterim = 1000

// failed returns the Answer for a request that got none. again is as for send.
func (rt *roundTrip) failed(err error) (_ Answer, again bool) {
	proxyFailed := rt.proxyFailed(err)
	return rt.update(func(f *facts) {
		f.lookedForConn = f.lookedForConn || proxyFailed // no hook ran, but the hooks would have shown everything
		f.bodySealed = !f.bodyReadEarly                  // from now on, no goroutine that RoundTrip left behind can read the body
	}).failure(err)
}

// proxyFailed reports that net/http's own transport failed before it ran any hook,
// because its Proxy function failed. To find that out, proxyFailed calls the Proxy
// function once more.
func (rt *roundTrip) proxyFailed(err error) bool {
	if rt.httpTransport == nil || rt.httpTransport.Proxy == nil || rt.facts().lookedForConn {
		return false
	}
	_, repeated := rt.httpTransport.Proxy(&rt.request)
	return repeated != nil && repeated.Error() == err.Error()
}

// read reads the answer.
func (rt *roundTrip) read(resp *http.Response) Answer {
	defer resp.Body.Close()
	if resp.StatusCode < 200 { // after a 101 the answer would follow in another protocol (RFC 9110, 7.8)
		return Answer{Err: fmt.Errorf("the answer has the status %03d, which answers no request", resp.StatusCode), Missed: Unreadable, Sent: true}
	}
	rt.sender.everAnswered.Store(true)
	answer := Answer{Status: resp.StatusCode, Header: resp.Header, Sent: true}
	if resp.StatusCode <= 299 {
		answer.Body, answer.Err = readBody(resp, maxSuccessBody, rt.stop)
		if answer.Err != nil {
			answer.Missed = rt.facts().missed(answer.Err)
		}
		return answer
	}
	// That this body breaks off is no failure: the status is known, and a part of the body is enough.
	late := time.AfterFunc(bodyWait, rt.stop)
	answer.Body, answer.BodyErr = readBody(resp, maxErrorBody, rt.stop)
	if !late.Stop() && answer.BodyErr != nil {
		answer.BodyErr = errLate
	}
	return answer
}

// Bounds on a body, in bytes, compressed and decompressed. The documented bodies take a
// few kilobytes.
const (
	maxSuccessBody = 1 << 20
	maxErrorBody   = 64 << 10
	// bodyWait bounds the wait for bytes that the client can do without: the rest of an
	// error's body, and the end of a body that already has its announced length.
	bodyWait = 5 * time.Second
)

var errLate = fmt.Errorf("the rest did not come within %s", bodyWait)

// readBody reads a body of at most limit bytes. If it fails, it returns what it has read so
// far. It drops the byte order mark that some gateways put before JSON (RFC 8259, 8.1), and
// decompresses gzip, which some gateways send although the request did not ask for it.
//
// stop ends the try, and so a Read that hangs. Closing the body instead would race with a
// decompressor that is reading it.
func readBody(resp *http.Response, limit int, stop func()) (body []byte, err error) {
	if coding := strings.ToLower(resp.Header.Get("Content-Encoding")); (coding == "gzip" || coding == "x-gzip") && !resp.Uncompressed {
		body, err = gunzip(resp.Body, limit)
	} else {
		if resp.ProtoMajor == 1 {
			stop = nil // HTTP/1.1: the end comes with the last byte
		}
		body, err = readWhole(resp.Body, resp.ContentLength, limit, stop)
	}
	if len(body) > limit {
		body, err = body[:limit], errTooLarge
	}
	return bytes.TrimPrefix(body, []byte("\ufeff")), err
}

// gunzip decompresses gzip. It also bounds the compressed bytes, because an endless stream
// of empty gzip members decompresses to nothing.
func gunzip(body io.Reader, limit int) ([]byte, error) {
	packed := &io.LimitedReader{R: body, N: int64(limit) + 1}
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	whole, err := readWhole(unpacked, -1, limit, nil)
	if packed.N == 0 {
		err = errTooLarge
	}
	return whole, err
}

// maxEmptyReads bounds the reads in a row that give neither bytes nor an error. The body of a
// user's transport may give nothing else and never end.
const maxEmptyReads = 100

// readWhole reads to the end of the body, or until it has more than limit bytes. length
// is the announced length, or -1. After length bytes readWhole still waits for the end,
// because over HTTP/2 a body that is closed before its end resets the stream. If the body
// breaks off after exactly length bytes, it is complete. If more bytes come, length is
// ignored, because a transport that decompressed the body may have left the old length.
// stop ends the wait for an end that is late; nil: the end comes with the last byte.
func readWhole(r io.Reader, length int64, limit int, stop func()) ([]byte, error) {
	size := int64(512)
	if length > 0 && length <= int64(limit) {
		size = length + 1
	}
	body := make([]byte, 0, size)
	for idle := 1; ; idle++ {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if n > 0 {
			idle = 0
		}
		switch {
		case idle == maxEmptyReads && err == nil:
			return body, io.ErrNoProgress
		case err == io.EOF, err != nil && int64(len(body)) == length:
			return body, nil
		case err != nil, len(body) > limit:
			return body, err
		case int64(len(body)) == length && stop != nil:
			defer time.AfterFunc(bodyWait, stop).Stop()
			stop = nil
		case len(body) == cap(body):
			body = append(body, 0)[:len(body)]
		}
	}
}
