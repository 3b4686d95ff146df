package exchange

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/internal/roundtrip"
)

// until is a body that sends nothing, and breaks off when its context ends.
type until struct{ context.Context }

func (u until) Read([]byte) (int, error) {
	<-u.Done()
	return 0, io.ErrUnexpectedEOF
}

// silent is a body that gives neither bytes nor its end for a number of reads.
type silent int

func (s *silent) Read([]byte) (int, error) {
	if *s--; *s < 0 {
		return 0, io.EOF
	}
	return 0, nil
}

func packed(text string) string {
	var packed strings.Builder
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return packed.String()
}

// TestBodyIsReadToItsEnd checks that the client reads a body to its end, even after the
// announced length, because some services count a stream that is closed earlier as abuse. It
// reads nothing beyond the bounds on compressed and decompressed bytes, and does not rely on
// a length that a transport has left when it decompressed the body. The fault matrix of the
// client has bodies that break off.
func TestBodyIsReadToItsEnd(t *testing.T) {
	const text = `{"ok":true}`
	bound := strings.Repeat(" ", 1<<20)
	for name, tt := range map[string]struct {
		status       int // 0: 200
		length       int64
		coding, body string
		unpacked     bool // by the transport
		hangs        bool // after the body, until the request's context ends
		want         string
		err          error
		elapsed      time.Duration
	}{
		"unpacked, was longer":  {length: 5, body: text, want: text},
		"unpacked, was shorter": {length: 500, body: text, want: text},
		"unpacked, names gzip":  {length: -1, coding: "gzip", body: text, unpacked: true, want: text},
		"packed":                {length: 40, coding: "X-GZip", body: packed(text), want: text},
		"not packed":            {length: 40, coding: "gzip", body: text, err: gzip.ErrHeader},
		"packed, too much":      {length: -1, coding: "gzip", body: strings.Repeat(packed(""), 1<<17), err: errTooLarge},
		"unpacks to too much":   {length: -1, coding: "gzip", body: packed(bound + bound), hangs: true, want: bound, err: errTooLarge},
		"no end":                {length: int64(len(text)), body: text, hangs: true, want: text, elapsed: 5 * time.Second},
		"late end of an error":  {status: http.StatusNotFound, length: 500, body: text, hangs: true, want: text, err: errLate, elapsed: 5 * time.Second},
		"no end of an error":    {status: http.StatusNotFound, length: int64(len(text)), body: text, hangs: true, want: text, elapsed: 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var ctx context.Context
			begin := time.Now()
			sender := New(roundtrip.Func(func(req *http.Request) (*http.Response, error) {
				ctx = req.Context()
				body := io.Reader(strings.NewReader(tt.body))
				if tt.hangs {
					body = io.MultiReader(body, until{ctx})
				}
				return &http.Response{
					StatusCode: cmp.Or(tt.status, http.StatusOK), ContentLength: tt.length, Uncompressed: tt.unpacked,
					Header: http.Header{"Content-Encoding": {tt.coding}}, Body: io.NopCloser(body),
				}, nil
			}), nil)
			answer := sender.Send(t.Context(), Request{Method: http.MethodGet, URL: new(url.URL), Header: http.Header{}, Deadline: soon()})
			assert.Equal(t, tt.want, string(answer.Body), name)
			assert.Equal(t, tt.err, cmp.Or(answer.Err, answer.BodyErr), name)
			assert.Equal(t, tt.elapsed, time.Since(begin), name)
			assert.Error(t, ctx.Err(), "%s: the request is over", name)
		})
	}
	for reads, want := range map[silent]error{99: nil, 100: io.ErrNoProgress} {
		_, err := readWhole(&reads, -1, 10, nil)
		assert.Equal(t, want, err, "%d reads", reads)
	}
}

// Senders and connections are dropped once they are garbage.
func TestClientsOfATransportAndAServiceShareASender(t *testing.T) {
	transport, lone, base := NewTransport(), &http.Transport{DisableKeepAlives: true}, &url.URL{Scheme: "https", Host: "service.example"}
	sender, conn := New(transport, base), tls.Client(nil, nil)
	assert.Same(t, sender, New(transport, base.JoinPath("prefix")))
	assert.NotZero(t, sender.queue.pending.Load(), "the first request takes a turn")
	sender.queue.enter(t.Context())
	sender.queue.leave(true)
	assert.Zero(t, sender.queue.pending.Load(), "after the first turn, requests skip the queue")
	assert.NotSame(t, sender, New(transport, &url.URL{Scheme: "https", Host: "other.example"}))
	assert.NotSame(t, sender, New(NewTransport(), base))
	assert.Same(t, New(nil, base), New(nil, base))
	assert.NotSame(t, New(http.DefaultTransport, base), New(nil, base), "the default may change")
	assert.NotSame(t, New(lone, base), New(lone, base), "several synctest bubbles may use it at once")

	assert.Same(t, new(dialQueue).add(conn), new(dialQueue).add(conn), "Senders may share a connection")
	key := weak.Make(conn)
	assert.Eventually(t, func() bool {
		runtime.GC()
		_, known := connections.Load(key)
		senders.Range(func(_, _ any) bool { known = true; return false })
		return !known
	}, 20*time.Second, time.Millisecond)
}

// The request ends before its turn comes or, in every second round, at the same moment.
// Then select chooses at random.
func TestRequestThatEndsInTheQueueHoldsUpNoOther(t *testing.T) {
	for i := range 40 {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithTimeout(t.Context(), time.Hour)
			queue := &dialQueue{untried: true}
			queue.pending.Store(1)
			queue.enter(t.Context())
			go func() {
				if queue.enter(ctx) {
					queue.leave(false)
				}
			}()
			synctest.Wait()
			if end(); i%2 == 0 {
				synctest.Wait()
			}
			queue.leave(false)
			synctest.Wait()
			queue.add(tls.Client(nil, nil))
			<-time.After(firstAnswerWait)
			synctest.Wait()
			assert.Zero(t, queue.pending.Load())
		})
	}
}

// TestMayBeSent checks which facts and errors prove that the service cannot have processed
// the request. A row names only the facts that decide, and the errors after which the service
// may have processed it.
func TestMayBeSent(t *testing.T) {
	type errs []error
	read, canceled, timeout := error(&net.OpError{Op: "read", Err: io.EOF}), context.Canceled, os.ErrDeadlineExceeded
	all := errs{read, errDial, canceled, timeout, errGoAway, errGoAwayWords, errFirstAway, errCertificate, errAlert}
	for _, tt := range []struct {
		known facts
		sent  errs
	}{
		{facts{}, errs{read, canceled, timeout, errGoAway, errGoAwayWords, errFirstAway}},
		{facts{ended: true}, all},
		{facts{hasBody: true}, nil},
		{facts{isHTTPTransport: true}, errs{read, canceled, timeout, errGoAway, errGoAwayWords, errFirstAway}}, // by RegisterProtocol it may have another transport, which runs no hooks
		{facts{bodyReadEarly: true, lookedForConn: true}, nil},
		{facts{bodyReadEarly: true, lookedForConn: true, hasBody: true}, all},
		{facts{connected: true}, errs{read, errDial, canceled, timeout, errGoAway, errGoAwayWords, errFirstAway}},
		{facts{connected: true, isHTTPTransport: true}, errs{canceled, timeout}},
		{facts{connected: true, isHTTPTransport: true, ended: true}, all},
		{facts{connected: true, rejection: noFirstAnswer, ended: true}, nil},
		{facts{headers: 1}, errs{read, errDial, canceled, timeout, errGoAway, errGoAwayWords, errFirstAway, errCertificate}},
		{facts{headers: 1, http2: true, reused: true}, errs{read, errDial, canceled, timeout, errGoAwayWords, errFirstAway, errCertificate, errAlert}},
		{facts{headers: 1, http2: true, ended: true}, all},
		{facts{headers: 1, http2: true, answers: 1}, all},
		{facts{headers: 1, http2: true, interim: 1}, all},
		{facts{headers: 2, http2: true}, errs{read, errDial, canceled, timeout, errGoAway, errGoAwayWords, errFirstAway, errCertificate}},
	} {
		for _, err := range all {
			assert.Equal(t, slices.Contains(tt.sent, err), tt.known.maybeSent(err), "%+v: %v", tt.known, err)
		}
	}
}

// sending is a transport on its way through a request.
type sending struct {
	req   *http.Request
	hooks *httptrace.ClientTrace
	// Connections: two with HTTP/2, of which the second was not used before, and one with HTTP/1,
	// without and with TLS.
	http2, other, plain, tls net.Conn
	err                      error // of a hook
}

// An act is one thing that a transport does with a request.
type act func(*sending)

func (s *sending) got(conn net.Conn) {
	s.hooks.GotConn(httptrace.GotConnInfo{Conn: conn, Reused: conn != s.other})
}

var (
	readsBody act = func(s *sending) { _, _ = io.ReadAll(s.req.Body) }
	looks     act = func(s *sending) { s.hooks.GetConn("") }
	getsHTTP2 act = func(s *sending) { s.got(s.http2) }
	getsOther act = func(s *sending) { s.got(s.other) }
	getsPlain act = func(s *sending) { s.got(s.plain) }
	getsTLS   act = func(s *sending) { s.got(s.tls) }
	writes    act = func(s *sending) { s.hooks.WroteHeaders() }
	getsByte  act = func(s *sending) { s.hooks.GotFirstResponseByte() }
	gets1xx   act = func(s *sending) {
		for range 1000 { // as many as the client takes
			s.err = errors.Join(s.err, s.hooks.Got1xxResponse(http.StatusProcessing, nil))
		}
		s.err = cmp.Or(s.err, s.hooks.Got1xxResponse(http.StatusProcessing, nil))
	}
	waits act = func(s *sending) { <-s.req.Context().Done() }
)

// failures are failures whose moment the fault matrix of the client cannot choose. Only what
// cannot have reached the service counts as not sent.
var failures = map[string]struct {
	method string // "": GET, or POST with a body
	body   string
	// The Sender knows that its transport is net/http's, which may use HTTP/2 without TLS, or has run a hook before.
	own, mayShare, ranHooks bool
	does                    []act  // what the transport does before it fails
	err                     error  // of the transport
	missed                  Missed // 0: Broken
	sent                    bool
	instead                 error // what Answer.Err is, if not err
	tries                   int   // 0: one
	closes                  bool  // the client closes the connection
}{
	"turned away by a service that never answered": {does: []act{looks, getsHTTP2, writes}, err: errGoAway, instead: errGoAwayWords},
	"another service turned a request away":        {does: []act{looks, getsOther, writes}, err: fmt.Errorf("upstream: %w", errFirstAway), sent: true},
	"the service demands a certificate":            {body: "x", does: []act{looks, getsOther, writes, readsBody}, err: errAlert, missed: Denied},
	"another alert":                                {does: []act{looks, getsOther, writes}, err: errOtherAlert, sent: true},
	"the words of an alert, not the alert":         {does: []act{looks, getsHTTP2, writes}, err: errAlertWords, sent: true},
	"another service refused a stream":             {does: []act{looks, getsHTTP2, writes}, err: errUpstreamRefusal, sent: true},
	"the stream was reset, not refused":            {does: []act{looks, getsHTTP2, writes}, err: errStreamCancelled, sent: true},

	"1xx without end": {does: []act{looks, getsHTTP2, writes, gets1xx}, err: io.EOF, sent: true, instead: errTooManyInterim},

	"no room, finds another connection": {does: []act{looks, getsHTTP2, getsOther}, missed: NoAnswer, instead: errCrowded, tries: 50},
	"no room, gives up":                 {does: []act{looks, getsHTTP2}, err: errGaveUp, instead: errCrowded, tries: 50},
	"no room, writes all the same":      {does: []act{looks, getsHTTP2, looks, writes}, missed: NoAnswer, instead: context.Canceled, sent: true},

	// A connection for a repeat is closed, because net/http may write to it even after the
	// try has ended. A connection for the first request, or for another after an answer, is
	// not closed. Nor is one that may be HTTP/2 without TLS, which other requests share.
	"repeats after an answer":  {does: []act{getsTLS, writes, getsByte, getsTLS}, err: io.EOF, sent: true},
	"repeats, with one answer": {does: []act{getsTLS, writes, writes, getsByte, getsTLS}, sent: true, instead: errNoAnswer, closes: true},
	"repeats on HTTP/2":        {does: []act{looks, getsHTTP2, writes, getsHTTP2}, sent: true, instead: errNoAnswer},
	"repeats without TLS":      {own: true, does: []act{getsPlain, writes, getsPlain}, sent: true, instead: errNoAnswer, closes: true},
	"repeats, perhaps HTTP/2":  {does: []act{getsPlain, writes, getsPlain}, sent: true, instead: errNoAnswer},
	"repeats HTTP/2":           {own: true, mayShare: true, does: []act{getsPlain, writes, getsPlain}, sent: true, instead: errNoAnswer},

	// A transport may have sent a body that it has read by another protocol, which runs no
	// hooks, and looked for a connection after that.
	"a dial of net/http in place of another": {body: "x", own: true, does: []act{looks, getsTLS, looks}, err: os.ErrDeadlineExceeded, missed: NoAnswer},
	"no room, read before":                   {body: "x", does: []act{readsBody, looks, getsHTTP2}, err: io.EOF, sent: true},
	"no room, looks again, read before":      {body: "x", does: []act{readsBody, looks, getsHTTP2, looks}, err: io.EOF, sent: true},
	"no room elsewhere, read before":         {body: "x", does: []act{readsBody, looks, getsHTTP2, getsOther}, err: io.EOF, sent: true},
	"no dial of a POST without a body":       {method: "POST", err: errDial, sent: true},
	"refused by the transport, ended":        {body: "x", does: []act{waits}, missed: NoAnswer, instead: context.DeadlineExceeded},
	"a proxy, read before":                   {body: "x", does: []act{readsBody, looks}, err: proxyDenial{io.EOF}, sent: true},
	"gives up, read before":                  {body: "x", does: []act{readsBody, looks, getsHTTP2}, err: errGaveUp, sent: true},
	"a connection that another looked for":   {body: "x", own: true, ranHooks: true, does: []act{getsHTTP2}, err: io.EOF},
	"registered, for some requests":          {body: "x", own: true, ranHooks: true, err: errDial, sent: true},
	"its Proxy fails":                        {body: "x", own: true, ranHooks: true, err: errProxy},
	"another service, and a TLS handshake":   {err: errNotTLS, sent: true, instead: http.ErrSchemeMismatch},
}

func TestFailures(t *testing.T) {
	for name, tt := range failures {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			go io.Copy(io.Discard, far)
			defer near.Close()
			s := sending{http2: tls.Client(nil, nil), other: tls.Client(nil, nil), plain: near, tls: tls.Client(near, new(tls.Config))}
			var tried []*http.Request
			transport := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
				tried = append(tried, req)
				s.req, s.hooks, s.err = req, httptrace.ContextClientTrace(req.Context()), nil
				for _, act := range tt.does {
					act(&s)
				}
				return nil, cmp.Or(s.err, tt.err, req.Context().Err())
			})
			sender := New(transport, nil)
			own := &http.Transport{Protocols: new(http.Protocols), Proxy: func(*http.Request) (*url.URL, error) { return nil, errProxy }}
			own.RegisterProtocol("other", transport)
			own.Protocols.SetUnencryptedHTTP2(tt.mayShare)
			if tt.own {
				sender.transport = own
			}
			sender.runsHooks.Store(tt.ranHooks)
			connections.Store(weak.Make(s.http2.(*tls.Conn)), newConnection())
			connections.Store(weak.Make(s.other.(*tls.Conn)), newConnection())
			r := Request{Method: cmp.Or(tt.method, "GET"), URL: &url.URL{Scheme: "other"}, Header: http.Header{}, Deadline: soon()}
			if tt.body != "" {
				r.Method, r.Body = "POST", []byte(tt.body)
			}
			answer := sender.Send(t.Context(), r)
			want := Answer{Err: cmp.Or(tt.instead, tt.err), Missed: cmp.Or(tt.missed, Broken), Sent: tt.sent, OtherConnection: tt.tries > 1}
			assert.Equal(t, want, answer, name)
			assert.Len(t, tried, max(1, tt.tries), name)
			_, closed := near.Write([]byte("x"))
			assert.Equal(t, tt.closes, closed != nil, "%s: the connection is closed", name)
			if body, seen := tried[0].Body.(requestBody); seen && !answer.Sent {
				_, err := io.ReadAll(body)
				assert.Error(t, err, "%s: nobody can send it later", name)
			}
		})
	}
}

// A try may be refused again, by a hook that runs late.
func TestFirstRefusalCounts(t *testing.T) {
	rt := &roundTrip{sender: new(Sender), ctx: t.Context(), stop: func() {}}
	rt.refuse(noRoom)
	rt.refuse(noFirstAnswer)
	assert.Equal(t, noRoom, rt.known.rejection)
}

var (
	errGoAway      = errors.New(notRepeated + errGoAwayWords.Error())
	errFirstAway   = errors.New("http2: Transport received GOAWAY from server ErrCode:INTERNAL_ERROR") // of net/http for the first stream only
	errGoAwayWords = errors.New("http2: Transport received Server's graceful shutdown GOAWAY")
	errAlert       = &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}
	errCertificate = &tls.CertificateVerificationError{Err: io.EOF}
	errDial        = &net.OpError{Op: "dial", Err: io.EOF}
	errProxy       = errors.New("no proxy")
	errGaveUp      = errors.New("net/http: cannot rewind body after connection loss")
	errNotTLS      = tls.RecordHeaderError{RecordHeader: [5]byte([]byte("HTTP/"))}

	errOtherAlert      = &net.OpError{Op: "remote error", Err: io.EOF}
	errAlertWords      = &net.OpError{Op: "read", Err: errAlert.Err}
	errUpstreamRefusal = errors.New("upstream: stream error: stream ID 1; REFUSED_STREAM; x")
	errStreamCancelled = errors.New("stream error: stream ID 1; CANCEL; received from peer")
)

func soon() time.Time { return time.Now().Add(time.Minute) }

// TestOwnTransport checks that the default transport closes idle connections before common
// front ends do, and notices a dead path over HTTP/2.
func TestOwnTransport(t *testing.T) {
	own := NewTransport()
	assert.Equal(t, 50*time.Second, own.IdleConnTimeout)
	assert.True(t, own.Proxy != nil && own.ForceAttemptHTTP2, "its own dialer would turn HTTP/2 off")
	assert.Equal(t, http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}, *own.HTTP2)
	assert.EqualValues(t, 256<<10, own.MaxResponseHeaderBytes)
	assert.Equal(t, 256, own.MaxIdleConnsPerHost, "the default of 2 would end the connections of callers in parallel")
}

// The error has no password. net/http's own error would be the status text, such as "Proxy
// Authentication Required", as if it came from the service.
func TestErrorNamesAProxyThatRefusesConnect(t *testing.T) {
	for status, missed := range map[int]Missed{200: Broken, 407: Denied, 429: Denied, 502: Broken} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		host := strings.TrimPrefix(proxy.URL, "http://")
		own := NewTransport()
		own.Proxy = http.ProxyURL(&url.URL{Scheme: "http", User: url.UserPassword("user", "canary"), Host: host})
		service := &url.URL{Scheme: "https", Host: "service.example"}
		answer := New(own, service).Send(t.Context(), Request{Method: http.MethodPost, URL: service, Header: http.Header{}, Deadline: soon()})
		proxy.Close()
		words := fmt.Sprintf("the proxy %s answered CONNECT with %d %s", host, status, http.StatusText(status))
		assert.Equal(t, status != 200, answer.Err.Error() == words, answer.Err)
		assert.False(t, answer.Sent)
		assert.Equal(t, missed, answer.Missed, status)
	}
}
