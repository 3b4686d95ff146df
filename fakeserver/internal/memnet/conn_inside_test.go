package memnet

import (
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type tcpLike interface {
	net.Conn
	CloseWrite() error
	SetLinger(int) error
}

// pairs are a connection in memory and one of the kernel: both must pass.
func pairs(t *testing.T) map[string][2]tcpLike {
	client, server := newConns(addr("192.0.2.1:1000"), addr("127.0.0.1:1"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	dialled, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	accepted, err := listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = dialled.Close(); _ = accepted.Close() })
	return map[string][2]tcpLike{
		"memory": {client, server},
		"kernel": {dialled.(*net.TCPConn), accepted.(*net.TCPConn)},
	}
}

// One direction may end alone, deadlines pass and are taken back, and an abort
// reaches the other end.
func TestConn(t *testing.T) {
	for name, pair := range pairs(t) {
		t.Run(name, func(t *testing.T) {
			a, b := pair[0], pair[1]
			require.NoError(t, a.CloseWrite())
			_, err := a.Write([]byte("x"))
			assert.Error(t, err)
			_, err = b.Read(make([]byte, 1))
			assert.ErrorIs(t, err, io.EOF)
			require.NoError(t, a.SetDeadline(time.Unix(1, 0)))
			_, err = a.Read(make([]byte, 1))
			assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, a.SetDeadline(time.Time{}))
			go func() { _, _ = io.WriteString(b, "x") }()
			_, err = a.Read(make([]byte, 1))
			assert.NoError(t, err)
			require.NoError(t, b.SetLinger(0))
			require.NoError(t, b.Close())
			_, err = a.Read(make([]byte, 1))
			assert.ErrorIs(t, err, syscall.ECONNRESET)
			require.NoError(t, a.Close())
			_, err = a.Read(make([]byte, 1))
			assert.ErrorIs(t, err, net.ErrClosed)
		})
	}
	a, b := newConns(addr("a"), addr("b"))
	require.NoError(t, a.Close())
	_, err := b.Write([]byte("x"))
	assert.ErrorIs(t, err, syscall.EPIPE)
	assert.EqualError(t, err, "write tcp b->a: write: broken pipe")
}

// Whoever closes a host waits until the servers of idle connections have ended, and
// not for a call under way, whose handler may be who closes it.
func TestHangUpWithoutATest(t *testing.T) {
	for _, idle := range []bool{true, false} {
		host := &Host{Addr: "service.invalid:443", Describe: func(*http.Request) string { return "" }}
		n := &network{host: host, transport: new(http.Transport), open: map[*clientConn]bool{}}
		host.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.hangUp() })
		c, err := n.dial(t.Context(), "tcp", host.Addr)
		require.NoError(t, err)
		if idle {
			n.hangUp()
		} else {
			_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			require.NoError(t, err)
			<-c.(*clientConn).done
		}
		assert.Empty(t, n.open)
	}
}
