package memnet_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
		assert.True(t, broken.closed, "way %d leaves the body open", i)
	}
}
