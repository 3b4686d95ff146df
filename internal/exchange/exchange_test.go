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
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answering is a transport that answers with a body, which may have no end.
type answering struct {
	http.Response
	body  string
	hangs bool // after the body, until the request's context ends
	ctx   context.Context
}

func (a *answering) RoundTrip(req *http.Request) (*http.Response, error) {
	a.ctx = req.Context()
	a.Body = io.NopCloser(strings.NewReader(a.body))
	if a.hangs {
		a.Body = io.NopCloser(io.MultiReader(strings.NewReader(a.body), until{a.ctx}))
	}
	return &a.Response, nil
}

// until is the rest of a body that does not come before its context ends.
type until struct{ context.Context }

func (u until) Read([]byte) (int, error) {
	<-u.Done()
	return 0, io.ErrUnexpectedEOF
}

func packed(text string) string {
	var packed strings.Builder
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return packed.String()
}

// TestBodies are read to their end, which may come after the announced length: some
// services count a stream that is closed before as abuse. Nothing is read beyond the
// bounds on what comes and on what it unpacks to. A length that a transport has left when
// it unpacked the body is not believed. The fault matrix of the client has bodies that are cut.
func TestBodies(t *testing.T) {
	const text = `{"ok":true}`
	for name, tt := range map[string]struct {
		status       int // 0: 200
		length       int64
		coding, body string
		hangs        bool
		want         string
		err          error
		elapsed      time.Duration
	}{
		"no length":             {length: -1, body: text, want: text},
		"unpacked, was longer":  {length: 5, body: text, want: text},
		"unpacked, was shorter": {length: 500, body: text, want: text},
		"packed":                {length: 40, coding: "gzip", body: packed(text), want: text},
		"not packed":            {length: 40, coding: "gzip", body: text, err: gzip.ErrHeader},
		"packed, too much":      {length: -1, coding: "gzip", body: strings.Repeat(packed(""), 1<<17), err: errTooLarge},
		"unpacks to too much":   {length: -1, coding: "gzip", body: packed(strings.Repeat(" ", 1<<21)), hangs: true, want: strings.Repeat(" ", 1<<20), err: errTooLarge},
		"no end":                {length: int64(len(text)), body: text, hangs: true, want: text, elapsed: 5 * time.Second},
		"no end of an error":    {status: http.StatusNotFound, length: int64(len(text)), body: text, hangs: true, want: text, elapsed: 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin, transport := time.Now(), &answering{body: tt.body, hangs: tt.hangs}
			transport.Response = http.Response{StatusCode: cmp.Or(tt.status, http.StatusOK), ContentLength: tt.length, Header: http.Header{"Content-Encoding": {tt.coding}}}
			answer := send(t, New(transport))
			assert.Equal(t, tt.want, string(answer.Body), name)
			assert.Equal(t, tt.err, answer.Err, name)
			assert.Equal(t, tt.elapsed, time.Since(begin), name)
			assert.Error(t, transport.ctx.Err(), "%s: the request is over", name)
		})
	}
}

// send sends a request.
func send(t *testing.T, sender *Sender) Answer {
	return sender.Send(t.Context(), Request{Method: http.MethodGet, URL: new(url.URL), Header: http.Header{}, Deadline: soon()})
}

// TestConnectionForARepeat is closed before net/http can write to it, which it
// may do though the try has ended. One for the first try, or for another
// after an answer, is left alone.
func TestConnectionForARepeat(t *testing.T) {
	for _, tt := range []struct {
		headers, answers int
		repeat           bool
	}{{repeat: false}, {headers: 1, repeat: true}, {headers: 1, answers: 1}, {headers: 2, answers: 1, repeat: true}} {
		client, service := net.Pipe()
		go io.Copy(io.Discard, service)
		send(t, New(script(func(ctx context.Context, hooks *httptrace.ClientTrace) error {
			for range tt.headers {
				hooks.WroteHeaders()
			}
			for range tt.answers {
				hooks.GotFirstResponseByte()
			}
			hooks.GotConn(httptrace.GotConnInfo{Conn: client, Reused: true})
			_, err := client.Write([]byte("x"))
			assert.Equal(t, tt.repeat, err != nil, "%+v: closed", tt)
			assert.Equal(t, tt.repeat, ctx.Err() != nil, "%+v: the try was ended", tt)
			return io.EOF
		})))
		client.Close()
	}
}

// script is a transport that runs hooks as net/http does, and fails.
type script func(ctx context.Context, hooks *httptrace.ClientTrace) error

func (run script) RoundTrip(req *http.Request) (*http.Response, error) {
	return nil, run(req.Context(), httptrace.ContextClientTrace(req.Context()))
}

// TestTriesAreBounded: where a connection has no room, net/http looks for another one,
// finds another one without asking, or gives up. A request does so fifty times.
func TestTriesAreBounded(t *testing.T) {
	one, other := tls.Client(nil, nil), tls.Client(nil, nil)
	gaveUp := errors.New("net/http: cannot rewind body after connection loss")
	for name, next := range map[string]func(hooks *httptrace.ClientTrace) error{
		"looks": func(hooks *httptrace.ClientTrace) error { hooks.GetConn(""); return nil },
		"finds": func(hooks *httptrace.ClientTrace) error {
			hooks.GotConn(httptrace.GotConnInfo{Conn: other})
			return nil
		},
		"gives up": func(*httptrace.ClientTrace) error { return gaveUp },
	} {
		tries := 0
		sender := New(script(func(ctx context.Context, hooks *httptrace.ClientTrace) error {
			tries++
			hooks.GetConn("")
			hooks.GotConn(httptrace.GotConnInfo{Conn: one})
			return cmp.Or(next(hooks), ctx.Err(), io.EOF)
		}))
		sender.connections.known = map[weak.Pointer[tls.Conn]]*connection{weak.Make(one): newConnection(), weak.Make(other): newConnection()}
		answer := send(t, sender)
		assert.Equal(t, Answer{Err: errCrowded, Missed: answer.Missed, Renewed: true}, answer, name)
		assert.Equal(t, 50, tries, name)
	}
}

// TestConnectionsAreForgotten when net/http has let go of them.
func TestConnectionsAreForgotten(t *testing.T) {
	known := new(connections)
	for range 3 {
		known.addLocked(tls.Client(nil, nil))
		runtime.GC()
	}
	assert.Len(t, known.known, 1, "the last one is found dead when another one comes")
}

// failures are what the fault matrix of the client cannot time. Only what cannot have
// reached the service was not sent. A thousand 1xx may come before the answer.
var failures = map[string]struct {
	http1          bool
	headers, hints int  // what was written, and how many 1xx came
	answers        int  // that began
	waits          bool // until the deadline
	err            error
	missed         Missed
	sent           bool
	instead        error // of err
}{
	"reset, but the header may be on its way": {err: io.EOF, missed: Broken, sent: true},
	"timed out while the header was written":  {err: os.ErrDeadlineExceeded, missed: NoAnswer, sent: true},
	"turned away":                             {headers: 1, err: errGoAway, missed: Broken},
	"turned away after another try":           {headers: 2, err: errGoAway, missed: Broken, sent: true},
	"turned away after 1xx":                   {headers: 1, hints: 1000, err: errGoAway, missed: Broken, sent: true},
	"turned away after its answer began":      {headers: 1, answers: 1, err: errGoAway, missed: Broken, sent: true},
	"another service turned a request away":   {headers: 1, err: fmt.Errorf("upstream: %w", errGoAway), missed: Broken, sent: true},
	"HTTP/1.1 turns no request away":          {http1: true, headers: 1, err: errGoAway, missed: Broken, sent: true},
	"ended, by a request that was":            {headers: 1, waits: true, err: errGoAway, missed: NoAnswer, sent: true},
	"ended while the header was written":      {waits: true, err: &net.OpError{Op: "dial", Err: io.EOF}, missed: NoAnswer, sent: true},
	"ended, by a certificate":                 {headers: 1, waits: true, err: errAlert, missed: NoAnswer, sent: true},
	"the certificate of another connection":   {headers: 1, err: errCertificate, missed: Broken, sent: true},
	"the certificate of an audit afterwards":  {headers: 1, answers: 1, err: errAlert, missed: Broken, sent: true},
	"a certificate":                           {err: errCertificate, missed: Untrusted},
	"1xx without end":                         {headers: 1, hints: 1001, err: io.EOF, missed: Broken, sent: true, instead: errTooManyHints},
}

func TestFailures(t *testing.T) {
	for name, tt := range failures {
		synctest.Test(t, func(t *testing.T) {
			conn := tls.Client(nil, nil)
			sender := New(script(func(ctx context.Context, hooks *httptrace.ClientTrace) (err error) {
				hooks.GetConn("")
				if hooks.GotConn(httptrace.GotConnInfo{}); !tt.http1 {
					hooks.GotConn(httptrace.GotConnInfo{Conn: conn})
				}
				for range tt.headers {
					hooks.WroteHeaders()
				}
				for range tt.answers {
					hooks.GotFirstResponseByte()
				}
				for range tt.hints {
					err = hooks.Got1xxResponse(http.StatusProcessing, nil)
				}
				if tt.waits {
					<-ctx.Done()
				}
				return cmp.Or(err, tt.err)
			}))
			sender.connections.known = map[weak.Pointer[tls.Conn]]*connection{weak.Make(conn): newConnection()}
			answer := send(t, sender)
			assert.Equal(t, Answer{Err: cmp.Or(tt.instead, tt.err), Missed: tt.missed, Sent: tt.sent}, answer, name)
		})
	}
	plain := tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake", RecordHeader: [5]byte([]byte("HTTP/"))}
	answer := send(t, New(script(func(context.Context, *httptrace.ClientTrace) error { return plain })))
	assert.Equal(t, http.ErrSchemeMismatch, answer.Err)
	assert.True(t, answer.Sent, "the transport runs no hooks")
	assert.False(t, send(t, New(new(http.Transport))).Sent, "net/http runs them, and knows no such scheme")
}

var (
	errGoAway      = errors.New("http2: Transport received GOAWAY from server ErrCode:NO_ERROR")
	errAlert       = &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}
	errCertificate = &tls.CertificateVerificationError{Err: io.EOF}
)

func soon() time.Time { return time.Now().Add(time.Minute) }

// TestOwnTransport keeps idle connections as long as net/http's own, so that the
// next call after a pause pays no handshake, speaks HTTP/2, notices there when the
// path is dead, and bounds headers.
func TestOwnTransport(t *testing.T) {
	own := NewTransport()
	standard := http.DefaultTransport.(*http.Transport)
	assert.Equal(t, standard.IdleConnTimeout, own.IdleConnTimeout)
	assert.Equal(t, standard.ForceAttemptHTTP2, own.ForceAttemptHTTP2)
	assert.Equal(t, http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}, *own.HTTP2)
	assert.EqualValues(t, 256<<10, own.MaxResponseHeaderBytes)
	assert.Equal(t, 256, own.MaxIdleConns)
	assert.Equal(t, 256, own.MaxIdleConnsPerHost, "the default of 2 would end the connections of callers in parallel")
	assert.NotNil(t, own.Proxy)
}

// TestProxyThatRefuses to connect is named, without its password. net/http would
// quote its status text as if the service had said so.
func TestProxyThatRefuses(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	host := strings.TrimPrefix(proxy.URL, "http://")
	own := NewTransport()
	own.Proxy = http.ProxyURL(&url.URL{Scheme: "http", User: url.UserPassword("user", "canary"), Host: host})
	service, err := url.Parse("https://service.example/")
	require.NoError(t, err)
	answer := New(own).Send(t.Context(), Request{Method: http.MethodPost, URL: service, Header: http.Header{}, Deadline: soon()})
	assert.EqualError(t, answer.Err, "the proxy "+host+" answered CONNECT with 407 Proxy Authentication Required")
	assert.False(t, answer.Sent)
}
