package openapi_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

const callers, each = 20, 3

// TestLimitsOfNginxAndHAProxy sends 60 messages at once through limits of nginx and of
// HAProxy, each of about ten a second, to Prism. No message may be lost, or pass twice.
func TestLimitsOfNginxAndHAProxy(t *testing.T) {
	prism, err := url.Parse(startPrism(t))
	require.NoError(t, err)
	nginx := []string{"nginx", "-e", "stderr", "-p", ".", "-c", "nginx.conf"}
	haproxy := []string{"haproxy", "-f", "haproxy.cfg"}
	for socket, command := range map[string][]string{"nginx-even": nginx, "nginx-burst": nginx, "haproxy": haproxy} {
		sendThrough := func(t *testing.T, limiter ...agentmessaging.Option) {
			t.Parallel()
			var passed, refused atomic.Int64
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				passed.Add(1)
				httputil.NewSingleHostReverseProxy(prism).ServeHTTP(w, r)
			}))
			t.Cleanup(upstream.Close)
			front := agentmessaging.WithHTTPClient(&http.Client{Transport: startFront(t, socket, command, upstream.Listener.Addr().String())})
			client, err := agentmessaging.NewClient("http://127.0.0.1", "key-1", append(limiter, front)...)
			require.NoError(t, err)
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for range each {
						var info agentmessaging.CallInfo
						ctx := agentmessaging.WithCallInfo(context.Background(), &info)
						_, err := client.SendMessage(ctx, "agent-1", agentmessaging.MessageParams{Text: "Hello"})
						assert.NoError(t, err)
						refused.Add(int64(info.Refusals))
					}
				})
			}
			group.Wait()
			assert.EqualValues(t, callers*each, passed.Load(), "messages that passed")
			t.Logf("%d refusals", refused.Load())
		}
		t.Run(socket+"/client", func(t *testing.T) { sendThrough(t) })
		t.Run(socket+"/pacer", func(t *testing.T) {
			limiter, err := pacer.New([]pacer.Limit{{Max: 10, Window: time.Second}})
			require.NoError(t, err)
			sendThrough(t, agentmessaging.WithLimiter(limiter))
		})
	}
}

// startFront starts a proxy with the limits of testdata, and returns a transport that connects
// to one of its sockets.
func startFront(t *testing.T, socket string, command []string, upstream string) *http.Transport {
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Skip("needs " + command[0])
	}
	dir, err := os.MkdirTemp("", "front") // not t.TempDir: the path of a socket has at most 107 bytes
	require.NoError(t, err)
	file := command[len(command)-1]
	config, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(strings.ReplaceAll(string(config), "UPSTREAM", upstream)), 0o600))
	proxy := exec.Command(command[0], command[1:]...)
	proxy.Dir = dir
	require.NoError(t, proxy.Start())
	t.Cleanup(func() {
		_ = proxy.Process.Signal(os.Interrupt)
		_ = proxy.Wait()
		_ = os.RemoveAll(dir)
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, socket))
	}
	require.Eventually(t, func() bool {
		conn, err := dial(t.Context(), "", "")
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond, "%s does not listen", command[0])
	return &http.Transport{DialContext: dial, MaxIdleConnsPerHost: callers}
}
