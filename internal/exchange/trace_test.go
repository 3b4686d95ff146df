package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
)

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

// TestMaybeSent: only what cannot have reached the service was not sent.
func TestMaybeSent(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name               string
		started, connected bool
		headers, hints     int32
		ctx                context.Context
		err                error
		want               bool
	}{
		{"dialed in vain", true, false, 0, 0, t.Context(), refused, false},
		{"no connection in time", true, false, 0, 0, over, context.Canceled, false},
		{"connected, and ended while the header was written", true, true, 0, 0, over, io.EOF, true},
		{"connected, and timed out", true, true, 0, 0, t.Context(), os.ErrDeadlineExceeded, true},
		{"connected, and reset before the header", true, true, 0, 0, t.Context(), io.EOF, false},
		{"header written", true, true, 1, 0, t.Context(), refused, true},
		{"header written, and turned away", true, true, 1, 0, t.Context(), errGoAway, false},
		{"turned away after a 1xx", true, true, 1, 1, t.Context(), errGoAway, true},
		{"turned away, after another try", true, true, 2, 0, t.Context(), errGoAway, true},
		{"dialed in vain, without hooks", false, false, 0, 0, t.Context(), refused, false},
		{"a transport without hooks", false, false, 0, 0, t.Context(), io.EOF, true},
	} {
		trace := &trace{ctx: tt.ctx}
		trace.started.Store(tt.started)
		trace.connected.Store(tt.connected)
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
