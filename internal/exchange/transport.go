package exchange

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// NewTransport returns the transport of a client without WithHTTPClient. It shares no
// connections with http.DefaultTransport.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: connectAnswer,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
		MaxIdleConnsPerHost:    256,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		// Common front ends close idle connections later: AWS's load balancers after 60 s,
		// nginx after 75 s. If a front end closed first, a POST over HTTP/1.1 could be on its
		// way at that moment, and its outcome would be unknown.
		IdleConnTimeout: 50 * time.Second,
	}
}

// pingAfter is how long an HTTP/2 connection may be silent before net/http sends a ping,
// and how long net/http waits for the answer. Without pings, calls on a connection whose
// network path is dead hang until their deadlines, for up to a quarter of an hour.
const pingAfter = 15 * time.Second

// connectAnswer makes the error for a proxy that refuses CONNECT. The error names the
// proxy, because net/http's own error is only the status text, which looks like an answer
// of the service.
func connectAnswer(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	err := fmt.Errorf("the proxy %s answered CONNECT with %d %s", proxy.Host, resp.StatusCode, http.StatusText(resp.StatusCode))
	if resp.StatusCode/100 == 4 {
		err = proxyDenial{err}
	}
	return err
}

// proxyDenial is a proxy's 4xx answer to CONNECT. A retry would get the same answer.
type proxyDenial struct{ error }
