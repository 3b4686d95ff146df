package agentmessaging_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
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
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
)

// A fault is a way in which a call goes wrong: a row of the matrix.
type fault struct {
	name        string
	fake        fakeserver.Fault // if set, the client is connected to a fake with this fault; otherwise:
	dial        error            // the dial fails with it
	tls         bool             // the client speaks TLS
	http2       bool             // and trusts the certificate: serve speaks HTTP/2
	serve       func(peer) error // what the service does on each connection
	deadline    time.Duration    // of the caller; 0: none
	repeatsPost bool             // the service says that it has not processed the request
	postVaries  bool             // the client may notice before or after it has written a POST's header
}

// methods are a GET, a PUT and a POST. For a fault, endpoints differ in nothing else: to
// net/http a DELETE is like a PUT, and TestAnswerMatrix shows that the client retries it
// like a GET.
var methods = slices.DeleteFunc(slices.Clone(endpoints), func(call endpoint) bool {
	return !slices.Contains([]string{"GetAgent", "SetBYOK", "SendMessage"}, call.name)
})

// TestFaultMatrix makes the calls over connections with each fault, and compares the
// outcomes with docs/faults.md.
func TestFaultMatrix(t *testing.T) {
	log.SetOutput(io.Discard) // net/http logs answers that are longer than announced
	defer log.SetOutput(os.Stderr)
	for table, faults := range map[string][]fault{"connections": http1Faults, "http2": http2Faults, "fake": fakeFaults} {
		page := page{{"How an attempt goes wrong", "GET, PUT, DELETE", "POST"}}
		for _, f := range faults {
			f.http2 = table == "http2"
			f.tls = f.tls || f.http2
			row := outcomesByMethod(t, f.name, methods, f.repeatsPost, func(call endpoint) (c cell) {
				synctest.Test(t, func(t *testing.T) { c = f.run(t, call) })
				return c
			})
			page.row(f.name, row[0], row[1])
		}
		page.check(t, table)
	}
}

// run makes one call.
func (f fault) run(t *testing.T, call endpoint) cell {
	t.Helper()
	client, requests := f.client(t)
	do := call.call
	if f.deadline > 0 {
		do = within(f.deadline, do)
	}
	var info agentmessaging.CallInfo
	begin := time.Now()
	err := do(agentmessaging.WithCallInfo(t.Context(), &info), client)
	c := cell{requests(), outcome(err), time.Since(begin)}
	time.Sleep(f.deadline) // for a service that sleeps
	assert.LessOrEqual(t, c.requests, info.Attempts, "%s: what is sent is an attempt", f.name)
	holdsLaws(t, err, "canary")
	if f.postVaries && call.isPost() {
		c.outcome, c.elapsed = eitherWay, 0
	}
	return c
}

// client returns a client that meets the fault, and a function that counts the requests
// that the service has read. The client makes a connection for each attempt, because
// otherwise it is a race whether net/http reuses a connection that has sent too much.
// TestWarmConnection covers reuse.
func (f fault) client(t *testing.T) (client *agentmessaging.Client, requests func() int) {
	if f.fake != (fakeserver.Fault{}) {
		fake := fakeserver.New(t, fakeserver.WithKey(testKey))
		fake.AddAgent(fake.Key(), fakeserver.Agent{ID: "agent_1"})
		fake.Inject(f.fake)
		client := clientAt(fake.BaseURL(), agentmessaging.WithHTTPClient(fake.HTTPClient(t)), jitter(0))
		return client, func() int { return len(fake.Calls()) }
	}
	read := new(atomic.Int32)
	transport := dialsTo(t, read, net.Pipe, f.serve)
	transport.DisableKeepAlives, transport.MaxResponseHeaderBytes = true, 256<<10
	if !f.http2 {
		transport.TLSClientConfig = nil // trusts only the machine's roots
	}
	if f.dial != nil {
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, f.dial }
	}
	baseURL := map[bool]string{false: "http://127.0.0.1:1", true: "https://service.example:1"}[f.tls]
	client = clientAt(baseURL, through(transport), jitter(0),
		agentmessaging.WithUserAgent(strings.Repeat("x", 5000))) // longer than net/http's buffer
	return client, func() int { return int(read.Load()) }
}

// trusting returns a transport that trusts the certificate and may speak HTTP/2.
func trusting() *http.Transport {
	transport := secure().Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.ServerName = "example.com"
	transport.TLSClientConfig.CurvePreferences = []tls.CurveID{tls.CurveP256} // the fastest
	return transport
}

// dialsTo returns a transport on whose connections serve acts as the service.
func dialsTo(t *testing.T, requests *atomic.Int32, connect func() (client, service net.Conn), serve func(peer) error) *http.Transport {
	t.Helper()
	transport := trusting()
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		client, service := connect()
		t.Cleanup(func() { client.Close() }) // net/http may dial for a request that has ended meanwhile
		go func() {
			_ = serve(peer{service, requests})
			_ = service.Close()
		}()
		return client, nil
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// The fault matrix, continued: answers that arrive whole, and contexts that end.

const otherJSON = `{"unknown":[1,2]}`

// TestAnswerMatrix answers every endpoint with each status and each body. For a range of
// statuses that are treated alike it uses the first and the last, in turn.
func TestAnswerMatrix(t *testing.T) {
	page := page{{"Status", "Body", "GET, PUT, DELETE", "POST"}}
	for _, statuses := range [][2]int{{200, 299}, {300, 428}, {429, 429}, {430, 499}, {500, 501}, {502, 504}, {505, 599}} {
		name := strings.TrimSuffix(fmt.Sprintf("%d to %d", statuses[0], statuses[1]), " to 429")
		var rows [][]string
		for _, b := range []struct{ name, body string }{
			{"documented", anyReply},
			{"other JSON", otherJSON},
			{"JSON array", `[1]`},
			{"HTML", "<html><body>gateway</body></html>"},
			{"empty", ""},
			{"broken JSON", anyReply[:len(anyReply)-3]},
			{"two documents", "{}{}"},
		} {
			found := afterAnswer(t, statuses, b.body)
			if n := len(rows) - 1; n >= 0 && slices.Equal(rows[n][2:], found[:]) {
				rows[n][1] += ", " + b.name
				continue
			}
			rows = append(rows, []string{name, b.name, found[0], found[1]})
		}
		if len(rows) == 1 {
			rows[0][1] = "any"
		}
		for _, row := range rows {
			page.row(row...)
		}
	}
	page.check(t, "answers")
}

// afterAnswer answers the endpoints with the first and the last of a range of statuses, in
// turn. It leaves the status out of the outcomes, because it names the row. TestCalls has
// the answers that do not confirm a SetBYOK or ClearBYOK.
func afterAnswer(t *testing.T, ends [2]int, body string) [2]string {
	calls, asked := 0, slices.DeleteFunc(slices.Clone(endpoints), func(call endpoint) bool {
		return ends[0] == http.StatusOK && body == otherJSON && (call.name == "SetBYOK" || call.name == "ClearBYOK")
	})
	return outcomesByMethod(t, fmt.Sprintf("%d with %.40q", ends, body), asked, ends[0] == http.StatusTooManyRequests, func(call endpoint) cell {
		status := ends[calls%2]
		calls++
		c, _ := answered(t, answer{Status: status, Body: body}, call.call)
		c.outcome = strings.TrimSuffix(c.outcome, fmt.Sprintf(" %d", status))
		return c
	})
}

func TestRetryAfterMatrix(t *testing.T) {
	const date = "Sun, 06 Nov 1994 08:49:00 GMT"
	page := page{{"`Retry-After`", "What happens", "`RetryAfter` if a deadline comes first"}}
	for _, value := range []string{
		"30", "0.25", "1.5", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
		"Sun, 06 Nov 1994 08:48:00 GMT", "Sun, 13 Nov 1994 08:49:00 GMT", "0", "-5", "NaN", "1e309", "9223372037", "72000", "soon", "",
	} {
		var asked time.Duration
		row := outcomesByMethod(t, value, methods, true, func(call endpoint) cell {
			refusal := answer{Status: 429, Header: http.Header{"Retry-After": {value}, "Date": {date}}}
			c, _ := answered(t, refusal, call.call)
			_, err := answered(t, refusal, within(100*time.Millisecond, call.call))
			asked, _ = agentmessaging.RetryAfter(errors.Join(&agentmessaging.Error{StatusCode: 404}, hidden{err}))
			return c
		})
		assert.Equal(t, row[0], row[1], "Retry-After %q", value)
		page.row(strings.ReplaceAll("`"+value+"`", "``", "empty"), row[0], asked.String())
	}
	page.check(t, "retry-after")
}

// Package retryafter reads every form that services and proxies send. Any other text asks for
// no wait. TestRetryAfterMatrix has the usual ones.
func TestRetryAfterForms(t *testing.T) {
	now := time.Date(1994, time.November, 6, 8, 49, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		" 2 ":                              2 * time.Second,
		"0.0000000001":                     time.Nanosecond,
		`"3"; "2"`:                         3 * time.Second,
		"1, Sun, 06 Nov 1994 08:49:37 GMT": 37 * time.Second,
		`"Sunday, 06-Nov-94 08:49:38 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 2`: 38 * time.Second,
		"Fri, 31 Dec 9999 23:59:59 GMT":                                        retryafter.Longest,
		strings.Repeat("9", 400):                                               retryafter.Longest, // more than a Duration holds
		"Mon, 23 Nov 2026 07:01:00 UTC":                                        0,                  // not a date of HTTP
		"1s, Inf, -Inf, -1e309, s, -0.5, 1_000, 1e3, 0x1p4, 1.2.3":             0,
	} {
		assert.Equal(t, want, retryafter.Read(http.Header{"Retry-After": {value}}, now), value)
	}
	dated := http.Header{"retry-after": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "date": {"Sun, 06 Nov 1994 08:49:30 GMT", "today"}}
	assert.Equal(t, 7*time.Second, retryafter.Read(dated, now), "from the answer's Date")
	assert.Equal(t, 2*time.Hour, retryafter.Read(http.Header{"retry-after": {"1", "7200"}, "Retry-After": {"2"}}, now), "the longest of several")
}

// TestContextMatrix ends the context at each moment of a call.
func TestContextMatrix(t *testing.T) {
	page := page{{"The context ends", "GET, PUT, DELETE", "POST"}}
	for _, moment := range []struct {
		name   string
		after  time.Duration
		answer answer
	}{
		{"before the call", beforeTheCall, okAnswer},
		{"before the answer", 5 * time.Second, hang},
		{"inside the answer's body", onlyByLeave, leftDuring(answer{Status: 200, Reader: breaksOff(anyReply[:20], context.Canceled)})},
		{"just as the success arrives", onlyByLeave, leftDuring(okAnswer)},
		{"during the wait after a 429", 5 * time.Second, tooMany("60", "")},
		{"during the wait after a failed dial", 200 * time.Millisecond, notDialed},
	} {
		row := outcomesByMethod(t, moment.name, endpoints, false, func(call endpoint) cell {
			c, err := answered(t, moment.answer, leaving(moment.after, call.call))
			if err != nil {
				assert.ErrorIs(t, err, context.Canceled, moment.name)
				assert.ErrorIs(t, err, errLeft, moment.name)
			}
			return c
		})
		page.row(moment.name, row[0], row[1])
	}
	page.check(t, "context")
}

// fakeFaults are the faults of the fake, so that a fault that a user injects has the effect
// that the page states. The tests of the fake show that a fault looks the same over every
// transport.
var fakeFaults = []fault{
	{name: "`Answer(500)`", fake: fakeserver.Answer(500, "")},
	{name: "`RawAnswer(502, HTML)`", fake: fakeserver.RawAnswer(502, "text/html", "<h1>Bad gateway</h1>")},
	{name: "`RawAnswer(200, broken JSON)`", fake: fakeserver.RawAnswer(200, "application/json", `{"reply_`)},
	{name: "`RateLimited(20)`", fake: fakeserver.RateLimited("20"), repeatsPost: true},
	{name: "`Latency(30ms)`", fake: fakeserver.Latency(30 * time.Millisecond)},
	{name: "`Hang()`", fake: fakeserver.Hang(), deadline: 10 * time.Second},
	{name: "`CloseEarly()`", fake: fakeserver.CloseEarly()},
	{name: "`ResetConnection()`", fake: fakeserver.ResetConnection()},
	{name: "`LoseReply(CloseEarly())`", fake: fakeserver.LoseReply(fakeserver.CloseEarly())},
	{name: "`LoseReply(ResetConnection())`", fake: fakeserver.LoseReply(fakeserver.ResetConnection())},
	{name: "`LoseReply(Hang())`", fake: fakeserver.LoseReply(fakeserver.Hang()), deadline: 10 * time.Second},
	{name: "`LoseReply(Answer(504))`", fake: fakeserver.LoseReply(fakeserver.Answer(504, ""))},
	{name: "`LoseReply(RawAnswer(200, HTML))`", fake: fakeserver.LoseReply(fakeserver.RawAnswer(200, "text/html", "<html>"))},
	{name: "`TruncateReply(10)`", fake: fakeserver.TruncateReply(10)},
	{name: "`ResetReply(10)`", fake: fakeserver.ResetReply(10)},
	{name: "`DripReply(1, 0s)`", fake: fakeserver.DripReply(1, 0)},
	{name: "`GoAway()`", fake: fakeserver.GoAway()},
}

var updateFaults = flag.Bool("update-faults", false, "write what the fault matrix finds into docs/faults.md")

const faultsPage = "docs/faults.md"

// cell is the outcome of one call.
type cell struct {
	requests int
	outcome  string
	elapsed  time.Duration // virtual time only
}

// eitherWay is the outcome of a POST whose failure the client may notice before or after it
// has written the request's header: both outcomes are right.
const eitherWay = "tried again or outcome unknown"

// String describes the outcome. It leaves out the usual: one request, and no wait.
func (c cell) String() string {
	if c.outcome == eitherWay {
		return c.outcome
	}
	text := c.outcome
	if c.requests != 1 {
		text = fmt.Sprintf("%d requests, %s", c.requests, c.outcome)
	}
	if c.elapsed > 0 {
		text += ", " + c.elapsed.String()
	}
	return text
}

// outcomesByMethod makes the calls, and returns the outcome of GET, PUT and DELETE, on which
// all must agree, and that of POST. It checks that a POST is sent once, unless repeatsPost.
func outcomesByMethod(t *testing.T, what string, calls []endpoint, repeatsPost bool, run func(call endpoint) cell) (found [2]string) {
	t.Helper()
	for _, call := range calls {
		column := &found[0]
		if call.isPost() {
			column = &found[1]
		}
		c := run(call)
		if *column == "" {
			*column = c.String()
		}
		assert.Equal(t, *column, c.String(), "%s, %s: the endpoints differ", call.name, what)
		assert.True(t, repeatsPost || !call.isPost() || c.requests <= 1, "%s, %s: %d POSTs", call.name, what, c.requests)
	}
	return found
}

// A page is one table of docs/faults.md, between two marks. Its first row is the head.
type page [][]string

// row adds a row. If a row has the same outcomes already, it adds only the first cell there.
func (p *page) row(cells ...string) {
	for _, row := range *p {
		if slices.Equal(row[1:], cells[1:]) {
			row[0] += "; " + cells[0]
			return
		}
	}
	*p = append(*p, cells)
}

// check compares the table with the page. Under the flag -update-faults it writes it there.
func (p *page) check(t *testing.T, name string) {
	t.Helper()
	found := "begin -->\n"
	for i, row := range *p {
		found += "| " + strings.Join(row, " | ") + " |\n"
		if i == 0 {
			found += strings.Repeat("|---", len(row)) + "|\n"
		}
	}
	parts := strings.Split(string(must(os.ReadFile(faultsPage))), "<!-- "+name+":") // before the table, the table, and after it
	require.Len(t, parts, 3, "%s has no table %s", faultsPage, name)
	if *updateFaults {
		parts[1] = found
		require.NoError(t, os.WriteFile(faultsPage, []byte(strings.Join(parts, "<!-- "+name+":")), 0o644))
		return
	}
	assert.Equal(t, parts[1], found, "%s is out of date; to rewrite it: go test -run Matrix . -update-faults", faultsPage)
}

var http1Faults = []fault{
	{name: "connection refused", dial: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}},
	{name: "name not found", dial: notDialed.Err},
	{name: "TLS handshake fails", tls: true, serve: func(p peer) error {
		_, _ = p.Read(make([]byte, 64<<10))
		_, err := io.WriteString(p, "220 mail.example ESMTP\r\n")
		return err
	}},
	{name: "certificate refused", tls: true, serve: func(p peer) error {
		return tls.Server(p.Conn, &tls.Config{Certificates: secure().TLS.Certificates}).Handshake()
	}},
	{name: "closed on accept", postVaries: true, serve: func(peer) error { return nil }},
	{name: "closed after the request's header", serve: func(p peer) error { _, err := p.readHeader(); return err }},
	{name: "closed after the request", serve: peer.readRequest},
	{name: "closed inside the answer's header", serve: respond("200 OK\r\nContent-Le", "")},
	{name: "closed inside the answer's body", serve: respond("200 OK\r\n"+length, anyReply[:20])},
	{name: "Content-Length too large", serve: respond("200 OK\r\nContent-Length: 9000000000000000000", anyReply)},
	{name: "Content-Length too small", serve: respond("200 OK\r\nContent-Length: 20", anyReply)},
	{name: "broken chunk", serve: respond("200 OK\r\nTransfer-Encoding: chunked", "zz\r\n"+anyReply)},
	{name: "closed between chunks", serve: respond("200 OK\r\nTransfer-Encoding: chunked", "5\r\n{\"ok\"\r\n")},
	{name: "not HTTP", serve: respond("\x00\x01", "")},
	{name: "header without end", serve: respond("200 OK\r\nX: "+strings.Repeat("x", 300<<10), "")},
	{name: "body of 2 MiB", serve: respond("200 OK\r\nConnection: close", strings.Repeat(" ", 2<<20))},
	{name: "error body of 2 MiB", serve: respond("404 Not Found\r\nConnection: close", strings.Repeat(" ", 2<<20))},
	{name: "request not taken until the deadline", serve: func(peer) error { time.Sleep(15 * time.Second); return nil }, deadline: 10 * time.Second},
	{name: "no answer until the deadline", serve: thenStall(peer.readRequest), deadline: 10 * time.Second},
	{name: "no body until the deadline", serve: thenStall(respond("200 OK\r\n"+length, anyReply[:20])), deadline: 10 * time.Second},
	{name: "error without body until the deadline", serve: thenStall(respond("404 Not Found\r\nContent-Length: 50", "{")), deadline: 10 * time.Second},
	{name: "packed error without body", serve: thenStall(respond("404 Not Found\r\nContent-Encoding: gzip\r\nContent-Length: 50", "")), deadline: 10 * time.Second},
	{name: "1xx before the answer", serve: respond(strings.Repeat("102 Processing\r\n\r\nHTTP/1.1 ", 60)+"200 OK\r\n"+length, anyReply)},
	{name: "protocol switch", serve: thenStall(respond("101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x", ""))},
	{name: "closed without Content-Length", serve: respond("200 OK\r\nConnection: close", anyReply)},
}

var length = fmt.Sprintf("Content-Length: %d", len(anyReply))

func respond(header, body string) func(peer) error {
	answer := []byte("HTTP/1.1 " + header + "\r\n\r\n" + body)
	return func(p peer) error {
		if err := p.readRequest(); err != nil {
			return err
		}
		_, err := p.Write(answer)
		return err
	}
}

func thenStall(before func(peer) error) func(peer) error {
	return func(p peer) error {
		if err := before(p); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, p) // until the client closes the connection
		return err
	}
}

var http2Faults = []fault{
	{name: "closed after the handshake", serve: overHTTP2(), postVaries: true},
	{name: "REFUSED_STREAM before the body", serve: overHTTP2(header, reset(refusedStream), keepOpen)},
	{name: "REFUSED_STREAM", serve: overHTTP2(request, reset(refusedStream), keepOpen)},
	{name: "PROTOCOL_ERROR", serve: overHTTP2(request, reset(protocolError), keepOpen)},
	{name: "INTERNAL_ERROR", serve: overHTTP2(request, reset(internalError), keepOpen)},
	{name: "CANCEL", serve: overHTTP2(request, reset(cancelled), keepOpen)},
	{name: "NO_ERROR", serve: overHTTP2(request, reset(noError), keepOpen)},
	{name: "GOAWAY below the stream", serve: overHTTP2(request, goAwayBelow(noError), keepOpen), repeatsPost: true},
	{name: "GOAWAY below it with an error", serve: overHTTP2(request, goAwayBelow(internalError), keepOpen), repeatsPost: true},
	{name: "GOAWAY at the stream, then closed", serve: overHTTP2(request, goAway, closed)},
	{name: "GOAWAY at the stream, then the answer", serve: overHTTP2(request, goAway, reply(200, anyReply), keepOpen)},
	{name: "closed after the request's header", serve: overHTTP2(header)},
	{name: "closed after the request", serve: overHTTP2(request)},
	{name: "reset after the answer's header", serve: overHTTP2(request, status(200), reset(internalError), keepOpen)},
	{name: "REFUSED_STREAM after it", serve: overHTTP2(request, status(200), reset(refusedStream), keepOpen)},
	{name: "reset inside the answer's body", serve: overHTTP2(request, status(200), body(anyReply[:20], 0), reset(internalError), keepOpen)},
	{name: "ended inside the answer's body", serve: overHTTP2(request, reply(200, anyReply[:20]), keepOpen)},
	{name: "103, then REFUSED_STREAM", serve: overHTTP2(request, status(103), reset(refusedStream), keepOpen)},
	{name: "103 before the answer", serve: overHTTP2(request, status(103), reply(200, anyReply), keepOpen)},
	{name: "103 without end", serve: overHTTP2(request, forever(status(103)))},
	{name: "status 000", serve: overHTTP2(request, reply(0, anyReply), keepOpen)},
	{name: "no answer until the deadline", serve: overHTTP2(request, keepOpen), deadline: 10 * time.Second},
	{name: "no body until the deadline", serve: overHTTP2(request, status(200), keepOpen), deadline: 10 * time.Second},
	{name: "packed error without body", serve: overHTTP2(request, status(404, "content-encoding", "gzip"), keepOpen)},
}

// secure has net/http's own certificate, for example.com, and a client that trusts it. Its
// TLS is that of a service that speaks HTTP/2.
var secure = sync.OnceValue(func() *httptest.Server {
	server := httptest.NewUnstartedServer(nil)
	server.EnableHTTP2 = true
	server.StartTLS()
	server.Close()
	// A resumed session needs no RSA signature, which costs more than the rest of a call.
	server.Client().Transport.(*http.Transport).TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	return server
})

// peer is the service's end of a connection on which it misbehaves.
type peer struct {
	net.Conn
	requests *atomic.Int32 // whole request headers read
}

// readHeader reads a request's header. It does not wait for more.
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

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
