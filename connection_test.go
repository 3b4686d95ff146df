package agentmessaging_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// quick keeps waits on real sockets too short to notice.
var quick = agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: time.Microsecond})

// listen serves every connection with serve and counts the request headers
// that arrive whole.
func listen(t *testing.T, serve func(conn net.Conn)) (address string, requests *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	requests = new(atomic.Int32)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if serve == nil {
					conn.(*net.TCPConn).SetLinger(0)
					return
				}
				for reader := bufio.NewReader(conn); ; {
					req, err := http.ReadRequest(reader)
					if err != nil {
						return
					}
					io.Copy(io.Discard, req.Body)
					requests.Add(1)
					serve(conn)
				}
			}()
		}
	}()
	return listener.Addr().String(), requests
}

func connect(t *testing.T, baseURL string, opts ...agentmessaging.Option) *agentmessaging.Client {
	t.Helper()
	client, err := agentmessaging.NewClient(baseURL, testKey, append([]agentmessaging.Option{quick}, opts...)...)
	require.NoError(t, err)
	return client
}

// TestTimeoutOfTheHTTPClientBoundsOneAttempt in virtual time.
func TestTimeoutOfTheHTTPClientBoundsOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := answer{before: func(req *http.Request) { <-req.Context().Done() }, err: context.DeadlineExceeded}
		transport := &stub{answers: []answer{hang}}
		client, err := agentmessaging.NewClient(testURL, testKey,
			agentmessaging.WithHTTPClient(&http.Client{Transport: transport, Timeout: 10 * time.Second}),
			agentmessaging.WithRandom(func() float64 { return 0 }))
		require.NoError(t, err)
		begin := time.Now()
		err = get(t.Context(), client)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Len(t, transport.sent(), 3)
		assert.Equal(t, 31500*time.Millisecond, time.Since(begin))
		assert.Equal(t, wantUnknown, outcomeOf(t, post(t.Context(), client)))
		assert.Len(t, transport.sent(), 4)
	})
}

// TestCancelWhileConnected: the request may be on its way, so that the outcome
// of a POST is unknown.
func TestCancelWhileConnected(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address, requests := listen(t, func(conn net.Conn) { cancel(); io.Copy(io.Discard, conn) })
	err := post(ctx, connect(t, "http://"+address))
	assert.Equal(t, wantUnknown, outcomeOf(t, err))
	assert.ErrorIs(t, err, context.Canceled)
	assert.EqualValues(t, 1, requests.Load())
}

func TestCookieJarIsUsed(t *testing.T) {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	service, _ := url.Parse(testURL)
	jar.SetCookies(service, []*http.Cookie{{Name: "gateway", Value: "blue"}})
	transport := &stub{answers: []answer{{status: 503}, {err: dialError}, {status: 200, body: anyReply}}}
	client, err := agentmessaging.NewClient(testURL, testKey, quick, agentmessaging.WithHTTPClient(&http.Client{Transport: transport, Jar: jar}))
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, get(t.Context(), client))
	}
	for _, sent := range transport.sent() {
		assert.Equal(t, []string{"gateway=blue"}, sent.Header["Cookie"], "once, whatever the attempt")
	}
}

func TestOneConnectionIsKeptAcrossRefusals(t *testing.T) {
	var connections atomic.Int32
	n := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n%3 != 0 {
			w.Header().Set("Retry-After", "0.001")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"error":"rate_limited"}`)
			return
		}
		io.WriteString(w, anyReply)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	// The fake's Sleep takes no time; the cool-down's line waits by real time.
	client := connect(t, server.URL, agentmessaging.WithClock(fakeserver.New(t)), agentmessaging.WithoutCoolDown())
	for range 4 {
		require.NoError(t, post(t.Context(), client))
	}
	assert.EqualValues(t, 1, connections.Load())
}

// hooked runs the trace hooks up to the connection, and fails there.
type hooked struct {
	err    error
	before func()
}

func (h hooked) RoundTrip(req *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(req.Context())
	trace.GetConn(req.URL.Host)
	trace.GotConn(httptrace.GotConnInfo{})
	if h.before != nil {
		h.before()
	}
	return nil, h.err
}

// TestFailureBetweenConnectionAndHeader: certain not to be sent, unless the
// failure is a cancellation that the writing may have overtaken.
func TestFailureBetweenConnectionAndHeader(t *testing.T) {
	var info agentmessaging.CallInfo
	ctx := agentmessaging.WithCallInfo(t.Context(), &info)
	assert.Equal(t, wantError, outcomeOf(t, post(ctx, newClient(t, hooked{err: io.ErrClosedPipe}, quick))))
	assert.Equal(t, 3, info.Attempts)
	assert.Equal(t, wantUnknown, outcomeOf(t, post(ctx, newClient(t, hooked{err: context.Canceled}, quick))))
	assert.Equal(t, wantUnknown, outcomeOf(t, post(ctx, newClient(t, hooked{err: os.ErrDeadlineExceeded}, quick))))
	assert.Equal(t, 1, info.Attempts)
	ctx, cancel := context.WithCancel(t.Context())
	assert.Equal(t, wantUnknown, outcomeOf(t, post(ctx, newClient(t, hooked{err: io.ErrClosedPipe, before: cancel}, quick))))
}

// TestFailureBeforeTheConnection: net/http's own transport runs its hooks, so
// that none means that nothing was sent; of another transport, none means
// nothing.
func TestFailureBeforeTheConnection(t *testing.T) {
	noProxy := errors.New("no proxy today")
	transport := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, noProxy }}
	var info agentmessaging.CallInfo
	ctx := agentmessaging.WithCallInfo(t.Context(), &info)
	err := post(ctx, newClient(t, transport, quick))
	assert.Equal(t, wantError, outcomeOf(t, err))
	assert.ErrorIs(t, err, noProxy)
	assert.Equal(t, 3, info.Attempts)
	assert.Equal(t, wantUnknown, outcomeOf(t, post(ctx, newClient(t, &stub{answers: []answer{{err: noProxy}}}, quick))))
}

// careless is a transport as tests have them.
type careless struct {
	resp *http.Response
	err  error
}

func (c careless) RoundTrip(*http.Request) (*http.Response, error) { return c.resp, c.err }

type closeCounter struct {
	io.Reader
	closed int
}

func (c *closeCounter) Close() error {
	c.closed++
	return nil
}

func TestCarelessTransports(t *testing.T) {
	var failure *agentmessaging.Error
	err := get(t.Context(), newClient(t, careless{resp: &http.Response{StatusCode: 401}}))
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, 401, failure.StatusCode)
	assert.Equal(t, wantUnknown, outcomeOf(t, post(t.Context(), newClient(t, careless{}))))
	body := &closeCounter{Reader: strings.NewReader("{}")}
	err = post(t.Context(), newClient(t, careless{&http.Response{StatusCode: 200, Body: body}, io.ErrUnexpectedEOF}))
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, 1, body.closed)
}

// TestWarmConnection: on connections that were used before, net/http would send
// a GET again on its own; here it is the retry policy that does, or nobody.
func TestWarmConnection(t *testing.T) {
	for _, attempts := range []int{1, 3} {
		assert.Equal(t, attempts == 1, warmThenBroken(t, attempts, false) != nil)
		assert.Equal(t, attempts == 1, warmThenBroken(t, attempts, true) != nil)
	}
}

// warmThenBroken opens three connections, and breaks one under a GET.
func warmThenBroken(t *testing.T, attempts int, secure bool) error {
	const warm = 3
	var (
		requests atomic.Int32
		together sync.WaitGroup
	)
	together.Add(warm)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch n := requests.Add(1); {
		case n <= warm:
			together.Done()
			together.Wait()
		case n == warm+1:
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, anyReply)
	}))
	defer server.Close()
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	policy := agentmessaging.RetryPolicy{MaxAttempts: attempts, MinWait: time.Microsecond}
	client := connect(t, server.URL, agentmessaging.WithHTTPClient(server.Client()), agentmessaging.WithRetry(policy))
	var group sync.WaitGroup
	for range warm {
		group.Go(func() { assert.NoError(t, get(t.Context(), client)) })
	}
	group.Wait()
	var info agentmessaging.CallInfo
	err := get(agentmessaging.WithCallInfo(t.Context(), &info), client)
	assert.EqualValues(t, info.Attempts, requests.Load()-warm, "what was sent is what is told")
	return err
}

// TestGetHasNoBody: what keeps net/http from repeating a GET does not show on
// the wire.
func TestGetHasNoBody(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			assert.Empty(t, body)
			assert.Empty(t, r.TransferEncoding)
			assert.Equal(t, r.Method == http.MethodPost, r.Header.Get("Content-Length") == "0")
			assert.Equal(t, http2, r.ProtoMajor == 2)
			io.WriteString(w, anyReply)
		}))
		server.EnableHTTP2 = http2
		server.StartTLS()
		client := connect(t, server.URL, agentmessaging.WithHTTPClient(server.Client()))
		require.NoError(t, get(t.Context(), client))
		require.NoError(t, client.ClearBYOK(t.Context()))
		_, err := client.WarmUp(t.Context(), "")
		require.NoError(t, err)
		server.Close()
	}
}
