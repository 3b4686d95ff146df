package exchange

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
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

// answering is a transport that answers with a body of the request's context.
type answering struct {
	http.Response
	body func(context.Context) io.Reader
	ctx  context.Context
}

func (a *answering) RoundTrip(req *http.Request) (*http.Response, error) {
	a.ctx = req.Context()
	a.Body = io.NopCloser(a.body(a.ctx))
	return &a.Response, nil
}

// until is the rest of a body that does not come before its context ends.
type until struct{ context.Context }

func (u until) Read([]byte) (int, error) {
	<-u.Done()
	return 0, io.ErrUnexpectedEOF
}

func packed(text string) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return buf.Bytes()
}

// TestBodies of successes are read to their end, or to the bounds on what comes and on
// what it unpacks to. A length that a transport has left when it unpacked the body is
// not believed. The fault matrix of the client has bodies that are cut.
func TestBodies(t *testing.T) {
	const text = `{"ok":true}`
	fixed := func(r io.Reader) func(context.Context) io.Reader { return func(context.Context) io.Reader { return r } }
	plain := func(s string) func(context.Context) io.Reader { return fixed(strings.NewReader(s)) }
	hanging := func(ctx context.Context) io.Reader { return io.MultiReader(strings.NewReader(text), until{ctx}) }
	for name, tt := range map[string]struct {
		length  int64
		coding  string
		body    func(context.Context) io.Reader
		want    string
		err     error
		elapsed time.Duration
	}{
		"no length":             {-1, "", plain(text), text, nil, 0},
		"unpacked, was longer":  {5, "", plain(text), text, nil, 0},
		"unpacked, was shorter": {500, "", plain(text), text, nil, 0},
		"packed":                {40, "gzip", fixed(bytes.NewReader(packed(text))), text, nil, 0},
		"not packed":            {40, "gzip", plain(text), "", gzip.ErrHeader, 0},
		"packed, too much":      {-1, "gzip", fixed(bytes.NewReader(bytes.Repeat(packed(""), 1<<17))), "", errTooLarge, 0},
		"unpacks to too much":   {-1, "gzip", fixed(bytes.NewReader(packed(strings.Repeat(" ", 1<<21)))), strings.Repeat(" ", 1<<20), errTooLarge, 0},
		"no end":                {int64(len(text)), "", hanging, text, nil, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			resp := &answering{Response: http.Response{StatusCode: http.StatusOK, ContentLength: tt.length, Header: http.Header{"Content-Encoding": {tt.coding}}}, body: tt.body}
			answer := New(resp).Send(t.Context(), Request{Method: http.MethodGet, URL: &url.URL{}, Deadline: begin.Add(time.Minute)})
			assert.Equal(t, tt.want, string(answer.Body), name)
			assert.Equal(t, tt.err, answer.Err, name)
			assert.Equal(t, tt.elapsed, time.Since(begin), name)
			assert.Error(t, resp.ctx.Err(), "%s: the request is over", name)
		})
	}
}

// TestConnectionForARepeat is closed before net/http can write to it, which it
// may do though the attempt has ended. One for the first try, or for another
// after an answer, is left alone.
func TestConnectionForARepeat(t *testing.T) {
	for _, tt := range []struct {
		headers, answers int32
		repeat           bool
	}{{0, 0, false}, {1, 0, true}, {1, 1, false}, {2, 1, true}} {
		stopped := 0
		trace := &trace{sender: New(nil), stop: func() { stopped++ }}
		trace.headers.Store(tt.headers)
		trace.answers.Store(tt.answers)
		client, service := net.Pipe()
		go io.Copy(io.Discard, service)
		trace.gotConn(httptrace.GotConnInfo{Conn: client, Reused: true})
		_, err := client.Write([]byte("x"))
		assert.Equal(t, tt.repeat, err != nil, "%+v: closed", tt)
		assert.Equal(t, tt.repeat, stopped == 1, "%+v: the attempt was ended", tt)
		assert.Equal(t, tt.repeat, !trace.reused.Load(), "%+v: nor does it count as the one that was used", tt)
		client.Close()
	}
}

// TestAnotherConnection: where the first one did not take the request, the try ends
// when net/http has found another without asking.
func TestAnotherConnection(t *testing.T) {
	stopped := false
	trace := &trace{sender: New(nil), ctx: t.Context(), stop: func() { stopped = true }}
	trace.useHTTP2(newConnection())
	assert.False(t, stopped)
	trace.useHTTP2(newConnection())
	assert.True(t, stopped)
	answer, why := trace.failed(nil, context.Canceled)
	assert.Equal(t, Answer{Err: errCrowded, Missed: Broken, Renewed: true}, answer)
	assert.Equal(t, full, why)
}

// crowded is a transport whose one connection has no room.
type crowded struct {
	conn  *tls.Conn
	tries int
}

func (c *crowded) RoundTrip(req *http.Request) (*http.Response, error) {
	c.tries++
	hooks := httptrace.ContextClientTrace(req.Context())
	hooks.GetConn("")
	hooks.GotConn(httptrace.GotConnInfo{Conn: c.conn})
	return nil, errors.New("net/http: cannot rewind body after connection loss")
}

// TestTriesAreBounded: a request looks fifty times for a connection with room.
func TestTriesAreBounded(t *testing.T) {
	transport := &crowded{conn: tls.Client(nil, nil)}
	sender := New(transport)
	sender.connections.known = map[weak.Pointer[tls.Conn]]*connection{weak.Make(transport.conn): newConnection()}
	answer := sender.Send(t.Context(), Request{Method: http.MethodGet, URL: new(url.URL), Deadline: soon()})
	assert.Equal(t, Answer{Err: errCrowded, Missed: Broken, Renewed: true}, answer)
	assert.Equal(t, 50, transport.tries)
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

// TestReason says what happened where net/http's words do not.
func TestReason(t *testing.T) {
	plain := tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake", RecordHeader: [5]byte([]byte("HTTP/"))}
	assert.Equal(t, http.ErrSchemeMismatch, new(trace).reason(plain))
}

// TestMaybeSent has what the fault matrix of the client cannot time: only what cannot
// have reached the service was not sent.
func TestMaybeSent(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name           string
		headers, hints int32
		ctx            context.Context
		err            error
		want           bool
	}{
		{"ended while the header was written", 0, 0, over, io.EOF, true},
		{"timed out while the header was written", 0, 0, t.Context(), os.ErrDeadlineExceeded, true},
		{"reset before the header", 0, 0, t.Context(), io.EOF, false},
		{"turned away after a 1xx", 1, 1, t.Context(), errGoAway, true},
		{"turned away, after another try", 2, 0, t.Context(), errGoAway, true},
	} {
		trace := &trace{ctx: tt.ctx}
		trace.started.Store(true)
		trace.connected.Store(true)
		trace.headers.Store(tt.headers)
		trace.hints.Store(tt.hints)
		assert.Equal(t, tt.want, trace.maybeSent(nil, tt.err), tt.name)
	}
	assert.False(t, (&trace{ctx: t.Context()}).maybeSent(&http.Transport{}, io.EOF), "net/http runs the hooks")
}

// TestHintsAreBounded: a thousand 1xx may come before the answer.
func TestHintsAreBounded(t *testing.T) {
	for hints, want := range map[int]error{1000: nil, 1001: errTooManyHints} {
		trace, got := new(trace), error(nil)
		for range hints {
			got = trace.got1xx(http.StatusProcessing, nil)
		}
		assert.Equal(t, want, got, "%d hints", hints)
	}
}

var errGoAway = errors.New("http2: Transport received GOAWAY from server ErrCode:NO_ERROR")

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
