package fakeserver_test

import (
	"bufio"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// A body without end is answered when it is longer than 1 MiB, and cut there:
// what is sent behind it goes nowhere.
func TestBodyWithoutEnd(t *testing.T) {
	fake, _ := newFake(t)
	c := dial(t, listen(t, fake))
	chunk := "10000\r\n" + strings.Repeat("x", 1<<16) + "\r\n"
	sent := make(chan int, 1)
	go func() {
		n, _ := io.WriteString(c, post("Transfer-Encoding: chunked\r\n", ""))
		for {
			m, err := io.WriteString(c, chunk)
			if n += m; err != nil {
				sent <- n
				return
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	r := read(t, resp)
	r.wantReason(t, "body: at most 1048576 bytes")
	assert.True(t, resp.Close)
	// The buffers of two sockets are in it, which the system may make large.
	assert.Less(t, <-sent, 32<<20)
	assert.Equal(t, 1<<20+1, fake.Calls()[0].BodyBytes)
}

// Large requests leave small records, whatever in them is large.
func TestRecordsOfLargeRequestsAreSmall(t *testing.T) {
	const calls = 60
	fake, _ := newFake(t, append(unlimited(), fakeserver.WithUnknownRoutes())...)
	address := listen(t, fake)
	before := heap()
	for range calls / 3 {
		exchange(t, address, "GET /v1/status HTTP/1.1\r\nX-Large: "+strings.Repeat("x", 500_000)+lineBreak+twoOh)
		exchange(t, address, "GET /v1/status?"+strings.Repeat("x", 500_000)+" HTTP/1.1\r\n"+twoOh)
		exchange(t, address, "GET /v1/agents/"+strings.Repeat("x", 500_000)+" HTTP/1.1\r\n"+twoOh)
	}
	assert.Equal(t, calls, fake.CallCount())
	assert.Less(t, (heap()-before)/calls, 16<<10, "bytes for a call")
}

// heap is how much memory is in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
