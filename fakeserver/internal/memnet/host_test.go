package memnet_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// This file holds both ways of a Host to loopback TCP: whatever can be seen at
// either end of a call must be the same. Direct has no connection, so it does
// not show what only a connection could.

const address = "service.invalid:443"

var localhost = netip.MustParseAddr("127.0.0.1") // where calls over loopback come from, and so all others here

func hostOf(h http.Handler) *memnet.Host {
	return &memnet.Host{
		Name: "the service", Addr: address, Handler: h,
		Describe: func(r *http.Request) string { return r.Method },
		Now:      func() time.Time { return time.Unix(1, 0) },
	}
}

// ways are loopback, the connection in memory, and Direct.
func ways(t *testing.T, h http.Handler) [3]http.RoundTripper {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	loopback := &http.Transport{DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}}
	t.Cleanup(loopback.CloseIdleConnections)
	host := hostOf(h)
	return [...]http.RoundTripper{loopback, host.Client(t, localhost).Transport, host.Direct(localhost)}
}

// arrival is what a handler sees: of the request, and of the connection.
type arrival struct{ request, connection string }

func see(r *http.Request) arrival {
	body, err := io.ReadAll(r.Body)
	connection := fmt.Sprint(r.Close, r.Trailer, r.Header["Connection"],
		r.Context().Value(http.ServerContextKey) != nil, r.Context().Value(http.LocalAddrContextKey) != nil)
	r.Header.Del("Connection")
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	return arrival{fmt.Sprintf("%s %s %q %q %s %s %s %q %d %q %q %s from %s %t %t", r.Method, r.URL, r.URL.Path, r.URL.RawPath,
		r.RequestURI, r.Proto, r.Host, r.Header, r.ContentLength, r.TransferEncoding, body, class(err),
		from.Addr(), from.Port() != 0, r.TLS == nil), connection}
}

// got is what the client gets, but for the time.
func got(resp *http.Response, err error) string {
	if err != nil {
		return class(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	resp.Header.Del("Date")
	return fmt.Sprintf("%s %s %q %q %d %q %t %t %q %s", resp.Status, resp.Proto, resp.Header, resp.Trailer, resp.ContentLength,
		resp.TransferEncoding, resp.Uncompressed, resp.Close, body, class(err))
}

// class is what a program can ask an error for, or else its words.
func class(err error) string {
	for _, known := range []error{
		context.Canceled, os.ErrDeadlineExceeded, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed, io.EOF, errBroken,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return fmt.Sprint(err)
}

// wantSame shows where two texts part.
func wantSame(t *testing.T, what, want, got string) {
	t.Helper()
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	if want != got {
		t.Errorf("%s, from byte %d: got %.80q, want %.80q", what, i, got[i:], want[i:])
	}
}

// compare makes a call on all ways, or without Direct where it would need a
// connection, and reports whether it arrived.
func compare(t *testing.T, h http.HandlerFunc, connected bool, change func(*http.Request)) bool {
	var arrivals [3]arrival
	var answers [3]string
	sent := false
	for i, name := range []string{"loopback", "memory", "direct"} {
		if name == "direct" && connected {
			break
		}
		arrived := make(chan arrival, 2) // since an abort over loopback orders nothing for the race detector
		wire := ways(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { arrived <- see(r); h(w, r) }))[i]
		req, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+address+"/a%2Fb/c%20d?e=f&g", strings.NewReader("hello"))
		require.NoError(t, err)
		change(req)
		answers[i] = got(wire.RoundTrip(req))
		if i == 0 {
			sent = len(arrived) > 0
		}
		if assert.Equal(t, sent, len(arrived) == 1, name) && sent {
			arrivals[i] = <-arrived
		}
		wantSame(t, name+": the request", arrivals[0].request, arrivals[i].request)
		wantSame(t, name+": the answer", answers[0], answers[i])
	}
	wantSame(t, "the connection", arrivals[0].connection, arrivals[1].connection)
	return sent
}

// plain is an answer as the host's handler gives it.
func plain(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		memnet.Response{Status: status, Body: []byte(body), Header: http.Header{
			"Content-Type": {"application/json"}, "Content-Length": {fmt.Sprint(len(body))},
		}}.Write(w)
	}
}

// handlers answer in every way that Direct has too.
var handlers = map[string]http.HandlerFunc{
	"200":     plain(200, `{"ok":true}`),
	"599":     plain(599, `{"ok":false}`),
	"100 kB":  plain(200, strings.Repeat("x", 100_000)),
	"nothing": plain(200, ""),
	"panic":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"untyped": func(w http.ResponseWriter, _ *http.Request) {
		memnet.Response{Status: 200, Body: []byte("<p>"), Header: http.Header{"Content-Type": nil, "Content-Length": {"3"}}}.Write(w)
	},
	"in steps": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "on")
		w.WriteHeader(500) // too late
		_, _ = io.WriteString(w, "ly")
	},
	"header changed": func(w http.ResponseWriter, r *http.Request) { plain(200, "a")(w, r); w.Header().Set("X-Late", "late") },
}

// connected are handlers whose answers take a connection.
var connected = map[string]http.HandlerFunc{
	"204":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
	"304 with body": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304); _, _ = io.WriteString(w, "x") },
	"5 kB":          func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), 5000)) },
	"two lines":     func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Odd", "one\r\nX-Two: two") },
	"short": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9")
		flushed(w, "four")
	},
	"chunks":      func(w http.ResponseWriter, _ *http.Request) { flushed(w, "one"); flushed(w, "two") },
	"panic later": func(w http.ResponseWriter, _ *http.Request) { flushed(w, "part"); panic(http.ErrAbortHandler) },
	"closing":     func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") },
	"trailer": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		flushed(w, "body")
		w.Header().Set("X-Sum", "4")
	},
	"gzip": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "unpacked")
		_ = z.Close()
	},
	"closed":             hijacked("", -1),
	"reset":              hijacked("", 0),
	"reset in the body":  hijacked("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", 0),
	"closed in the body": hijacked("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", -1),
	"garbage":            hijacked("not HTTP at all\r\n\r\n", -1),
}

func flushed(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	w.(http.Flusher).Flush()
}

// hijacked writes to the connection and closes it, with linger 0 by a reset.
func hijacked(raw string, linger int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, raw)
		_ = c.(interface{ SetLinger(int) error }).SetLinger(linger)
		_ = c.Close()
	}
}

// requests change a POST with a body of 5 bytes. The last two are about its
// connection.
var requests = map[string]func(*http.Request){
	"POST": func(*http.Request) {},
	"HEAD": func(r *http.Request) { r.Method, r.Body, r.ContentLength = "HEAD", nil, 0 },
	"chunked": func(r *http.Request) {
		r.Body, r.ContentLength, r.Trailer = io.NopCloser(io.MultiReader(r.Body)), -1, http.Header{"X-Sum": {"5"}}
	},
	"expects 100": func(r *http.Request) { r.Method = "PUT"; r.Header.Set("Expect", "100-continue") },
	"closing":     func(r *http.Request) { r.Method, r.Body, r.ContentLength, r.Close = "GET", nil, 0, true },
}

func TestEveryWayIsLoopback(t *testing.T) {
	for needs, all := range map[bool]map[string]http.HandlerFunc{false: handlers, true: connected} {
		for handlerName, h := range all {
			for requestName, change := range requests {
				t.Run(handlerName+"/"+requestName, func(t *testing.T) {
					needs := needs || requestName == "expects 100" || requestName == "closing"
					assert.True(t, compare(t, h, needs, change), "sent")
				})
			}
		}
	}
}

// oddRequest is one that a program may make, right or wrong.
type oddRequest struct {
	sent   bool
	change func(*http.Request)
}

var odd = map[string]oddRequest{
	"no method, another host": {true, func(r *http.Request) { r.Method, r.Body, r.ContentLength, r.Host = "", nil, 0, "example.com" }},
	"asterisk":                {true, func(r *http.Request) { r.URL.Path, r.URL.RawPath, r.URL.RawQuery = "*", "", "" }},
	"two slashes":             {true, func(r *http.Request) { r.URL.Path, r.URL.RawPath = "//a", "" }},
	"dots":                    {true, func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/a/../b", "" }},
	"braces":                  {true, func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/{a}", "/{a}" }},
	"no URL":                  {false, func(r *http.Request) { r.URL = nil }},
	"no header":               {false, func(r *http.Request) { r.Header = nil }},
	"line feed in the method": {false, func(r *http.Request) { r.Method = "GET\n" }},
	"space in the method":     {false, func(r *http.Request) { r.Method = "G ET" }},
	"é in the method":         {false, func(r *http.Request) { r.Method = "GÉT" }},
	"ended": {false, func(r *http.Request) {
		ended, cancel := context.WithCancel(r.Context())
		cancel()
		*r = *r.WithContext(ended)
	}},

	"lower case":            header(true, "authorization", "Bearer x"),
	"trailing space":        header(true, "Authorization", "Bearer x \t"),
	"leading space":         header(true, "Authorization", " \tBearer x"),
	"tab inside":            header(true, "Authorization", "Bearer\tx"),
	"not ASCII":             header(true, "X-A", "é\xff"),
	"odd name":              header(true, "x!#$%&'*+.^_`|~9", "b"),
	"no value":              header(true, "X-A"),
	"empty value":           header(true, "X-A", " "),
	"no User-Agent":         header(true, "User-Agent", ""),
	"two User-Agents":       header(true, "User-Agent", "a", "b"),
	"nothing as User-Agent": header(true, "User-Agent"),
	"user-agent":            header(true, "user-agent", "a"),
	"own Host":              header(true, "Host", "example.com"),
	"own Content-Length":    header(true, "Content-Length", "7"),
	"own Transfer-Encoding": header(true, "Transfer-Encoding", "chunked"),
	"own Trailer":           header(true, "Trailer", "X-Sum"),
	"accept-encoding":       header(true, "accept-encoding", "br"),
	"Accept-Encoding":       header(true, "Accept-Encoding", "br"),
	"empty Accept-Encoding": header(true, "Accept-Encoding", ""),
	"Range":                 header(true, "Range", "bytes=0-"),
	"three cases": {true, func(r *http.Request) {
		r.Header = http.Header{"x-a": {"3"}, "X-a": {"2"}, "X-A": {"1", "1b"}}
	}},
	"line feed in a value": header(false, "X-A", "b\nX-B: c"),
	"return in a value":    header(false, "X-A", "b\r"),
	"zero byte in a value": header(false, "X-A", "b\x00"),
	"delete in a value":    header(false, "X-A", "b\x7f"),
	"line feed in a name":  header(false, "X-A\n", "b"),
	"space in a name":      header(false, "X A", "b"),
	"colon in a name":      header(false, "X:A", "b"),
	"é in a name":          header(false, "X-é", "b"),
	"no name":              header(false, "", "b"),
}

func header(sent bool, name string, values ...string) oddRequest {
	return oddRequest{sent, func(r *http.Request) { r.Header = http.Header{name: values} }}
}

func TestOddRequestsAreAsOverLoopback(t *testing.T) {
	for name, row := range odd {
		t.Run(name, func(t *testing.T) { assert.Equal(t, row.sent, compare(t, handlers["200"], false, row.change), "sent") })
	}
}

var errBroken = errors.New("broken")

type brokenBody struct{ closed bool }

func (*brokenBody) Read([]byte) (int, error) { return 0, errBroken }

func (b *brokenBody) Close() error { b.closed = true; return nil }

// Where the caller's own body fails, the call fails with its error, whether
// anything has arrived or not.
func TestBodiesThatFail(t *testing.T) {
	for i, wire := range ways(t, handlers["200"]) {
		broken := new(brokenBody)
		for want, body := range map[string]io.Reader{"broken": broken, "http: ContentLength=6 with Body length 5": strings.NewReader("hello")} {
			req, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+address+"/", body)
			require.NoError(t, err)
			req.ContentLength = 6
			wantSame(t, fmt.Sprint("way ", i), want, got(wire.RoundTrip(req)))
		}
		assert.True(t, broken.closed, i)
	}
}

// A client learns from the hooks whether its request was sent, and from its
// connection what time it is on the other side. Direct shows a connection that
// has addresses and nothing else.
func TestHooks(t *testing.T) {
	host := hostOf(handlers["200"])
	host.Refuses = func(r *http.Request, ip netip.Addr) bool { return r.URL.Path == "/refused" && ip == localhost }
	for i, wire := range []http.RoundTripper{host.Client(t, localhost).Transport, host.Direct(localhost)} {
		for url, want := range map[string]string{
			"https://" + address + "/":        "GetConn service.invalid:443, GotConn 127.0.0.1 service.invalid:443, WroteHeaders",
			"https://service.invalid/refused": "GetConn service.invalid:443",
			"http://127.0.0.1/":               "GetConn 127.0.0.1:80",
			"https://127.0.0.1:2/":            "GetConn 127.0.0.1:2",
		} {
			ran, conn := hooksOf(t, wire, url)
			if i == 0 && strings.HasSuffix(url, "/refused") {
				want = "" // a Transport asks where to connect before its first hook
			}
			wantSame(t, fmt.Sprint("way ", i, ": ", url), want, ran)
			if conn != nil {
				assert.Equal(t, time.Unix(1, 0), conn.(interface{ Now() time.Time }).Now())
			}
			if conn == nil || i == 0 {
				continue
			}
			_, read := conn.Read(nil)
			_, write := conn.Write(nil)
			for _, err := range []error{read, write, conn.SetDeadline(time.Time{}), conn.SetReadDeadline(time.Time{}), conn.SetWriteDeadline(time.Time{})} {
				assert.ErrorIs(t, err, net.ErrClosed)
			}
			assert.NoError(t, conn.Close())
		}
	}
}

// hooksOf makes a call and returns the hooks that ran, with the connection that
// they were shown.
func hooksOf(t *testing.T, wire http.RoundTripper, url string) (ran string, conn net.Conn) {
	wrote := make(chan bool, 1) // a Transport runs this hook on another goroutine, which may be late
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GetConn: func(hostPort string) { ran += "GetConn " + hostPort },
		GotConn: func(info httptrace.GotConnInfo) {
			conn = info.Conn
			ran += ", GotConn " + conn.LocalAddr().(*net.TCPAddr).IP.String() + " " + conn.RemoteAddr().String()
		},
		WroteHeaders: func() { wrote <- true },
	})
	req, err := http.NewRequestWithContext(ctx, "GET", url, http.NoBody)
	require.NoError(t, err)
	_ = got(wire.RoundTrip(req)) //nolint:bodyclose // got closes it
	if conn != nil {
		<-wrote
		ran += ", WroteHeaders"
	}
	return ran, conn
}
