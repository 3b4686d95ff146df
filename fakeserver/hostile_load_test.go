package fakeserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

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

// Idle connections cost little, and the fake goes on answering. They are 2,000,
// since both ends are in this process, and fewer where the system allows no
// more.
func TestIdleConnections(t *testing.T) {
	const most = 2000
	fake, c := newFake(t, unlimited()...)
	address := listen(t, fake)
	before := heap()
	var idle []net.Conn
	for range most {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Logf("the system allows %d connections: %v", len(idle), err)
			break
		}
		t.Cleanup(func() { _ = conn.Close() })
		idle = append(idle, conn)
	}
	require.Greater(t, len(idle), 100)
	require.NoError(t, ask(idle[len(idle)-1])) // and so all before it are accepted
	require.NoError(t, ask(idle[0]))
	assert.Less(t, (heap()-before)/len(idle), 64<<10, "bytes for both ends of a connection")
	c.call("GET", "/v1/status", noBody).wantOK(t)
}

// ask makes a call on a connection and reads its answer.
func ask(c net.Conn) error {
	_ = c.SetDeadline(time.Now().Add(socketLimit))
	if _, err := io.WriteString(c, "GET /v1/status HTTP/1.1\r\n"+twoOh); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// Accounts that call at once over one socket never see each other.
func TestAccountsAreApartUnderLoad(t *testing.T) {
	const accounts, rounds = 8, 30
	fake, c := newFake(t, unlimited()...)
	c.wire = overSocket{listen(t, fake)}
	callers, agents := make([]caller, accounts), make([]string, accounts)
	for i := range callers {
		callers[i] = c.with(fake.IssueKey(fakeserver.KeyOptions{}))
		agents[i] = callers[i].agent(emptyBody)
	}
	var all sync.WaitGroup
	for i, mine := range callers {
		all.Go(func() {
			for round := range rounds {
				text := fmt.Sprintf("account %d, round %d", i, round)
				assert.Equal(t, "You wrote: "+text, mine.send(agents[i], text).text("reply_text"))
				other := agents[(i+1+round%(accounts-1))%accounts]
				assert.Equal(t, 404, mine.call("GET", "/v1/agents/"+other, noBody).status)
				assert.Equal(t, 404, mine.send(other, "mine?").status)
			}
		})
	}
	all.Wait()
	for i, agent := range agents {
		require.Len(t, fake.Conversation(agent), rounds)
		for _, e := range fake.Conversation(agent) {
			require.Contains(t, e.Text, fmt.Sprintf("account %d,", i))
		}
		assert.Equal(t, 1+3*rounds, fake.Limits(callers[i].key)[0].Used)
	}
}

// overSocket sends the calls to an address.
type overSocket struct{ address string }

func (o overSocket) RoundTrip(req *http.Request) (*http.Response, error) {
	req.URL.Scheme, req.URL.Host = "http", o.address
	return http.DefaultTransport.RoundTrip(req)
}
