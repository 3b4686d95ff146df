package agentmessaging_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/roundtrip"
)

// This file tests transports: the caller's, as tests and gateways have them, and net/http's
// over HTTP/1.1 and HTTP/2.

// A RoundTripper must not change its request, but some do. The next attempt begins with a
// fresh request, and with the cookies of the http.Client that was given.
func TestTransportThatRewritesItsRequest(t *testing.T) {
	var came []string
	service := answering(answer{Status: 503}, with(503, "Set-Cookie", "node=7; Path=/"), okAnswer)
	transport := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		came = append(came, strings.Join([]string{req.Method, req.Host, req.URL.Path, req.Header.Get("Authorization"), req.Header.Get("Cookie")}, " "))
		ctx, cancel := context.WithTimeout(req.Context(), time.Minute)
		defer cancel()
		*req = *req.WithContext(ctx)
		req.URL.Path = "/prefix" + req.URL.Path
		req.Host, req.Method = "other.example", http.MethodHead
		req.Header["Authorization"][0] = "masked"
		return service.RoundTrip(req)
	})
	jar := must(cookiejar.New(nil))
	jar.SetCookies(must(url.Parse(serviceURL)), []*http.Cookie{{Name: "gateway", Value: "blue"}})
	hc := &http.Client{Transport: transport, Jar: jar}
	client := clientAt(serviceURL, agentmessaging.WithRetry(policy{MinWait: time.Microsecond}), agentmessaging.WithHTTPClient(hc))
	hc.Jar = nil // the client has a copy
	require.NoError(t, get(t.Context(), client))
	const whole = "GET service.example /v1/agents/agent_1 Bearer " + testKey + " gateway=blue"
	assert.Equal(t, []string{whole, whole, whole + "; node=7"}, came)
}

func TestNilTransportIsTheDefaultOfThatMoment(t *testing.T) {
	standard := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = standard })
	client := clientAt(serviceURL, agentmessaging.WithHTTPClient(http.DefaultClient))
	for i := range 2 {
		replaced := answering(okAnswer)
		http.DefaultTransport = replaced
		assert.NoError(t, get(t.Context(), client), "call %d", i+1)
		assert.Len(t, replaced.Sent(), 1, "call %d", i+1)
	}
}

// TestWarmConnection checks that a connection is kept after a refusal, because the body is
// read to its end. On a connection that was used before, net/http would repeat a GET by
// itself. Here only the retry policy does.
func TestWarmConnection(t *testing.T) {
	refuse := respond("429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 2", "{}")
	thenCloses := func(p peer) error {
		return errors.Join(refuse(p), respond("200 OK\r\n"+length, anyReply)(p), p.readRequest())
	}
	for baseURL, serve := range map[string]func(peer) error{
		"http://127.0.0.1:1": thenCloses,
		"https://example.com:1": func(p peer) error {
			p.Conn = tls.Server(p.Conn, &tls.Config{Certificates: secure().TLS.Certificates})
			return thenCloses(p)
		},
	} {
		for _, attempts := range []int{1, 3} {
			synctest.Test(t, func(t *testing.T) {
				var requests, dials atomic.Int32
				connect := func() (client, service net.Conn) {
					dials.Add(1)
					return net.Pipe()
				}
				client := clientAt(baseURL, through(dialsTo(t, &requests, connect, serve)))
				require.NoError(t, post(t.Context(), client), baseURL)
				assert.EqualValues(t, 1, dials.Load(), "connections")

				client, err := client.With(agentmessaging.WithRetry(policy{MaxAttempts: attempts}))
				require.NoError(t, err, baseURL)
				var info agentmessaging.CallInfo
				err = get(agentmessaging.WithCallInfo(t.Context(), &info), client)
				if assert.Equal(t, attempts == 3, err == nil, err); err != nil {
					assert.ErrorContains(t, err, "ended without an answer", baseURL)
				}
				assert.EqualValues(t, 2+info.Attempts, requests.Load(), "what was sent is an attempt")
			})
		}
	}
}

// TestRecycledConnections checks that no call fails or waits because a service replaces its
// connections now and then, not even a call that tries once: a request that a closing
// connection did not take is sent again.
func TestRecycledConnections(t *testing.T) {
	const calls, callers, each = 480, 8, 60
	overHTTP2Server(t, 0, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n%each == 0 {
			w.Header().Set("Connection", "close") // GOAWAY
		}
	}, func(t *testing.T, server *memoryServer, client *agentmessaging.Client) {
		var made atomic.Int64
		together(callers, func(caller int) {
			do := []doCall{get, post}[caller%2]
			for made.Add(1) <= calls {
				var info agentmessaging.CallInfo
				assert.NoError(t, do(agentmessaging.WithCallInfo(t.Context(), &info), client), "caller %d", caller)
				assert.LessOrEqual(t, info.Attempts, 3, "attempts, of one allowed and two renewals")
				assert.Zero(t, info.Waited, "a wait before the renewal")
			}
		})
		assert.EqualValues(t, calls, server.requests.Load(), "none was carried out twice")
	})
}

// together runs a function for several callers at once, and waits for all.
func together(callers int, do func(caller int)) {
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() { do(caller) })
	}
	group.Wait()
}

// TestRenewals checks when a request that a connection did not process is sent again at
// once, without counting as an attempt: if that connection has answered before, and at most
// twice in a call; not if the service has never answered. A stream that is refused on a
// connection which stays open is an ordinary failure. A spare connection that net/http may
// have dialed for a GET counts as an old one: see TestRecycledConnections.
func TestRenewals(t *testing.T) {
	works, away, refused := reply(200, anyReply), goAwayBelow(noError), reset(refusedStream)
	for _, tt := range []struct {
		do       doCall
		attempts int      // of the policy
		acts     []act    // one for each request; the last one repeats
		want     []string // of one call after the other
	}{
		{post, 1, []act{works, away}, []string{success, "2 requests, no answer", noAnswer}},
		{post, 1, []act{away}, []string{noAnswer, noAnswer, noAnswer}},
		{post, 1, []act{works, refused}, []string{success, unknown, unknown}},
		{get, 2, []act{works, refused, works}, []string{success, "2 requests, success, 500ms"}},
		{get, 2, []act{works, away, refused, works}, []string{success, "3 requests, success, 500ms"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			requests := new(atomic.Int32)
			next := func(h *http2Peer) error { return tt.acts[min(int(requests.Load()), len(tt.acts))-1](h) }
			policy := agentmessaging.WithRetry(policy{MaxAttempts: tt.attempts})
			client := newClient(t, dialsTo(t, requests, net.Pipe, overHTTP2(forever(request, next))), policy, jitter(0))
			for i, want := range tt.want {
				var info agentmessaging.CallInfo
				before, began := requests.Load(), time.Now()
				err := tt.do(agentmessaging.WithCallInfo(t.Context(), &info), client)
				sent := int(requests.Load() - before)
				assert.Equal(t, want, cell{sent, outcome(err), time.Since(began)}.String(), "call %d: %v", i+1, err)
				assert.Equal(t, sent, info.Attempts, "call %d", i+1)
				assert.LessOrEqual(t, sent-info.Renewals, tt.attempts, "call %d", i+1)
				client, err = client.With() // it shares the Sender, which knows that the service has answered
				assert.NoError(t, err, "call %d", i+1)
			}
		})
	}
}

// No HTTP/2 connection ever takes the request.
func TestRenewalsAreBounded(t *testing.T) {
	near, far := net.Pipe()
	go tls.Server(far, secure().TLS).Handshake()
	conn := tls.Client(near, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	require.NoError(t, conn.Handshake())
	full := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		hooks := httptrace.ContextClientTrace(req.Context())
		hooks.GetConn("")
		hooks.GotConn(httptrace.GotConnInfo{Conn: conn})
		hooks.GetConn("") // net/http looks for another connection
		return nil, req.Context().Err()
	})
	var info agentmessaging.CallInfo
	err := post(agentmessaging.WithCallInfo(t.Context(), &info), newClient(t, full, once))
	assert.Equal(t, noAnswer, outcome(err), "%v", err)
	assert.Equal(t, 2, info.Renewals)
	assert.Equal(t, 3, info.Attempts)
}

// memoryServer is net/http's own server over HTTP/2, on connections in memory.
type memoryServer struct {
	http.Server
	transport       *http.Transport
	dials, requests atomic.Int32
}

// overHTTP2Server runs a test with a server and a client that tries once. The server allows
// a number of streams on a connection (0: net/http's default), calls handle with the
// number of each request, and then answers with success.
func overHTTP2Server(
	t *testing.T, streams int, handle func(n int, w http.ResponseWriter, r *http.Request),
	test func(*testing.T, *memoryServer, *agentmessaging.Client),
) {
	if strings.HasPrefix(runtime.Version(), "go1.25") {
		t.Skip("servers of net/http in Go 1.25 share channels, which no two bubbles may")
	}
	synctest.Test(t, func(t *testing.T) {
		s := new(memoryServer)
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handle(int(s.requests.Add(1)), w, r)
			io.WriteString(w, anyReply)
		})
		s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
		s.TLSConfig = secure().TLS.Clone()
		s.ErrorLog = log.New(io.Discard, "", 0)
		dialed := make(pipes)
		go func() { _ = s.ServeTLS(dialed, "", "") }()
		s.transport = trusting()
		s.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			s.dials.Add(1)
			near, far := net.Pipe()
			dialed <- far
			return near, nil
		}
		defer time.Sleep(time.Second) // virtual: lets reads that are under way end
		defer s.Close()
		defer s.transport.CloseIdleConnections()
		test(t, s, newClient(t, s.transport, once))
	})
}

// slowReads lets the server finish all that it can before the client reads what it wrote:
// otherwise net/http's server may count a stream as open although its answer has arrived.
type slowReads struct{ net.Conn }

func (c slowReads) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	time.Sleep(time.Nanosecond) // virtual time passes only when all other goroutines wait
	return n, err
}

// pipes is a listener that accepts the service's ends of pipes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return new(net.UnixAddr) }

// The service allows few streams on a connection. The clients do not dial for each call
// either, though each caller has a client.
func TestBurstOfFirstCallsIsNotRefused(t *testing.T) {
	const work, callers = 100 * time.Millisecond, 50
	for _, tt := range []struct {
		do                   doCall
		streams, connections int
		within               time.Duration
	}{{post, 1, callers, 50 * work}, {get, 4, 25, 25 * work}, {post, 10, 15, 15 * work}, {get, 100, 1, 2 * work}, {post, 100, 1, 2 * work}} {
		overHTTP2Server(t, tt.streams, func(int, http.ResponseWriter, *http.Request) {
			time.Sleep(work)
		}, func(t *testing.T, server *memoryServer, _ *agentmessaging.Client) {
			dial := server.transport.DialContext
			server.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				return slowReads{conn}, err
			}
			begin := time.Now()
			together(callers, func(int) {
				assert.NoError(t, tt.do(t.Context(), newClient(t, server.transport, once)), "%d streams", tt.streams)
			})
			assert.LessOrEqual(t, time.Since(begin), tt.within+time.Millisecond, "%d streams", tt.streams)
			assert.LessOrEqual(t, int(server.dials.Load()), tt.connections, "connections for %d streams", tt.streams)
		})
	}
}

// Other calls wait for the first answer on a connection, for at most 2 s and at most half of the
// time to their deadline. A POST whose caller leaves meanwhile was certainly not sent. If the
// first call ends without an answer, the next takes its place.
func TestSlowFirstAnswer(t *testing.T) {
	came := make(chan time.Time, 10)
	overHTTP2Server(t, 0, func(_ int, _ http.ResponseWriter, r *http.Request) {
		came <- time.Now()
		<-r.Context().Done()
	}, func(t *testing.T, server *memoryServer, client *agentmessaging.Client) {
		begin, group := time.Now(), sync.WaitGroup{}
		leaves, leave := context.WithCancel(t.Context())
		for _, deadline := range []time.Duration{time.Second, time.Minute, 1800 * time.Millisecond, time.Minute} {
			group.Go(func() { assert.Equal(t, unknown, outcome(within(deadline, post)(t.Context(), client)), deadline) })
			synctest.Wait()
		}
		time.AfterFunc(800*time.Millisecond, leave)
		assert.Equal(t, noAnswer, outcome(post(leaves, client)))
		group.Wait()
		require.EqualValues(t, 4, server.requests.Load(), "requests")
		assert.EqualValues(t, 1, server.dials.Load(), "connections")
		for _, after := range []time.Duration{0, 900 * time.Millisecond, time.Second, 2 * time.Second} {
			assert.Equal(t, after, (<-came).Sub(begin), "request after %v", after)
		}
	})
}

// TestFailingDials checks that callers take turns only if they may share a connection, and wait
// for a turn at most half of the time to their deadline.
func TestFailingDials(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{time.Second: 2 * time.Second, 10 * time.Second: 12 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var dials atomic.Int32
			client := newClient(t, &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				dials.Add(1)
				time.Sleep(takes)
				return nil, io.ErrUnexpectedEOF
			}}, once)
			begin, patient := time.Now(), sync.WaitGroup{}
			patient.Go(func() { together(20, func(int) { assert.Error(t, get(t.Context(), client), takes) }) })
			synctest.Wait()
			assert.Equal(t, noAnswer, outcome(within(time.Second/2, post)(t.Context(), client)), "it was not sent")
			assert.Equal(t, time.Second/2, time.Since(begin), "in the queue, a deadline counts")
			assert.EqualValues(t, 2, dials.Load(), "after half of its time it dialed")
			patient.Wait()
			assert.Equal(t, want, time.Since(begin), "dials that take %v", takes)
		})
	}
}

// http2Peer is the service's end of an HTTP/2 connection, frame by frame (RFC
// 9113), since net/http's own server never misbehaves.
type http2Peer struct {
	peer
	conn    *tls.Conn
	headers chan uint32 // streams whose request has begun; closed when the client has gone
	whole   chan uint32 // streams whose request has come whole
	stream  uint32      // of the last request that was read
}

// The types of the frames that the peer writes or reads.
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway = 0, 1, 3, 4, 7

	flagEndStream, flagEndHeaders = 1, 4

	noError, protocolError, internalError, refusedStream, cancelled = 0, 1, 2, 7, 8
)

// act is what the service does next on a connection. An error ends the connection.
type act func(*http2Peer) error

// overHTTP2 does the TLS handshake, exchanges SETTINGS and runs the acts.
func overHTTP2(acts ...act) func(peer) error {
	return func(p peer) error {
		h := &http2Peer{peer: p, headers: make(chan uint32, 100), whole: make(chan uint32, 100)}
		h.conn = tls.Server(p.Conn, secure().TLS)
		if _, err := io.CopyN(io.Discard, h.conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return err
		}
		go h.receive() // concurrently, because both ends of a pipe may want to write
		if err := h.write(frameSettings, 0, 0, nil); err != nil {
			return err
		}
		return script(acts...)(h)
	}
}

func script(acts ...act) act {
	return func(h *http2Peer) error {
		for _, do := range acts {
			if err := do(h); err != nil {
				return err
			}
		}
		return nil
	}
}

// forever repeats an act until the client closes the connection.
func forever(acts ...act) act {
	return func(h *http2Peer) error {
		for {
			if err := script(acts...)(h); err != nil {
				return err
			}
		}
	}
}

func (h *http2Peer) write(kind, flags byte, stream uint32, payload []byte) error {
	frame := append([]byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags},
		binary.BigEndian.AppendUint32(nil, stream)...)
	_, err := h.conn.Write(append(frame, payload...))
	return err
}

// receive reads what the client sends. It does not acknowledge settings, because on a pipe
// both ends could wait for each other; net/http does not need the acknowledgement.
func (h *http2Peer) receive() {
	defer close(h.headers)
	defer close(h.whole)
	reader, header := bufio.NewReader(h.conn), make([]byte, 9)
	for {
		if _, err := io.ReadFull(reader, header); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, reader, int64(header[0])<<16|int64(header[1])<<8|int64(header[2])); err != nil {
			return
		}
		kind, flags, stream := header[3], header[4], binary.BigEndian.Uint32(header[5:])
		if kind == frameHeaders {
			h.headers <- stream
		}
		if kind <= frameHeaders && flags&flagEndStream != 0 {
			h.whole <- stream
		}
	}
}

// header waits for the header of a request.
func header(h *http2Peer) error {
	stream, ok := <-h.headers
	if !ok {
		return io.EOF
	}
	h.requests.Add(1)
	h.stream = stream
	return nil
}

// request waits for a whole request.
func request(h *http2Peer) error {
	if err := header(h); err != nil {
		return err
	}
	if _, ok := <-h.whole; !ok {
		return io.EOF
	}
	return nil
}

// keepOpen keeps the connection open until the client closes it.
func keepOpen(h *http2Peer) error {
	for range h.headers {
	}
	return io.EOF
}

func closed(h *http2Peer) error { return h.conn.Close() }

func reset(code uint32) act {
	return func(h *http2Peer) error {
		return h.write(frameReset, 0, h.stream, binary.BigEndian.AppendUint32(nil, code))
	}
}

// goAway sends a GOAWAY that names the request's stream as the last that the service
// processes. That of goAwayBelow names the stream before.
func goAway(h *http2Peer) error { return h.goAway(h.stream, noError) }

func goAwayBelow(code uint32) act {
	return func(h *http2Peer) error { return h.goAway(max(h.stream, 2)-2, code) }
}

func (h *http2Peer) goAway(last, code uint32) error {
	return h.write(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code))
}

// status sends an answer's header: a status, and pairs of a name and a value.
func status(code int, pairs ...string) act {
	return func(h *http2Peer) error {
		return h.write(frameHeaders, flagEndHeaders, h.stream, fields(code, pairs...))
	}
}

// fields encodes a status and pairs as HPACK literals.
func fields(code int, pairs ...string) []byte {
	block := append([]byte{0x08, 3}, fmt.Sprintf("%03d", code)...) // 8 is :status in the static table
	for i, text := range pairs {
		if i%2 == 0 {
			block = append(block, 0)
		}
		block = append(append(block, byte(len(text))), text...)
	}
	return block
}

func body(text string, flags byte) act {
	return func(h *http2Peer) error { return h.write(frameData, flags, h.stream, []byte(text)) }
}

// reply sends a whole answer.
func reply(code int, text string) act { return script(status(code), body(text, flagEndStream)) }
