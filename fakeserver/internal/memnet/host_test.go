package memnet_test

import (
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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// This file holds both ways of a Host to loopback TCP: whatever can be seen at
// either end of a call must be the same. Direct has no connection, so it does
// not show what only a connection could.

const address = "service.invalid:443"

var localhost = netip.MustParseAddr("127.0.0.1") // where calls over loopback come from, and so all others here

// ways are loopback, the connection in memory, and Direct.
func ways(t *testing.T, answer func(*http.Request) memnet.Answer) [3]http.RoundTripper {
	host := &memnet.Host{Addr: address, Answer: answer}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a := answer(r); a.Write(w, r) }))
	t.Cleanup(server.Close)
	loopback := &http.Transport{DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}}
	t.Cleanup(loopback.CloseIdleConnections)
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
func compare(t *testing.T, answer memnet.Answer, connected bool, change func(*http.Request)) bool {
	var arrivals [3]arrival
	var answers [3]string
	sent := false
	for i, name := range []string{"loopback", "memory", "direct"} {
		if name == "direct" && connected {
			break
		}
		arrived := make(chan arrival, 2) // since an abort over loopback orders nothing for the race detector
		wire := ways(t, func(r *http.Request) memnet.Answer { arrived <- see(r); return answer })[i]
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

// plain is a whole answer.
func plain(status int, body string) memnet.Answer {
	return memnet.Answer{
		Response: memnet.Response{Status: status, Body: []byte(body), Header: http.Header{
			"Content-Type": {"application/json"}, "Content-Length": {fmt.Sprint(len(body))},
		}},
		Progress: func(int, bool) {},
	}
}

// sent is an answer that leaves in another way than whole.
func sent(d memnet.Delivery) memnet.Answer {
	a := plain(200, `{"ok":true}`)
	a.Delivery = d
	return a
}

var answers = map[string]memnet.Answer{
	"200":      plain(200, `{"ok":true}`),
	"599":      plain(599, `{"ok":false}`),
	"100 kB":   plain(200, strings.Repeat("x", 100_000)),
	"nothing":  plain(200, ""),
	"untyped":  {Response: memnet.Response{Status: 200, Body: []byte("<p>"), Header: http.Header{"Content-Type": nil, "Content-Length": {"3"}}}},
	"dripping": sent(memnet.Delivery{Drip: 3}),
	"leaving":  sent(memnet.Delivery{Ends: memnet.Leaves}),
	"closed":   sent(memnet.Delivery{Ends: memnet.Closes, Sent: memnet.Nothing}),
	"reset":    sent(memnet.Delivery{Ends: memnet.Resets, Sent: memnet.Nothing}),

	"closed in the body": sent(memnet.Delivery{Ends: memnet.Closes, Sent: 3}),
	"reset in the body":  sent(memnet.Delivery{Ends: memnet.Resets, Sent: 3}),
	"closed after it":    sent(memnet.Delivery{Ends: memnet.Closes, Sent: 30}),
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
	for answerName, answer := range answers {
		for requestName, change := range requests {
			t.Run(answerName+"/"+requestName, func(t *testing.T) {
				connected := requestName == "expects 100" || requestName == "closing"
				assert.True(t, compare(t, answer, connected, change), "sent")
			})
		}
	}
}

var errBroken = errors.New("broken")

type brokenBody struct{ closed bool }

func (*brokenBody) Read([]byte) (int, error) { return 0, errBroken }

func (b *brokenBody) Close() error { b.closed = true; return nil }

// Where the caller's own body fails, the call fails with its error, whether
// anything has arrived or not.
func TestBodiesThatFail(t *testing.T) {
	for i, wire := range ways(t, func(*http.Request) memnet.Answer { return answers["200"] }) {
		broken := new(brokenBody)
		for want, body := range map[string]io.Reader{"broken": broken, "http: ContentLength=6 with Body length 5": strings.NewReader("hello")} {
			req, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+address+"/", body)
			require.NoError(t, err)
			req.ContentLength = 6
			wantSame(t, fmt.Sprint("way ", i), want, got(wire.RoundTrip(req)))
		}
		assert.True(t, broken.closed, "way %d leaves the body open", i)
	}
}

// Direct refuses what net/http refuses to send, and sends the rest as it does.
func TestOddRequests(t *testing.T) {
	for header, sent := range map[string]bool{
		"authorization": true, "User-Agent": true, "Host": true, "Content-Length": true, "Accept-Encoding": true, "Range": true,
		"X A": false, "X:A": false, "X-\u00e9": false, "": false,
	} {
		assert.Equal(t, sent, compare(t, answers["200"], false, func(r *http.Request) { r.Header = http.Header{header: {" a \t"}} }), header)
	}
	for _, value := range []string{"b\nX-B: c", "b\r", "b\x00", "b\x7f"} {
		assert.False(t, compare(t, answers["200"], false, func(r *http.Request) { r.Header.Set("X-A", value) }), value)
	}
	for _, method := range []string{"GET\n", "G ET", "G\u00c9T"} {
		assert.False(t, compare(t, answers["200"], false, func(r *http.Request) { r.Method = method }), method)
	}
}

// A client learns from the hooks whether its request was sent, and from its
// connection what time it is on the other side. Direct shows a closed connection.
func TestHooks(t *testing.T) {
	host := &memnet.Host{Addr: address, Answer: func(*http.Request) memnet.Answer { return answers["200"] }}
	host.Refuses = func(r *http.Request, ip netip.Addr) bool { return r.URL.Path == "/refused" && ip == localhost }
	for i, wire := range []http.RoundTripper{host.Client(t, localhost).Transport, host.Direct(localhost)} {
		for url, want := range map[string]string{
			"https://" + address + "/":        "GetConn service.invalid:443, GotConn 127.0.0.1 fake:443, WroteHeaders",
			"https://service.invalid/refused": "GetConn service.invalid:443",
			"http://127.0.0.1/":               "GetConn 127.0.0.1:80",
			"https://127.0.0.1:2/":            "GetConn 127.0.0.1:2",
		} {
			if i == 0 && strings.HasSuffix(url, "/refused") {
				want = "" // a Transport asks where to connect before its first hook
			}
			var ran string
			wrote := make(chan bool, 1) // a Transport runs this hook on another goroutine, which may be late
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				GetConn: func(hostPort string) { ran += "GetConn " + hostPort },
				GotConn: func(info httptrace.GotConnInfo) {
					ran += ", GotConn " + info.Conn.LocalAddr().(*net.TCPAddr).IP.String() + " " + info.Conn.RemoteAddr().String()
					if i == 1 {
						_, err := info.Conn.Write(nil)
						assert.ErrorIs(t, err, net.ErrClosed)
					}
				},
				WroteHeaders: func() { wrote <- true },
			})
			req, err := http.NewRequestWithContext(ctx, "GET", url, http.NoBody)
			require.NoError(t, err)
			_ = got(wire.RoundTrip(req)) //nolint:bodyclose // got closes it
			if strings.HasSuffix(want, "WroteHeaders") {
				<-wrote
				ran += ", WroteHeaders"
			}
			wantSame(t, fmt.Sprint("way ", i, ": ", url), want, ran)
		}
	}
}
