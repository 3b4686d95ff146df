//go:build unix

package redisstore_test

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/redisstore"
)

// TestMain runs a process of the fleet, if the environment says so.
func TestMain(m *testing.M) {
	if socket := os.Getenv("FLEET_REDIS"); socket != "" {
		work(socket)
	}
	os.Exit(m.Run())
}

// work sends messages with eight workers until the process is killed.
func work(socket string) {
	redis.SetLogger(silent{}) // go-redis writes failed dials to standard error
	store := redisstore.New(redis.NewClient(recommended(socket, 250*time.Millisecond)))
	p, err := pacer.New(pacer.BYOKPlanLimits(), pacer.WithStore(store, os.Getenv("AGENT_MESSAGING_API_KEY")))
	if err != nil {
		panic(err)
	}
	client, err := agentmessaging.NewClientFromEnv(agentmessaging.WithLimiter(p), agentmessaging.WithTimeout(time.Hour))
	if err != nil {
		panic(err)
	}
	for range 8 {
		go func() {
			for {
				_, _ = client.SendMessage(context.Background(), os.Getenv("FLEET_AGENT"), agentmessaging.MessageParams{Text: "hello"})
			}
		}()
	}
	select {}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// TestFleet runs eight processes of the operating system on a real Redis. It kills one,
// stops another for a while, and flushes, stops and restarts Redis.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 80 s")
	}
	// Something happens at the beginning of each part, and recovery takes 1.5 s.
	const part = 8 * time.Second
	server := newServer(t)
	fake, err := fakeserver.Open(fakeserver.WithDecision("windows", "sliding"), fakeserver.WithCallLimit(math.MaxInt))
	require.NoError(t, err)
	defer fake.Close()
	key := fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanBYOK})
	socket := httptest.NewServer(fake)
	defer socket.Close()
	var fleet []*os.Process
	for range 8 {
		fleet = append(fleet, start(t, "FLEET_REDIS="+server.socket, "FLEET_AGENT="+fake.AddAgent(key, fakeserver.Agent{}).ID,
			"AGENT_MESSAGING_BASE_URL="+socket.URL, "AGENT_MESSAGING_API_KEY="+key))
	}
	begin := time.Now()
	for i, event := range []func(){
		2:  func() { fleet[0].Kill() },
		3:  func() { fleet[1].Signal(syscall.SIGSTOP) },
		4:  func() { server.client(t).FlushAll(t.Context()) },
		5:  func() { fleet[1].Signal(syscall.SIGCONT) },
		6:  func() { server.process.Process.Signal(syscall.SIGSTOP) }, // Redis hangs
		7:  func() { server.process.Process.Signal(syscall.SIGCONT) },
		8:  func() { server.kill(); time.Sleep(part / 4); server.start(t) }, // it comes back empty
		10: func() {},
	} {
		if event != nil {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * part)))
			event()
		}
	}
	accepted, refused := measure(fake.Calls(), begin.Add(2*part), begin.Add(10*part))
	allowed := 600 * (8 * part).Minutes()
	t.Logf("%d of %.0f calls accepted, %d refused", accepted, allowed, refused)
	// How much of the limit is used depends on the machine; the simulation has rows for it.
	assert.GreaterOrEqual(t, float64(accepted), allowed/2)
	assert.LessOrEqual(t, refused, accepted/50)
}

// start begins a process of the fleet, which ends with the test.
func start(t *testing.T, environment ...string) *os.Process {
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), environment...)
	process.Stderr = os.Stderr
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
	return process.Process
}

// measure counts the calls of a span.
func measure(calls []fakeserver.Call, from, to time.Time) (accepted, refused int) {
	for _, call := range calls {
		switch {
		case call.Time.Before(from) || call.Time.After(to):
		case call.Status == http.StatusTooManyRequests:
			refused++
		default:
			accepted++
		}
	}
	return accepted, refused
}
