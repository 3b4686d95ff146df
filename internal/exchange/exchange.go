// Package exchange makes one request and reads its answer. It sends a request
// once, and keeps net/http from sending it again where no retry policy, limiter
// or observer would know of it. It knows whether the service can have seen the
// request, and reads answers within bounds of size and time.
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

// A Sender sends requests to one service. It holds what its requests share.
type Sender struct {
	transport http.RoundTripper
	hooked    atomic.Bool // the transport has run a hook
	answered  atomic.Bool // the service has answered a request
	queue     dialQueue   // for an HTTP/2 connection
}

// New returns the Sender to the service at base through transport; nil is what
// http.DefaultTransport is when a request is sent, as net/http has it. All clients of an
// http.Transport share a Sender, whatever their keys: else each would dial for its first
// request, as net/http does.
func New(transport http.RoundTripper, base *url.URL) *Sender {
	s := &Sender{transport: transport}
	own, ok := cmp.Or(transport, http.DefaultTransport).(*http.Transport)
	if !ok { // others may not run GotConn
		return s
	}
	s.queue.unused = 1
	s.queue.reasonsToQueue.Store(1)
	on, mine := route{weak.Make(own), transport == nil, base.Scheme, base.Host}, weak.Make(s)
	runtime.AddCleanup(s, func(on route) { senders.CompareAndDelete(on, mine) }, on)
	known, _ := senders.LoadOrStore(on, mine)
	if shared := known.(weak.Pointer[Sender]).Value(); shared != nil {
		return shared
	}
	senders.Store(on, mine) // no client has the known one any more
	return s
}

// senders has a weak.Pointer[Sender] for each route in use.
var senders sync.Map

// route is where a Sender sends, and how.
type route struct {
	transport    weak.Pointer[http.Transport]
	byDefault    bool // it is asked because it is http.DefaultTransport
	scheme, host string
}

// Request is what to send.
type Request struct {
	Method   string
	URL      *url.URL    // copied
	Header   http.Header // copied, but not its values
	Cookies  []string    // in addition to Header
	Body     []byte      // nil: none
	Deadline time.Time   // for the request and its answer
}

// Answer is what came of a request.
type Answer struct {
	Status int         // 0: none came
	Header http.Header // may belong to the transport: read it, or change a clone
	Body   []byte      // of a 2xx at most 1 MiB, of another status 64 KiB
	Err    error       // why no answer came, or why the body of a 2xx is not whole
	Cut    error       // why the body of another status is not whole
	Missed Missed      // how the answer was missed; NotMissed where Err is nil
	Sent   bool        // the service may have seen the request
	// Renewed reports that an HTTP/2 connection turned the request away, because it was
	// closing or had no room: another one can take it at once. Sent says whether the
	// service may have seen it.
	Renewed bool
}

// Missed says how an answer was missed.
type Missed int

const (
	NotMissed     Missed = iota
	NoAnswer             // none before the context, or a timeout, ended the request
	Broken               // the connection could not be made, or broke
	StreamRefused        // the HTTP/2 stream was refused (REFUSED_STREAM)
	Denied               // a certificate, or CONNECT by a proxy, was refused: nothing was carried out
	Unreadable           // it is not HTTP, or its body does not end within the bounds
)

// Send sends the request once, whatever the transport would do, and reads the
// answer. When it returns, both are over.
func (s *Sender) Send(ctx context.Context, r Request) Answer {
	t := try{number: 1}
	for {
		answer, why := s.send(ctx, r, t)
		if why == admitted || t.number == maxTries {
			return answer
		}
		t = try{number: t.number + 1, after: why, retire: why == stalled && !t.retire}
	}
}

// maxTries bounds how often a request may look for an HTTP/2 connection that takes
// it. A service may have room on none.
const maxTries = 50

// A try to have a connection take a request. Until one does, nothing of the request
// is written.
type try struct {
	number int       // from 1
	after  admission // of the try before
	retire bool      // ask net/http to close the connection when its last request is over
}

// send returns the answer, and why no connection took the request, if another try may
// help.
func (s *Sender) send(ctx context.Context, r Request, t try) (Answer, admission) {
	ctx, stop := context.WithDeadline(ctx, r.Deadline)
	defer stop()
	rt := &roundTrip{try: t, sender: s, ctx: ctx, stop: stop}
	defer rt.finish()
	transport := s.transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	rt.own, _ = transport.(*http.Transport)
	rt.build(r)
	if t.after != admitted || s.queue.reasonsToQueue.Load() != 0 {
		if err := rt.queueUp(); err != nil {
			return Answer{Err: err, Missed: NoAnswer}, admitted
		}
	}
	resp, err := checked(transport.RoundTrip(&rt.request))
	if err != nil {
		return rt.failed(err)
	}
	return rt.read(resp), admitted
}

// roundTrip is the request of one try, and what net/http's hooks say of it; see build.
// They run on the transport's goroutines and may fire after RoundTrip has returned, so
// each try has its own.
type roundTrip struct {
	try
	sender  *Sender
	own     *http.Transport // net/http's, if that is asked directly
	ctx     context.Context // that stop ends
	stop    func()          // ends the try
	request http.Request
	url     url.URL
	body    bytes.Reader
	hooks   httptrace.ClientTrace

	started, connected atomic.Bool
	delivery           atomic.Int32 // what is known of it without hooks: a delivery
	headers            atomic.Int32 // written; a transport that repeats writes more than one
	answers            atomic.Int32 // of which the first byte has come; interim answers (1xx) do not count
	hints              atomic.Int32 // interim answers
	repeat             atomic.Bool  // net/http was about to repeat, which ended the try
	reused             atomic.Bool  // the connection was used before
	sameConn           atomic.Bool  // net/http was about to repeat on the same connection: it is not closing

	conn          atomic.Pointer[connection] // nil: none yet, or not HTTP/2
	answersBefore atomic.Int64               // answers of conn before this request
	firstOn       atomic.Pointer[connection] // that has this request alone until its first answer; nil: none
	admission     atomic.Int32               // an admission
	looking       atomic.Bool                // it is this request's turn to look for a connection
	turnTimer     *time.Timer                // ends the turn
}

// build makes the request. All that it refers to is its own: what a transport
// changes there ends with the try.
func (rt *roundTrip) build(r Request) {
	rt.hooks = httptrace.ClientTrace{
		GetConn:              rt.getConn,
		GotConn:              rt.gotConn,
		WroteHeaders:         func() { rt.headers.Add(1) },
		GotFirstResponseByte: rt.answered,
		Got1xxResponse:       rt.got1xx,
	}
	rt.url = *r.URL
	rt.request = *(&http.Request{
		Method: r.Method,
		URL:    &rt.url,
		Host:   r.URL.Host,
		Header: maps.Clone(r.Header),
		Close:  rt.retire,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(httptrace.WithClientTrace(rt.ctx, &rt.hooks))
	if r.Cookies != nil {
		rt.request.Header["Cookie"] = r.Cookies
	}
	rt.body.Reset(r.Body) // no GetBody: net/http cannot send it again by itself
	rt.request.ContentLength = rt.body.Size()
	switch {
	case r.Body == nil && r.Method == http.MethodPost:
		rt.delivery.Store(possible)
	case r.Body == nil:
	case rt.own != nil && rt.sender.hooked.Load():
		rt.delivery.Store(possible)              // nobody sees who reads it
		rt.request.Body = io.NopCloser(&rt.body) // net/http sees that it is in memory: header and body leave in one write
	default:
		rt.request.Body = requestBody{rt}
	}
}

// delivery is what is known of a request's delivery where no hook runs, from its body.
type delivery = int32

const (
	unread   delivery = iota // nobody has read the body, or there is none and a repeat does no harm
	possible                 // somebody read the body before there was a connection, or may have sent a POST without one
	closed                   // nobody has read the body, or can do so any more
)

// unseen reports that the request may have been delivered in a way that runs no hooks,
// such as HTTP/3. Once net/http's own transport looks for a connection, the hooks tell
// all. Before another one did, it may have delivered a body that it has read. A request
// without a body is believed to be undelivered then: else each failed dial would put it
// in doubt.
func (rt *roundTrip) unseen() bool {
	certain := rt.started.Load() && (rt.own != nil || rt.body.Size() == 0)
	return !certain && rt.delivery.Load() == possible
}

// requestBody notes that a transport reads it.
type requestBody struct{ *roundTrip }

func (b requestBody) Read(p []byte) (int, error) {
	if !b.connected.Load() {
		b.delivery.CompareAndSwap(unread, possible)
	}
	if b.delivery.Load() == closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.body.Read(p)
}

func (requestBody) Close() error { return nil }

// PeekBody returns the body of a request that a Sender has given to a transport, without
// reading it: what was read before a dial that fails counts as sent. It is nil if the
// transport is net/http's.
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
func (rt *roundTrip) queueUp() error {
	if rt.after == stalled {
		// For a try with retire set, a goroutine of net/http retires the connection. It
		// may run late, and does nothing if it sees first that the try has ended. So
		// more tries may follow, and each waits 1 ms longer than the one before.
		select {
		case <-time.After(time.Duration(rt.number) * time.Millisecond):
		case <-rt.ctx.Done():
		}
	}
	turn, err := rt.sender.queue.enter(rt.ctx)
	if turn {
		rt.turnTimer = time.AfterFunc(firstAnswerWait, func() { rt.leaveQueue(false) })
	}
	rt.looking.Store(turn)
	return err
}

// leaveQueue ends the request's turn, if it has one. If it found an HTTP/2 connection,
// which others may share, the next in the queue takes its turn. Otherwise all go at once.
func (rt *roundTrip) leaveQueue(http2 bool) {
	if rt.looking.CompareAndSwap(true, false) {
		rt.turnTimer.Stop()
		rt.sender.queue.leave(!http2)
	}
}

func (rt *roundTrip) getConn(string) {
	rt.sender.hooked.Store(true)
	rt.started.Store(true)
	rt.connected.Store(false) // an earlier connection did not take the header
	if !rt.preventRepeat() && rt.conn.Load() != nil && rt.headers.Load() == 0 && !rt.unseen() {
		rt.refuse(full) // and saves the dial
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
			info.Conn.Close() // it may write to an idle connection though the context has ended
		}
		rt.sameConn.Store(conn != nil && conn == rt.conn.Load())
		return
	}
	rt.reused.Store(info.Reused)
	if conn != nil {
		rt.useHTTP2(conn)
	}
}

// speaksHTTP1 reports that a connection, which is not HTTP/2 by its TLS handshake, is
// certainly not HTTP/2 without TLS either: others may share that. Only net/http's own
// transport says so.
func (rt *roundTrip) speaksHTTP1(conn net.Conn) bool {
	_, secure := conn.(*tls.Conn)
	return secure || rt.own != nil && (rt.own.Protocols == nil || !rt.own.Protocols.UnencryptedHTTP2())
}

// preventRepeat ends the try if net/http is about to send the request again: it
// looks for a connection, though the request was written and is not answered. A
// transport of the caller's may repeat what was answered. Both getConn and gotConn
// ask: getConn saves the dial, but does not run for an HTTP/2 connection that was
// dialed for another request.
func (rt *roundTrip) preventRepeat() bool {
	if rt.headers.Load() > rt.answers.Load() {
		rt.repeat.Store(true)
		rt.stop()
	}
	return rt.repeat.Load()
}

func (rt *roundTrip) answered() {
	rt.answers.Add(1)
	if conn := rt.conn.Load(); conn != nil {
		conn.answered()
	}
}

// got1xx sets answers back to 0: the first byte was that of an interim answer, after
// which net/http may still repeat the request. net/http bounds the number of interim
// answers only where this hook is not set. So the bound is here.
func (rt *roundTrip) got1xx(int, textproto.MIMEHeader) error {
	rt.answers.Store(0)
	if rt.hints.Add(1) > maxHints {
		return errTooManyHints
	}
	return nil
}

// maxHints lets a service that works on a slow reply say so every second.
const maxHints = 1000

var errTooManyHints = errors.New("too many 1xx answers before the answer")

// finish is called when the request is over.
func (rt *roundTrip) finish() {
	rt.leaveQueue(false)
	conn := rt.conn.Load()
	if conn == nil || rt.answers.Load() > 0 || rt.hints.Load() > 0 {
		return
	}
	if held := rt.firstOn.Load(); held != nil { // not always conn: net/http may have found another one
		<-held.firstToken
	}
	if rt.ctx.Err() != nil && rt.headers.Load() == 1 && !rt.repeat.Load() {
		conn.countSilent(rt.answersBefore.Load())
	}
}

// read reads the answer.
func (rt *roundTrip) read(resp *http.Response) Answer {
	defer resp.Body.Close()
	if resp.StatusCode < 100 {
		return Answer{Err: fmt.Errorf("the answer has the status %03d, which HTTP does not know", resp.StatusCode), Missed: Unreadable, Sent: true}
	}
	rt.sender.answered.Store(true)
	answer := Answer{Status: resp.StatusCode, Header: resp.Header, Sent: true}
	if resp.StatusCode < 200 {
		return answer // a protocol switch: what follows is not a body, and may never end
	}
	body, err := readBody(resp, rt.stop)
	switch answer.Body = body; {
	case err == nil:
	case resp.StatusCode > 299:
		answer.Cut = err // part of the body is enough: the status is known
	default:
		answer.Err, answer.Missed = err, rt.missed(err)
	}
	return answer
}

// checked makes up for transports that break the rules of RoundTripper, as some
// do that were written for a test.
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

// Bounds on what is read of an answer, packed and unpacked. The documented bodies
// take a few kilobytes.
const (
	maxSuccessBody = 1 << 20
	maxErrorBody   = 64 << 10
	// bodyWait is how long is waited for what the answer does not need: the rest of
	// an error's body, whose status is known, and the end of a body after its
	// announced length.
	bodyWait = 5 * time.Second
)

var (
	errTooLarge = errors.New("the body is larger than any documented one")
	errLate     = fmt.Errorf("the rest did not come within %s", bodyWait)
)

// readBody skips the byte order mark that some gateways put before JSON (RFC 8259, 8.1).
// With an error it returns what it has read. Requests ask for no gzip, which would cost
// more than it saves; some gateways send it all the same.
//
// stop ends the try. To close the body instead would be a race where another
// goroutine unpacks it, and the reading would go on.
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
			stop = nil // the end comes with the last byte
		}
		body, err = readWhole(resp.Body, resp.ContentLength, limit, stop)
	}
	if len(body) > limit {
		body, err = body[:limit], errTooLarge
	}
	return bytes.TrimPrefix(body, []byte("\ufeff")), err
}

// unpack bounds what it reads as well: what is packed can be endless and empty.
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

// readWhole reads to the end, or beyond the limit: over HTTP/2, a body that is
// closed before its end costs the service a RST_STREAM. length is what was
// announced, or -1. It is believed where the end does not come, but not where more
// comes: a transport that has unpacked the body may have left it as it was. stop ends
// the wait for an end that is late; nil: it comes with the last byte.
func readWhole(r io.Reader, length int64, limit int, stop func()) ([]byte, error) {
	size := int64(512)
	if length > 0 && length <= int64(limit) {
		size = length + 1
	}
	body := make([]byte, 0, size)
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
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
