package memnet_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// A client learns from the hooks whether its request was sent, and from its
// connection what time it is on the other side. Direct shows a closed connection.
func TestHooks(t *testing.T) {
	host := hostOf(func(*http.Request) memnet.Answer { return answers["200"] })
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
