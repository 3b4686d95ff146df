package fakeserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// This file holds the in-memory connection to what loopback TCP does: each
// handler and each piece of raw HTTP runs behind both, and everything that can
// be seen at either end must be equal.

// seen is what a handler saw of a request.
type seen struct {
	Method, URL, Path, RawPath, RequestURI, Proto, Host string
	Header, Trailer                                     http.Header
	ContentLength                                       int64
	TransferEncoding                                    []string
	Body, BodyError                                     string
	Client                                              string // the address without its port
	Close, HasPort, KnowsServer, KnowsAddr, IsTLS       bool
}

func see(r *http.Request) seen {
	body, err := io.ReadAll(r.Body)
	s := seen{
		Method: r.Method, URL: r.URL.String(), Path: r.URL.Path, RawPath: r.URL.RawPath,
		RequestURI: r.RequestURI, Proto: r.Proto, Host: r.Host,
		Header: r.Header, Trailer: r.Trailer, ContentLength: r.ContentLength, TransferEncoding: r.TransferEncoding,
		Body: string(body), BodyError: class(err), Close: r.Close, IsTLS: r.TLS != nil,
		KnowsServer: r.Context().Value(http.ServerContextKey) != nil,
		KnowsAddr:   r.Context().Value(http.LocalAddrContextKey) != nil,
	}
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		s.Client, s.HasPort = from.Addr().String(), from.Port() != 0
	}
	return s
}

// got is what the client got back.
type got struct {
	Status, Proto       string
	Header, Trailer     http.Header
	ContentLength       int64
	TransferEncoding    []string
	Uncompressed, Close bool
	Body, Error         string
}

func get(resp *http.Response, err error) got {
	if err != nil {
		return got{Error: class(err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return got{
		Status: resp.Status, Proto: resp.Proto, Header: resp.Header, Trailer: resp.Trailer,
		ContentLength: resp.ContentLength, TransferEncoding: resp.TransferEncoding,
		Uncompressed: resp.Uncompressed, Close: resp.Close, Body: string(body), Error: class(err),
	}
}

// class is the class of an error that a program can ask for.
func class(err error) string {
	for _, known := range []error{
		context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded, io.ErrUnexpectedEOF,
		syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.EPIPE, net.ErrClosed, io.EOF,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// localhost is where calls over loopback come from, and so all the others here.
var localhost = netip.MustParseAddr("127.0.0.1")

// bothWires returns a client of h in memory and one over loopback TCP. Both
// call the fake's address.
func bothWires(t *testing.T, s *Server, h http.Handler) (memory, loopback *http.Transport) {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	loopback = &http.Transport{DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}}
	t.Cleanup(loopback.CloseIdleConnections)
	return s.hostOf(h).Client(t, localhost).Transport.(*http.Transport), loopback
}

// hostOf is the network of the fake with another handler behind it.
func (s *Server) hostOf(h http.Handler) *memnet.Host {
	return &memnet.Host{Name: "the fake", Addr: host + ":443", Handler: h, Describe: callName, Now: s.now}
}

// handlers are shapes of answers. Each is called with a body of 5 bytes, but
// where its name says otherwise.
var handlers = map[string]http.HandlerFunc{
	"JSON": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":true}`)
	},
	"204":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
	"304 with body": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304); _, _ = io.WriteString(w, "x") },
	"empty 200":     func(http.ResponseWriter, *http.Request) {},
	"5 kB":          func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), 5000)) },
	"header with newline": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Odd", "one\r\nX-Two: two")
	},
	"too small Content-Length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2")
		_, err := io.WriteString(w, "four")
		if err == nil {
			panic("the handler was not told")
		}
	},
	"too large Content-Length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9")
		_, _ = io.WriteString(w, "four")
	},
	"header after write": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<p>")
		w.Header().Set("X-Late", "late")
	},
	"panic": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"panic after flush": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "part")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	},
	"chunks": func(w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			_, _ = io.WriteString(w, "part")
			w.(http.Flusher).Flush()
		}
	},
	"trailer": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Sum", "4")
	},
	"gzip": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "unpacked")
		_ = z.Close()
	},
	"Connection: close": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") },
	"closed":            hijacked(func(c net.Conn) {}),
	"reset": hijacked(func(c net.Conn) {
		_ = c.(interface{ SetLinger(int) error }).SetLinger(0)
	}),
	"reset in the body": hijacked(func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
		_ = c.(interface{ SetLinger(int) error }).SetLinger(0)
	}),
	"closed in the body": hijacked(func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
	}),
	"garbage": hijacked(func(c net.Conn) { _, _ = io.WriteString(c, "not HTTP at all\r\n\r\n") }),
}

// hijacked is a handler that has the connection to itself and closes it.
func hijacked(f func(net.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		f(c)
	}
}

// requests are shapes of requests.
var requests = map[string]func() *http.Request{
	"POST": func() *http.Request { return request5("POST", strings.NewReader("hello")) },
	"HEAD": func() *http.Request { return request5("HEAD", nil) },
	"chunked": func() *http.Request {
		r := request5("POST", io.MultiReader(strings.NewReader("hel"), strings.NewReader("lo")))
		r.Trailer = http.Header{"X-Sum": {"5"}}
		return r
	},
	"expects 100": func() *http.Request {
		r := request5("PUT", strings.NewReader("hello"))
		r.Header.Set("Expect", "100-continue")
		return r
	},
	"closing": func() *http.Request {
		r := request5("GET", nil)
		r.Close = true
		return r
	},
}

func request5(method string, body io.Reader) *http.Request {
	r, err := http.NewRequest(method, "https://"+host+"/a%2Fb/c%20d?e=f&g", body)
	if err != nil {
		panic(err)
	}
	r.Header["X-Many"] = []string{"one", "two"}
	return r
}

func TestWireIsLoopback(t *testing.T) {
	s := New(t, WithUnknownRoutes())
	for handlerName, h := range handlers {
		for requestName, request := range requests {
			t.Run(handlerName+"/"+requestName, func(t *testing.T) {
				var seens [2]seen
				var gots [2]got
				for i := range gots {
					// A channel, since an abort over loopback orders nothing for the race detector.
					arrived := make(chan seen, 2)
					memory, loopback := bothWires(t, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						arrived <- see(r)
						h(w, r)
					}))
					gots[i] = withoutDate(t, get([]*http.Transport{memory, loopback}[i].RoundTrip(request())))
					seens[i] = <-arrived
					assert.Empty(t, arrived, "nothing was sent twice")
				}
				assert.Equal(t, "127.0.0.1", seens[0].Client)
				assert.True(t, seens[0].HasPort)
				assert.Equal(t, seens[1], seens[0])
				assert.Equal(t, gots[1], gots[0])
			})
		}
	}
}

// withoutDate takes the time out of an answer, where there must be one.
func withoutDate(t *testing.T, g got) got {
	if g.Header["Date"] != nil {
		_, err := http.ParseTime(g.Header.Get("Date"))
		assert.NoError(t, err)
		g.Header["Date"] = []string{"a date"}
	}
	return g
}

// Bytes that no client of net/http would send.
func TestRawHTTPIsLoopback(t *testing.T) {
	for name, raw := range map[string]string{
		"HTTP/1.0":          "GET /v1/status HTTP/1.0\r\n\r\n",
		"HTTP/1.0, kept":    "GET /v1/status HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"no host":           "GET /v1/status HTTP/1.1\r\n\r\n",
		"absolute":          "GET http://example.com/v1/status HTTP/1.1\r\nHost: x\r\n\r\n",
		"two at once":       "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n",
		"bad path":          "GET /v1/%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"bad version":       "GET / HTTP/3.0\r\nHost: x\r\n\r\n",
		"bad header":        "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
		"bad length":        "POST /v1/warmup HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
		"half a body":       "POST /v1/warmup HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{}",
		"half a chunk":      "POST /v1/warmup HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}",
		"unknown coding":    "POST /v1/warmup HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: zip\r\n\r\n",
		"expects otherwise": "POST /v1/warmup HTTP/1.1\r\nHost: x\r\nExpect: cake\r\n\r\n",
		"server-wide":       "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"tunnel":            "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
		"upgrade":           "GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
		"HTTP/2":            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"half a request":    "GET /v1/sta",
		"nothing":           "",
	} {
		t.Run(name, func(t *testing.T) {
			var answers [2]string
			for i := range answers {
				s := New(t, WithClock(at2040), WithUnknownRoutes()) // the same identifiers and times on both
				memory, loopback := bothWires(t, s, s)
				c, err := []*http.Transport{memory, loopback}[i].DialTLSContext(t.Context(), "tcp", host+":443")
				require.NoError(t, err)
				_, err = io.WriteString(c, raw)
				require.NoError(t, err)
				require.NoError(t, c.(interface{ CloseWrite() error }).CloseWrite())
				answer, err := io.ReadAll(c)
				answers[i] = string(answer) + class(err)
				require.NoError(t, c.Close())
			}
			assert.Equal(t, answers[1], answers[0])
		})
	}
}
