package agentmessaging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptrace"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestConnectionForARepeat is closed before net/http can write to it, which it
// may do though the attempt has ended. One for the first try, or for another
// after an answer, is left alone.
func TestConnectionForARepeat(t *testing.T) {
	for _, tt := range []struct {
		headers, answers int32
		repeat           bool
	}{{0, 0, false}, {1, 0, true}, {1, 1, false}, {2, 1, true}} {
		stopped := 0
		trace := &sentTrace{stop: func() { stopped++ }}
		trace.headers.Store(tt.headers)
		trace.answers.Store(tt.answers)
		client, service := net.Pipe()
		go io.Copy(io.Discard, service)
		trace.gotConn(httptrace.GotConnInfo{Conn: client, Reused: true})
		_, err := client.Write([]byte("x"))
		assert.Equal(t, tt.repeat, err != nil)
		assert.Equal(t, tt.repeat, stopped == 1)
		assert.Equal(t, tt.repeat, !trace.old.Load(), "nor does it count as the one that was used")
		client.Close()
	}
}

// TestTurnedAway: only net/http's own words count, not those of a service.
func TestTurnedAway(t *testing.T) {
	refused := errors.New("http2: Transport: cannot retry err [stream error: stream ID 3; REFUSED_STREAM; received from peer] after Request.Body was written")
	for err, want := range map[error]bool{
		refused:                          true,
		fmt.Errorf("proxy: %w", refused): true,
		errors.New("http2: Transport received GOAWAY from server ErrCode:INTERNAL_ERROR"):                                                true,
		errors.New("http2: Transport: cannot retry err [http2: Transport received Server's graceful shutdown GOAWAY] after Request"):     true,
		errors.New("http2: Transport: cannot retry err [stream error: stream ID 3; PROTOCOL_ERROR; received from peer] after"):           false,
		errors.New(`http2: server sent GOAWAY and closed the connection; LastStreamID=1, debug="; REFUSED_STREAM; received from peer]"`): false,
		context.Canceled: false,
	} {
		assert.Equal(t, want, turnedAway(err), err)
	}
}
