package memnet

import (
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An end that closes or aborts is seen at the other end as over TCP.
func TestConn(t *testing.T) {
	for _, row := range []struct {
		aborts      bool
		read, write error
	}{{false, io.EOF, syscall.EPIPE}, {true, syscall.ECONNRESET, syscall.ECONNRESET}} {
		a, b := newConns(addr("a"), addr("b"))
		if row.aborts {
			require.NoError(t, a.SetLinger(0))
		}
		require.NoError(t, a.Close())
		require.NoError(t, a.Close())
		_, err := a.Read(make([]byte, 1))
		assert.ErrorIs(t, err, net.ErrClosed)
		_, err = b.Read(make([]byte, 1))
		assert.ErrorIs(t, err, row.read)
		_, err = b.Write([]byte("x"))
		assert.ErrorIs(t, err, row.write)
		assert.EqualError(t, err, "write tcp b->a: write: "+row.write.Error())
	}
}
