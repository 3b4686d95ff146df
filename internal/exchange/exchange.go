// Package exchange sends one request and reads its answer. It sends the request at most
// once. It keeps net/http from repeating the request, because no retry policy, limiter or
// observer would notice the repeat. It reports whether the service may have seen the
// request, and reads answers within bounds of size and time.
//
// A [Sender.Send] may take several tries. Each try looks for a connection. If an HTTP/2
// connection cannot take the request, nothing of it is written, and the next try looks for
// another one. The hooks of net/http/httptrace show what happens in a try.
package exchange

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// A Sender sends requests to one service. It holds the state that these requests share.
type Sender struct {
	transport    http.RoundTripper
	hooked       atomic.Bool // the transport has run a hook of httptrace
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
	s.queue.untried = 1
	s.queue.pending.Store(1)
	on, mine := route{weak.Make(own), transport == nil, base.Scheme, base.Host}, weak.Make(s)
	runtime.AddCleanup(s, func(on route) { senders.CompareAndDelete(on, mine) }, on)
	known, _ := senders.LoadOrStore(on, mine)
	if shared := known.(weak.Pointer[Sender]).Value(); shared != nil {
		return shared
	}
	senders.Store(on, mine) // the known Sender was garbage-collected
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
	Header   http.Header // copied, but not its values
	Cookies  []string    // in addition to Header
	Body     []byte      // nil: none
	Deadline time.Time   // for the request and its answer
}

// Answer is the result of a request.
type Answer struct {
	Status int         // 0: none came
	Header http.Header // may belong to the transport: read it, or change a clone
	Body   []byte      // of a 2xx at most 1 MiB, of another status 64 KiB
	Err    error       // why no answer came, or why the body of a 2xx is incomplete
	Cut    error       // why the body of another status is incomplete
	Missed Missed      // how the answer was missed; NotMissed if Err is nil
	Sent   bool        // the service may have seen the request
	// TurnedAway is true if an HTTP/2 connection did not process the request, because the
	// connection was closing or had no room. Another connection can take the request at
	// once. Sent still reports whether the service may have seen the request.
	TurnedAway bool
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

// maxTries bounds how often a request looks for an HTTP/2 connection that takes it.
// Perhaps no connection to the service has room.
const maxTries = 50

// send makes one try to find a connection that takes the request. try counts from 1. again
// means that no connection took the request, and another try may help.
func (s *Sender) send(ctx context.Context, r Request, try int) (_ Answer, again bool) {
	ctx, stop := context.WithDeadline(ctx, r.Deadline)
	defer stop()
	rt := &roundTrip{sender: s, ctx: ctx, stop: stop}
	defer rt.finish()
	transport := s.transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	rt.own, _ = transport.(*http.Transport)
	rt.build(r)
	if try > 1 || s.queue.pending.Load() != 0 {
		rt.queueUp()
	}
	if err := rt.ctx.Err(); err != nil {
		return Answer{Err: err, Missed: NoAnswer}, false
	}
	resp, err := checked(transport.RoundTrip(&rt.request))
	if err != nil {
		return rt.failed(err)
	}
	return rt.read(resp), false
}

// roundTrip holds the request of one try, and what the hooks have seen of it. build sets
// the hooks. They run on the transport's goroutines, maybe after RoundTrip has returned.
// So each try has a new roundTrip, and the fields that hooks set are atomic.
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
//	none                                                a transport without hooks: see delivery
type roundTrip struct {
	sender  *Sender
	own     *http.Transport // the transport, if it is a net/http Transport; nil: it is another type
	ctx     context.Context // of the try
	stop    func()          // ends ctx, and so the try
	request http.Request
	url     url.URL
	body    bytes.Reader
	hooks   httptrace.ClientTrace

	started   atomic.Bool  // the transport has looked for a connection (GetConn or GotConn)
	connected atomic.Bool  // the transport has a connection (GotConn)
	delivery  atomic.Int32 // bodyUnread, maybeUnseen or bodyClosed
	headers   atomic.Int32 // how often the header was written; more than once by a transport that repeats
	answers   atomic.Int32 // how many answers have begun; interim answers (1xx) do not count
	interim   atomic.Int32 // how many interim answers have come
	repeat    atomic.Bool  // the transport was about to repeat the request, so the try was ended
	sameConn  atomic.Bool  // the repeat would have used the same connection, so that connection is not closing
	reused    atomic.Bool  // the connection was used before

	conn      atomic.Pointer[connection] // nil: none yet, or not HTTP/2
	firstOn   atomic.Pointer[connection] // the connection whose first request this is; nil: none
	rejection atomic.Int32               // a rejection
	hasTurn   atomic.Bool                // this request has the turn in the dialQueue
	turnTimer *time.Timer                // ends the turn
}

// build makes the request. A transport may change the request, so tries share nothing of
// it but the header's values.
func (rt *roundTrip) build(r Request) {
	rt.hooks = httptrace.ClientTrace{
		GetConn:              rt.getConn,
		GotConn:              rt.gotConn,
		WroteHeaders:         func() { rt.headers.Add(1) },
		GotFirstResponseByte: rt.gotFirstByte,
		Got1xxResponse:       rt.got1xx,
	}
	rt.url = *r.URL
	rt.request = *(&http.Request{
		Method: r.Method,
		URL:    &rt.url,
		Host:   r.URL.Host,
		Header: maps.Clone(r.Header),
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(httptrace.WithClientTrace(rt.ctx, &rt.hooks))
	if r.Cookies != nil {
		rt.request.Header["Cookie"] = r.Cookies
	}
	rt.body.Reset(r.Body) // no GetBody: net/http cannot send the request again by itself
	rt.request.ContentLength = rt.body.Size()
	switch {
	case r.Body == nil && r.Method == http.MethodPost:
		rt.delivery.Store(maybeUnseen)
	case r.Body == nil:
	case rt.own != nil && rt.sender.hooked.Load():
		rt.delivery.Store(maybeUnseen)           // this body does not notice reads: assume that it was sent, unless hooks run
		rt.request.Body = io.NopCloser(&rt.body) // net/http knows this type: it writes header and body at once
	default:
		rt.request.Body = requestBody{rt}
	}
}

// The values of delivery say whether a transport that runs no hooks may have sent the
// request. The body shows this, because a transport has to read the body before it sends
// it.
const (
	bodyUnread  = iota // the body was not read; or there is none, and the method is not POST
	maybeUnseen        // the body was read before there was a connection; or there is none, and the method is POST
	bodyClosed         // the body was not read, and cannot be read any more
)

// unseen reports that the transport may have sent the request without running hooks, for
// example over HTTP/3. Once net/http's own transport looks for a connection, the hooks
// show everything. Another transport may have read the body, and sent it, before it
// looked for this connection. If there is no body, unseen believes the hooks: otherwise
// each failed dial would leave the request in doubt.
func (rt *roundTrip) unseen() bool {
	certain := rt.started.Load() && (rt.own != nil || rt.body.Size() == 0)
	return !certain && rt.delivery.Load() == maybeUnseen
}

// requestBody is a request body that records that the transport has read it.
type requestBody struct{ *roundTrip }

func (b requestBody) Read(p []byte) (int, error) {
	if !b.connected.Load() {
		b.delivery.CompareAndSwap(bodyUnread, maybeUnseen)
	}
	if b.delivery.Load() == bodyClosed {
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
	turn := rt.sender.queue.enter(rt.ctx)
	if turn {
		rt.turnTimer = time.AfterFunc(firstAnswerWait, func() { rt.leaveQueue(false) })
	}
	rt.hasTurn.Store(turn)
}

// leaveQueue ends the request's turn, if it has one. If the request has found an HTTP/2
// connection, the next in the queue gets the turn, because it may share the connection.
// Otherwise all waiting requests may look at once.
func (rt *roundTrip) leaveQueue(http2 bool) {
	if rt.hasTurn.CompareAndSwap(true, false) {
		rt.turnTimer.Stop()
		rt.sender.queue.leave(!http2)
	}
}

func (rt *roundTrip) getConn(string) {
	rt.sender.hooked.Store(true)
	rt.started.Store(true)
	rt.connected.Store(false) // net/http has given up an earlier connection
	if !rt.preventRepeat() && rt.conn.Load() != nil && rt.headers.Load() == 0 && !rt.unseen() {
		rt.refuse(full) // the next try waits its turn; here net/http would dial for each request
	}
}

func (rt *roundTrip) gotConn(info httptrace.GotConnInfo) {
	rt.started.Store(true)
	rt.connected.Store(true)
	var conn *connection // nil: it is not HTTP/2
	if secure, ok := info.Conn.(*tls.Conn); ok {
		conn = rt.sender.queue.connectionOf(secure)
	}
	rt.leaveQueue(conn != nil)
	if rt.preventRepeat() {
		if conn == nil && rt.speaksHTTP1(info.Conn) {
			info.Conn.Close() // net/http may write to an idle connection even after the context has ended
		}
		rt.sameConn.Store(conn == rt.conn.Load())
		return
	}
	rt.reused.Store(info.Reused)
	if conn != nil {
		rt.useHTTP2(conn)
	}
}

// speaksHTTP1 reports that a connection is certainly HTTP/1.1, given that its TLS
// handshake did not choose HTTP/2. Without TLS the connection may still be HTTP/2, and
// shared with other requests. Only net/http's own transport shows whether it speaks
// HTTP/2 without TLS.
func (rt *roundTrip) speaksHTTP1(conn net.Conn) bool {
	_, secure := conn.(*tls.Conn)
	return secure || rt.own != nil && (rt.own.Protocols == nil || !rt.own.Protocols.UnencryptedHTTP2())
}

// preventRepeat ends the try if the transport is about to send the request again, which
// shows when it looks for a connection although the request was written and is not
// answered. After an answer, the user's transport may send the request again, for example
// with a credential that the answer asked for. getConn and gotConn both call
// preventRepeat: getConn runs before a dial, but net/http skips it for an HTTP/2
// connection that it dialed for another request.
func (rt *roundTrip) preventRepeat() bool {
	if rt.headers.Load() > rt.answers.Load() {
		rt.repeat.Store(true)
		rt.stop()
	}
	return rt.repeat.Load()
}

func (rt *roundTrip) gotFirstByte() {
	rt.answers.Add(1)
	if conn := rt.conn.Load(); conn != nil {
		conn.noteAnswer()
	}
}

// got1xx sets answers back to 0: the first byte belonged to an interim answer, after
// which net/http may still repeat the request. It also bounds the number of interim
// answers, because net/http does so only if this hook is not set.
func (rt *roundTrip) got1xx(int, textproto.MIMEHeader) error {
	rt.answers.Store(0)
	if rt.interim.Add(1) > maxInterim {
		return errTooManyInterim
	}
	return nil
}

// maxInterim is the largest number of interim answers. It is enough for a service that
// sends one each second while it works on a slow reply.
const maxInterim = 1000

var errTooManyInterim = errors.New("too many 1xx answers before the answer")

// finish ends the try: it passes the turn on, and gives the first token back if no answer has
// begun.
func (rt *roundTrip) finish() {
	rt.leaveQueue(false)
	if held := rt.firstOn.Load(); held != nil && rt.answers.Load() == 0 && rt.interim.Load() == 0 {
		<-held.firstToken
	}
}

// read reads the answer.
func (rt *roundTrip) read(resp *http.Response) Answer {
	defer resp.Body.Close()
	if resp.StatusCode < 100 {
		return Answer{Err: fmt.Errorf("the answer has the status %03d, which HTTP does not know", resp.StatusCode), Missed: Unreadable, Sent: true}
	}
	rt.sender.everAnswered.Store(true)
	answer := Answer{Status: resp.StatusCode, Header: resp.Header, Sent: true}
	if resp.StatusCode < 200 {
		return answer // 101 Switching Protocols: the bytes that follow are not a body, and may never end
	}
	body, err := readBody(resp, rt.stop)
	switch answer.Body = body; {
	case err == nil:
	case resp.StatusCode > 299:
		answer.Cut = err // not a failure: the status is known, and a part of the body is enough
	default:
		answer.Err, answer.Missed = err, rt.missed(err)
	}
	return answer
}

// checked corrects the result of a transport that breaks the rules of RoundTripper, as
// some test transports do.
func checked(resp *http.Response, err error) (*http.Response, error) {
	if resp != nil && resp.Body == nil {
		resp.Body = http.NoBody
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Pointer && v.IsNil() { // a nil *Error in an error
		err = nil
	}
	switch {
	case err != nil && resp != nil:
		resp.Body.Close()
	case err == nil && resp == nil:
		err = errors.New("the transport returned neither an answer nor an error")
	}
	return resp, err
}

// Bounds on a body, in bytes, compressed and decompressed. The documented bodies take a
// few kilobytes.
const (
	maxSuccessBody = 1 << 20
	maxErrorBody   = 64 << 10
	// bodyWait bounds how long readBody waits for bytes that the client can do without: the
	// rest of an error's body, and the end of a body that already has its announced length.
	bodyWait = 5 * time.Second
)

var (
	errTooLarge = errors.New("the body is larger than any documented one")
	errLate     = fmt.Errorf("the rest did not come within %s", bodyWait)
)

// readBody reads a body. If it fails, it returns what it has read so far. It drops the
// byte order mark that some gateways put before JSON (RFC 8259, 8.1), and decompresses
// gzip, which some gateways send although the request did not ask for it.
//
// stop ends the try, and so a Read that hangs. Closing the body instead would race with a
// decompressor that is reading it.
func readBody(resp *http.Response, stop func()) (body []byte, err error) {
	limit := maxSuccessBody
	if resp.StatusCode > 299 {
		limit = maxErrorBody
		late := time.AfterFunc(bodyWait, stop)
		defer func() {
			if !late.Stop() && err != nil {
				err = errLate
			}
		}()
	}
	if coding := strings.ToLower(resp.Header.Get("Content-Encoding")); (coding == "gzip" || coding == "x-gzip") && !resp.Uncompressed {
		body, err = unpack(resp.Body, limit)
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

// unpack decompresses gzip. It also bounds the compressed bytes, because an endless stream
// of empty gzip members decompresses to nothing.
func unpack(body io.Reader, limit int) ([]byte, error) {
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

// maxIdle bounds the reads in a row that give neither bytes nor an error. The body of a
// user's transport may give nothing else and never end.
const maxIdle = 100

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
		case idle == maxIdle && err == nil:
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
