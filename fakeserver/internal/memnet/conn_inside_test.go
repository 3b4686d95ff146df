package memnet

import (
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type tcpLike interface {
	net.Conn
	CloseWrite() error
	SetLinger(int) error
}

var _ tcpLike = (*net.TCPConn)(nil)

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

func each(t *testing.T, f func(t *testing.T, a, b tcpLike)) {
	for name, pair := range pairs(t) {
		t.Run(name, func(t *testing.T) { f(t, pair[0], pair[1]) })
	}
}

// Data that its reader never took makes a close an abort.
func TestConnCloseWithUnreadData(t *testing.T) {
	each(t, func(t *testing.T, a, b tcpLike) {
		_, err := io.WriteString(b, "xy")
		require.NoError(t, err)
		_, err = io.ReadFull(a, make([]byte, 1))
		require.NoError(t, err)
		require.NoError(t, a.Close())
		_, err = b.Read(make([]byte, 1))
		assert.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

func TestConnPastDeadlines(t *testing.T) {
	each(t, func(t *testing.T, a, b tcpLike) {
		_, err := io.WriteString(b, "x")
		require.NoError(t, err)
		require.NoError(t, a.SetDeadline(time.Unix(1, 0)))
		_, err = a.Read(make([]byte, 1))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = a.Write([]byte("x"))
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		assert.True(t, timeout.Timeout(), "%v", err)
		require.NoError(t, a.SetDeadline(time.Time{}))
		_, err = a.Read(make([]byte, 1))
		assert.NoError(t, err)
		_, err = a.Write([]byte("x"))
		assert.NoError(t, err)
	})
}

func TestConnDeadlinesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newConns(addr("a"), addr("b"))
		begun := time.Now()
		require.NoError(t, a.SetReadDeadline(begun.Add(time.Minute)))
		require.NoError(t, a.SetReadDeadline(begun.Add(time.Hour))) // replaces the other
		_, err := a.Read(make([]byte, 1))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, time.Hour, time.Since(begun))
		begun = time.Now()
		require.NoError(t, a.SetWriteDeadline(begun.Add(time.Second)))
		n, err := a.Write(make([]byte, streamRoom+1))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, streamRoom, n)
		assert.Equal(t, time.Second, time.Since(begun))
		_, _ = io.ReadFull(b, make([]byte, streamRoom))
		time.AfterFunc(time.Minute, func() { _ = a.SetReadDeadline(time.Now()) }) // wakes the reader
		require.NoError(t, a.SetReadDeadline(time.Time{}))
		_, err = a.Read(make([]byte, 1))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	})
}

func TestConnCloseWakesBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newConns(addr("a"), addr("b"))
		results := make(chan error, 1)
		_, err := a.Read(nil) // waits for nothing
		require.NoError(t, err)
		go func() { _, err := a.Read(make([]byte, 1)); results <- err }()
		synctest.Wait()
		_ = a.Close()
		assert.ErrorIs(t, <-results, net.ErrClosed)
		_, err = a.Write([]byte("x"))
		assert.ErrorIs(t, err, net.ErrClosed)
		_, err = b.Write([]byte("x"))
		assert.ErrorIs(t, err, syscall.EPIPE)
		assert.Equal(t, "write tcp b->a: write: broken pipe", err.Error())
		assert.Equal(t, "b", b.LocalAddr().String())
		assert.Equal(t, "tcp", b.RemoteAddr().Network())
	})
}

// Whoever closes a host waits until the servers of idle connections have ended.
func TestHangUpIdle(t *testing.T) {
	host := &Host{Addr: "service.invalid:443", Handler: http.NotFoundHandler()}
	n := &network{host: host, transport: new(http.Transport), open: map[*link]bool{}}
	_, err := n.dial(t.Context(), "tcp", host.Addr)
	require.NoError(t, err)
	n.hangUpIdle()
	assert.Empty(t, n.open)
}
