package exchange

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// NewTransport returns a transport with its own connections, for a client to which
// its user gives none.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: connectAnswer,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    256,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		// Shorter than that of common front ends, such as the 60 s of AWS's load balancers
		// and the 75 s of nginx: over HTTP/1.1 a POST may meet their close on its way, and
		// then nobody knows whether it arrived.
		IdleConnTimeout: 50 * time.Second,
	}
}

// pingAfter is how long an HTTP/2 connection may be silent before a ping, and how long
// the ping may go unanswered. Without pings, each call on a connection whose path has
// gone dead hangs until its deadline, for a quarter of an hour.
const pingAfter = 15 * time.Second

// connectAnswer names the proxy, and its status, where net/http would quote the
// status text as if it were the service's.
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

// proxyDenial is the answer of a proxy that would not change if it was asked again.
type proxyDenial struct{ error }
