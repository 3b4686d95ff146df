package agentmessaging_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// The fault matrix: every endpoint against every way for a connection to go
// wrong, once over real TCP and once over an in-memory connection in virtual
// time. Both must end alike; docs/faults.md states how.

// peer is the service's end of a connection that goes wrong.
type peer struct {
	net.Conn
	requests *atomic.Int32 // whole request headers read
	reset    func()        // close it so that the client gets ECONNRESET
}

// readHeader reads a request's header, and nothing behind it if the client
// has not yet sent more.
func (p peer) readHeader() (*http.Request, error) {
	req, err := http.ReadRequest(bufio.NewReader(p.Conn))
	if err == nil {
		p.requests.Add(1)
	}
	return req, err
}

func (p peer) readRequest() error {
	req, err := p.readHeader()
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return err
}

// connectionFault is one row of the matrix.
type connectionFault struct {
	name  string
	dial  error            // instead of a connection
	tls   bool             // the client speaks TLS
	http2 bool             // and trusts the certificate, so that serve speaks HTTP/2
	proxy bool             // through a proxy, by CONNECT
	serve func(peer) error // what the service does on each connection
	// deadline is the caller's, 0 for none.
	deadline time.Duration
}

const okBody = anyReply

func respond(header, body string) func(peer) error {
	return func(p peer) error {
		if err := p.readRequest(); err != nil {
			return err
		}
		_, err := io.WriteString(p, "HTTP/1.1 "+header+"\r\n\r\n"+body)
		return err
	}
}

func thenReset(before func(peer) error) func(peer) error {
	return func(p peer) error {
		err := before(p)
		p.reset()
		return err
	}
}

func thenStall(before func(peer) error) func(peer) error {
	return func(p peer) error {
		if err := before(p); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, p) // until the client goes
		return err
	}
}

var length = fmt.Sprintf("Content-Length: %d", len(okBody))

var connectionFaults = []connectionFault{
	{name: "connection refused", dial: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}},
	{name: "name not found", dial: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "service.example", IsNotFound: true}}},
	{name: "TLS handshake fails", tls: true, serve: func(p peer) error {
		_, _ = p.Read(make([]byte, 64<<10))
		_, err := io.WriteString(p, "220 mail.example ESMTP\r\n")
		return err
	}},
	{name: "certificate refused", tls: true, serve: serveTLS},
	{name: "reset on accept", serve: thenReset(func(peer) error { return nil })},
	{name: "reset after the request's header", serve: thenReset(func(p peer) error { _, err := p.readHeader(); return err })},
	{name: "reset after the request", serve: thenReset(peer.readRequest)},
	{name: "closed after the request", serve: peer.readRequest},
	{name: "closed inside the answer's header", serve: respond("200 OK\r\nContent-Le", "")},
	{name: "closed inside the answer's body", serve: respond("200 OK\r\n"+length, okBody[:20])},
	{name: "reset inside the answer's body", serve: thenReset(respond("200 OK\r\n"+length, okBody[:20]))},
	{name: "Content-Length too large", serve: respond("200 OK\r\nContent-Length: 100000", okBody)},
	{name: "Content-Length too small", serve: respond("200 OK\r\nContent-Length: 20", okBody)},
	{name: "Content-Length not a number", serve: respond("200 OK\r\nContent-Length: x", okBody)},
	{name: "broken chunk", serve: respond("200 OK\r\nTransfer-Encoding: chunked", "zz\r\n"+okBody)},
	{name: "closed between chunks", serve: respond("200 OK\r\nTransfer-Encoding: chunked", "5\r\n{\"ok\"\r\n")},
	{name: "not HTTP", serve: respond("\x00\x01", "")},
	{name: "header without end", serve: respond("200 OK\r\nX: "+strings.Repeat("x", 1<<20), "")},
	{name: "body without end", serve: endless("200 OK")},
	{name: "error body without end", serve: endless("404 Not Found")},
	{name: "300 MiB packed into 300 KB", serve: zipBomb},
	{name: "no answer until the deadline", serve: thenStall(peer.readRequest), deadline: 10 * time.Second},
	{name: "no body until the deadline", serve: thenStall(respond("200 OK\r\n"+length, okBody[:20])), deadline: 10 * time.Second},
	{name: "error without body until the deadline", serve: thenStall(respond("404 Not Found\r\nContent-Length: 50", "{")), deadline: 10 * time.Second},
	{name: "packed error without body", serve: thenStall(respond("404 Not Found\r\nContent-Encoding: gzip\r\nContent-Length: 50", "")), deadline: 10 * time.Second},
	{name: "answer byte by byte", serve: drip},
	{name: "1xx before the answer", serve: respond("103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n"+length, okBody)},
	{name: "protocol switch", serve: thenStall(respond("101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x", ""))},
	{name: "closed without Content-Length", serve: respond("200 OK\r\nConnection: close", okBody)},
}

// serveTLS shakes hands with a certificate that nobody trusts.
func serveTLS(p peer) error {
	conn := tls.Server(p.Conn, &tls.Config{Certificates: []tls.Certificate{untrusted()}})
	return conn.Handshake()
}

// untrusted is httptest's certificate, which only httptest's clients trust.
var untrusted = sync.OnceValue(func() tls.Certificate {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return server.TLS.Certificates[0]
})

func endless(status string) func(peer) error {
	return func(p peer) error {
		if err := respond(status+"\r\nTransfer-Encoding: chunked", "")(p); err != nil {
			return err
		}
		chunk := []byte("10000\r\n" + strings.Repeat(" ", 0x10000) + "\r\n")
		for {
			if _, err := p.Write(chunk); err != nil {
				return err
			}
		}
	}
}

// packed is 300 MiB of spaces as gzip.
var packed = sync.OnceValue(func() []byte {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	for range 300 {
		zip.Write(bytes.Repeat([]byte(" "), 1<<20))
	}
	zip.Close()
	return buf.Bytes()
})

func zipBomb(p peer) error {
	return respond(fmt.Sprintf("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d", len(packed())), string(packed()))(p)
}

func drip(p peer) error {
	if err := p.readRequest(); err != nil {
		return err
	}
	answer := "HTTP/1.1 200 OK\r\n" + length + "\r\n\r\n" + okBody
	for i := range len(answer) {
		if _, err := io.WriteString(p, answer[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// nineCalls are the endpoints, in the order of interface section 4.
var nineCalls = []struct {
	method, name string
	do           func(context.Context, *agentmessaging.Client) error
}{
	{"GET", "Status", func(ctx context.Context, c *agentmessaging.Client) error { _, err := c.Status(ctx); return err }},
	{"POST", "WarmUp", func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.WarmUp(ctx, "hosted")
		return err
	}},
	{"GET", "GetBYOK", func(ctx context.Context, c *agentmessaging.Client) error { _, err := c.GetBYOK(ctx); return err }},
	{"PUT", "SetBYOK", func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.SetBYOK(ctx, setBYOK{Provider: "openai", APIKey: "provider-canary"})
		return err
	}},
	{"DELETE", "ClearBYOK", func(ctx context.Context, c *agentmessaging.Client) error { return c.ClearBYOK(ctx) }},
	{"POST", "CreateAgent", func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.CreateAgent(ctx, create{SystemPrompt: "prompt-canary"})
		return err
	}},
	{"GET", "GetAgent", get},
	{"POST", "SendMessage", func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.SendMessage(ctx, "agent_1", message{Text: "message-canary"})
		return err
	}},
	{"POST", "EnableSMS", func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.EnableSMS(ctx, "agent_1", "sandbox")
		return err
	}},
}

// cell is what came of one call.
type cell struct {
	requests int
	outcome  string
	elapsed  time.Duration // virtual time only
}

func (c cell) String() string {
	count := fmt.Sprintf("%d requests", c.requests)
	if c.requests == 1 {
		count = "1 request"
	}
	return fmt.Sprintf("%s, %s, %s", count, c.outcome, c.elapsed)
}

// poolGuard is the caller's transport; closing its idle connections is not
// the client's business.
type poolGuard struct {
	http.RoundTripper
	closed atomic.Int32
}

func (g *poolGuard) CloseIdleConnections() { g.closed.Add(1) }

// run makes one call over connections that dial makes.
func (f connectionFault) run(t *testing.T, do func(context.Context, *agentmessaging.Client) error, retry agentmessaging.RetryPolicy,
	connect func() (client net.Conn, service peer)) cell {
	t.Helper()
	requests := new(atomic.Int32)
	// A connection for each attempt: whether one that brought more than it
	// announced is noticed before it is used again is a race. TestWarmConnection
	// has the others.
	transport := &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 256 << 10, ForceAttemptHTTP2: true}
	if f.http2 {
		transport.TLSClientConfig = &tls.Config{RootCAs: trusted(), ServerName: "example.com"}
	}
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		if f.dial != nil {
			return nil, f.dial
		}
		client, service := connect()
		t.Cleanup(func() { client.Close() }) // net/http may dial for a request that has ended meanwhile
		service.requests = requests
		go func() {
			if !f.proxy || answerConnect(service) == nil {
				_ = f.serve(service)
			}
			_ = service.Close()
		}()
		return client, nil
	}
	if f.proxy {
		transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.example:3128"})
	}
	guard := &poolGuard{RoundTripper: transport}
	baseURL := "http://127.0.0.1:1"
	if f.tls {
		baseURL = "https://service.example:1"
	}
	client, err := agentmessaging.NewClient(baseURL, testKey, agentmessaging.WithHTTPClient(&http.Client{Transport: guard}),
		agentmessaging.WithRetry(retry), agentmessaging.WithRandom(func() float64 { return 0 }))
	require.NoError(t, err)
	var info agentmessaging.CallInfo
	ctx := agentmessaging.WithCallInfo(t.Context(), &info)
	if f.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.deadline)
		defer cancel()
	}
	begin := time.Now()
	err = do(ctx, client)
	assert.LessOrEqual(t, int(requests.Load()), info.Attempts, "%s: what is sent is an attempt", f.name)
	elapsed := time.Since(begin)
	transport.CloseIdleConnections()
	assert.Zero(t, guard.closed.Load(), "the caller's pool is left alone")
	holdsLaws(t, err, "canary")
	return cell{int(requests.Load()), describe(err), elapsed}
}

// holdsLaws checks what is true of every failure; secret is what none shows.
func holdsLaws(t *testing.T, err error, secret string) {
	t.Helper()
	if err == nil {
		return
	}
	var (
		failure *agentmessaging.Error
		unknown *agentmessaging.OutcomeUnknownError
		invalid *agentmessaging.ValidationError
	)
	assert.True(t, errors.As(err, &failure) || errors.As(err, &unknown) || errors.As(err, &invalid), "%T", err)
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		assert.LessOrEqual(t, len(text), 512)
		assert.NotContains(t, text, "\n")
		assert.NotContains(t, text, secret)
	}
}

// describe names an error by type, status and kind.
func describe(err error) string {
	var (
		failure *agentmessaging.Error
		unknown *agentmessaging.OutcomeUnknownError
	)
	switch {
	case err == nil:
		return "success"
	case errors.As(err, &unknown):
		return "outcome unknown"
	case errors.As(err, &failure) && failure.StatusCode != 0:
		return fmt.Sprintf("error %d", failure.StatusCode)
	}
	return "error without status"
}

// overTCP connects two ends of a loopback connection.
func overTCP(t *testing.T) func() (net.Conn, peer) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	var mu sync.Mutex // so that both ends are of one connection
	return func() (net.Conn, peer) {
		mu.Lock()
		defer mu.Unlock()
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			return closedPipe()
		}
		service, err := listener.Accept()
		if err != nil {
			_ = client.Close()
			return closedPipe()
		}
		return client, peer{Conn: service, reset: func() {
			service.(*net.TCPConn).SetLinger(0)
			service.Close()
		}}
	}
}

// closedPipe is for a spare connection that net/http makes after a test.
func closedPipe() (net.Conn, peer) {
	client, service := net.Pipe()
	_ = client.Close()
	return client, peer{Conn: service, reset: func() { _ = service.Close() }}
}

// resettable is a client's end of a net.Pipe that can be reset.
type resettable struct {
	net.Conn
	wasReset atomic.Bool
}

func (c *resettable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.wrap("read", err)
}

func (c *resettable) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.wrap("write", err)
}

func (c *resettable) wrap(op string, err error) error {
	if err != nil && c.wasReset.Load() {
		return &net.OpError{Op: op, Net: "pipe", Err: syscall.ECONNRESET}
	}
	return err
}

func overPipe() (net.Conn, peer) {
	client, service := net.Pipe()
	end := &resettable{Conn: client}
	return end, peer{Conn: service, reset: func() {
		end.wasReset.Store(true)
		service.Close()
	}}
}

// eitherWay is what becomes of a POST where the client may notice the failure
// before or after it has written the request's header: both are right.
const eitherWay = "0 requests, tried again or outcome unknown"

// TestFaultMatrix runs every endpoint against every connection fault, one of
// each column over both networks, and holds docs/faults.md to what came of it.
func TestFaultMatrix(t *testing.T) {
	log.SetOutput(io.Discard) // net/http tells of answers that are longer than announced
	defer log.SetOutput(os.Stderr)
	page := newPage("How an attempt goes wrong", "GET, PUT, DELETE", "POST")
	for _, fault := range connectionFaults {
		var row [2]string
		for _, call := range nineCalls {
			column := columnOf(call.method)
			virtual, real := fault.everywhere(t, call.do, row[column] == "")
			if fault.name == "reset on accept" && column == 1 {
				assert.Zero(t, virtual.requests+real.requests)
				row[column] = eitherWay
				continue
			}
			assert.LessOrEqual(t, virtual.requests*column, 1, "%s, %s: a POST is never doubled", call.name, fault.name)
			if row[column] == "" {
				row[column] = virtual.String()
			}
			assert.Equal(t, row[column], virtual.String(), "%s, %s: the endpoints differ", call.name, fault.name)
			real.elapsed = virtual.elapsed
			assert.Equal(t, virtual, real, "%s, %s: the networks differ", call.name, fault.name)
		}
		page.row(fault.name, row[0], row[1])
	}
	page.hold(t, "connections")
}

// columnOf is 1 for the methods that are not idempotent.
func columnOf(method string) int {
	if method == http.MethodPost {
		return 1
	}
	return 0
}

// everywhere makes the call in memory and, where that is asked for, over TCP.
func (f connectionFault) everywhere(t *testing.T, do func(context.Context, *agentmessaging.Client) error, tcp bool) (virtual, real cell) {
	synctest.Test(t, func(t *testing.T) {
		virtual = f.run(t, do, agentmessaging.RetryPolicy{}, overPipe)
	})
	if !tcp || f.deadline != 0 || f.dial != nil {
		return virtual, virtual // no socket is involved, or nothing but the clock
	}
	return virtual, f.run(t, do, agentmessaging.RetryPolicy{MinWait: time.Microsecond}, overTCP(t))
}

// TestMemoryIsBounded: a body that unpacks without end costs a call little,
// all its attempts together.
func TestMemoryIsBounded(t *testing.T) {
	for _, fault := range connectionFaults {
		endless := strings.Contains(fault.name, "without end") || strings.Contains(fault.name, "packed")
		if !endless || fault.deadline > 0 { // with a deadline nothing comes to be unpacked
			continue
		}
		packed()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		fault.run(t, get, agentmessaging.RetryPolicy{MinWait: time.Microsecond}, overTCP(t))
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), fault.name)
	}
}
