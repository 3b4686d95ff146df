package fakeserver_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// A body that the fake does not read to its end hides from net/http that the
// client has left: a hang must end all the same.
func TestFaultsWithEndlessBodies(t *testing.T) {
	fake, c := newFake(t)
	fake.Inject(fakeserver.Hang())
	for name, wire := range ways(t, fake) {
		ctx, cancel := context.WithCancel(t.Context())
		done := fake.Admin().TotalCalls() + 1
		go func() {
			_, _ = fake.AwaitCalls(ctx, done)
			cancel()
		}()
		got := seen(wire, c.request("POST", "/v1/warmup", strings.Repeat(" ", 3<<20)).WithContext(ctx))
		assert.Equal(t, "Canceled", got, name)
	}
}

// The way below TLS is cut, not closed politely; in HTTP/2, which has no
// connection for each call, the stream ends.
func TestFaultsOverTLS(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		fake, c := newFake(t)
		server := httptest.NewUnstartedServer(fake)
		server.EnableHTTP2 = http2
		server.StartTLS()
		defer server.Close()
		call := func() (int, string) {
			req := c.request("POST", "/v1/warmup", emptyBody)
			req.URL.Scheme, req.URL.Host = "https", strings.TrimPrefix(server.URL, "https://")
			resp, err := server.Client().Transport.RoundTrip(req)
			if err != nil {
				return 0, class(err)
			}
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			return resp.ProtoMajor, class(err)
		}
		for _, fault := range []fakeserver.Fault{fakeserver.ResetConnection(), fakeserver.LoseReply(fakeserver.ResetConnection())} {
			injection := fake.Inject(fault).Times(1)
			_, sees := call()
			if http2 {
				assert.Contains(t, sees, "INTERNAL_ERROR", "of the stream")
			} else {
				assert.Equal(t, "ECONNRESET", sees)
			}
			assert.Equal(t, 1, injection.Hits())
		}
		fake.Inject(fakeserver.DripReply(3, 0))
		major, sees := call()
		assert.Empty(t, sees)
		assert.Equal(t, http2, major == 2)
	}
}

// A writer that cannot be hijacked or flushed, as a recorder, is aborted.
func TestResetWithoutConnection(t *testing.T) {
	fake, _ := newFake(t)
	fake.Inject(fakeserver.ResetConnection())
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() {
		fake.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/status", http.NoBody))
	})
}

func TestHEADWithFaults(t *testing.T) {
	for _, fault := range []fakeserver.Fault{fakeserver.TruncateReply(3), fakeserver.DripReply(2, 0), fakeserver.Answer(500, "")} {
		fake, c := newFake(t, fakeserver.WithUnknownRoutes())
		fake.Inject(fault)
		var all []string
		for _, wire := range ways(t, fake) {
			all = append(all, seen(wire, c.request("HEAD", "/v1/status", noBody)))
		}
		assert.Equal(t, []string{all[0], all[0], all[0]}, all, fault)
	}
}
