package exchange

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOwnTransport keeps idle connections as long as net/http's own, so that the
// next call after a pause pays no handshake, speaks HTTP/2, notices there when the
// path is dead, and bounds headers.
func TestOwnTransport(t *testing.T) {
	own := NewTransport()
	standard := http.DefaultTransport.(*http.Transport)
	assert.Equal(t, standard.IdleConnTimeout, own.IdleConnTimeout)
	assert.Equal(t, standard.ForceAttemptHTTP2, own.ForceAttemptHTTP2)
	assert.Equal(t, http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}, *own.HTTP2)
	assert.EqualValues(t, 256<<10, own.MaxResponseHeaderBytes)
	assert.Equal(t, 256, own.MaxIdleConns)
	assert.Equal(t, 256, own.MaxIdleConnsPerHost, "the default of 2 would end the connections of callers in parallel")
	assert.NotNil(t, own.Proxy)
}

// TestProxyThatRefuses to connect is named, without its password. net/http would
// quote its status text as if the service had said so.
func TestProxyThatRefuses(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	host := strings.TrimPrefix(proxy.URL, "http://")
	own := NewTransport()
	own.Proxy = http.ProxyURL(&url.URL{Scheme: "http", User: url.UserPassword("user", "canary"), Host: host})
	service, err := url.Parse("https://service.example/")
	require.NoError(t, err)
	answer := New(own).Send(t.Context(), Request{Method: http.MethodPost, URL: service, Header: http.Header{}, Deadline: soon()})
	assert.EqualError(t, answer.Err, "the proxy "+host+" answered CONNECT with 407 Proxy Authentication Required")
	assert.False(t, answer.Sent)
}
