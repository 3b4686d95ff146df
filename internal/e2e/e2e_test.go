// Package e2e_test runs the whole client against whole services: the fake,
// net/http's own server, and connections and answers that go wrong in every way
// of the fault matrix, which writes docs/faults.md.
package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

const okBody = clienttest.AnyReply

// What a run leaves behind goes with it: a fifth of its time went into collecting it.
func init() { debug.SetGCPercent(400) }

// connect returns a client whose waits are too short to notice.
func connect(t *testing.T, baseURL string, opts ...agentmessaging.Option) *agentmessaging.Client {
	t.Helper()
	return clienttest.At(t, baseURL, append([]agentmessaging.Option{clienttest.Quick}, opts...)...)
}

// serveTLS starts a server that speaks HTTP/2, or HTTP/1.1 only, and returns
// it with a transport that trusts it.
func serveTLS(t *testing.T, http2 bool, handler http.HandlerFunc) (*httptest.Server, *http.Transport) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate()}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, server.Client().Transport.(*http.Transport)
}

// certificate is made out to example.com and this machine. Only who has it in
// roots trusts it.
var certificate = sync.OnceValue(func() tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) // httptest's RSA key takes long to sign
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0), // also in bubbles, where it is 2000
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: must(x509.ParseCertificate(der))}
})

var roots = sync.OnceValue(func() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(certificate().Leaf)
	return pool
})

// wayToFake returns an address of the fake and a transport that reaches it.
type wayToFake func(*testing.T, *fakeserver.Server) (baseURL string, transport http.RoundTripper)

func overMemory(t *testing.T, fake *fakeserver.Server) (string, http.RoundTripper) {
	return fake.BaseURL(), fake.HTTPClient(t).Transport
}

func directly(_ *testing.T, fake *fakeserver.Server) (string, http.RoundTripper) {
	return fake.BaseURL(), fake.Direct()
}

// overTLS serves the fake over HTTP/2.
func overTLS(t *testing.T, fake *fakeserver.Server) (string, http.RoundTripper) {
	server, transport := serveTLS(t, true, fake.ServeHTTP)
	return server.URL, transport
}

// clientBy returns a client with the fake's key.
func clientBy(t *testing.T, fake *fakeserver.Server, way wayToFake, opts ...agentmessaging.Option) *agentmessaging.Client {
	t.Helper()
	baseURL, transport := way(t, fake)
	client, err := agentmessaging.NewClient(baseURL, fake.Key(), append(opts, clienttest.Through(transport))...)
	require.NoError(t, err)
	return client
}
