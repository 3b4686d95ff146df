//go:build unix

package redisquota_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/redisquota"
)

// TestMain is a process of the fleet, where the environment says so.
func TestMain(m *testing.M) {
	if socket := os.Getenv("FLEET_REDIS"); socket != "" {
		work(socket, os.Getenv("FLEET_AGENT"), os.Getenv("FLEET_PLAN"))
		return
	}
	os.Exit(m.Run())
}

// work sends messages with eight workers until the process is killed.
func work(socket, agentID, plan string) {
	redis.SetLogger(silent{}) // go-redis writes failed dials to standard error
	store := redisquota.New(redis.NewClient(recommended("unix", socket)))
	limits := pacer.PreviewLimits()
	if plan == "byok" {
		limits = pacer.BYOKPlanLimits()
	}
	p, err := pacer.New(limits, pacer.WithStore(store, os.Getenv("AGENT_MESSAGING_API_KEY")))
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
				_, _ = client.SendMessage(context.Background(), agentID, agentmessaging.MessageParams{Text: "hello"})
			}
		}()
	}
	select {}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// TestFleet is eight processes of the operating system on a real Redis, of
// which one is killed, one is stopped for a while, and whose Redis is flushed,
// stopped and restarted. By default it takes some 80 s at 600 calls a minute;
// REDISQUOTA_FLEET=1 makes that ten minutes at 60 a minute.
func TestFleet(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("takes 80 s")
	case os.Getenv("REDISQUOTA_FLEET") != "":
		testFleet(t, "preview", 60, time.Minute)
	default:
		testFleet(t, "byok", 600, 8*time.Second)
	}
}

// A run has ten parts of the same length; each event comes at the begin of one.
func testFleet(t *testing.T, plan string, most int, part time.Duration) {
	server := newServer(t)
	fake, err := fakeserver.Open(fakeserver.WithDecision("windows", "sliding"), fakeserver.WithCallLimit(math.MaxInt))
	require.NoError(t, err)
	defer fake.Close()
	key := fake.Key()
	if plan == "byok" {
		key = fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanBYOK})
	}
	socket := httptest.NewServer(fake)
	defer socket.Close()
	env := append(os.Environ(), "FLEET_REDIS="+server.socket, "FLEET_PLAN="+plan,
		"FLEET_AGENT="+fake.AddAgent(key, fakeserver.Agent{}).ID,
		"AGENT_MESSAGING_BASE_URL="+socket.URL, "AGENT_MESSAGING_API_KEY="+key)
	var fleet []*exec.Cmd
	for range 8 {
		fleet = append(fleet, startProcess(t, env))
	}
	begin := time.Now()
	until := func(part int, length time.Duration) { time.Sleep(time.Until(begin.Add(time.Duration(part) * length))) }
	events := []struct {
		part int
		name string
		do   func()
	}{
		{2, "one process is killed", func() { fleet[0].Process.Kill() }},
		{3, "one is stopped", func() { fleet[1].Process.Signal(syscall.SIGSTOP) }},
		{4, "Redis is flushed", func() { server.client(t).FlushAll(t.Context()) }},
		{5, "the stopped one goes on", func() { fleet[1].Process.Signal(syscall.SIGCONT) }},
		{6, "Redis hangs", func() { server.process.Process.Signal(syscall.SIGSTOP) }},
		{7, "Redis goes on", func() { server.process.Process.Signal(syscall.SIGCONT) }},
		{8, "Redis is killed, and restarted empty", func() { server.kill(); time.Sleep(part / 4); server.start(t) }},
		{10, "the end", func() {}},
	}
	for _, event := range events {
		until(event.part, part)
		event.do()
	}
	got := measure(fake.Calls(), begin.Add(2*part), begin.Add(10*part))
	allowed := float64(most) * (8 * part).Minutes()
	t.Logf("%d of %.0f calls accepted (%.1f %%), %d refused, longest pause %s; by part: %v",
		got.accepted, allowed, 100*float64(got.accepted)/allowed, got.refused, got.pause.Round(10*time.Millisecond), got.parts(begin, part))
	least := 0.95
	if part < time.Minute {
		least = 0.9 // something happens every 8 s, and a return takes 1.5 s
	}
	assert.GreaterOrEqual(t, float64(got.accepted), least*allowed)
	assert.LessOrEqual(t, got.refused, got.accepted/50)
	assert.Less(t, got.pause, 8*time.Second)
}

func startProcess(t *testing.T, env []string) *exec.Cmd {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env, process.Stderr = env, os.Stderr
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
	return process
}

// fleetMeasures are what a span of a run comes to.
type fleetMeasures struct {
	accepted, refused int
	pause             time.Duration
	at                []time.Time
}

func measure(calls []fakeserver.Call, from, to time.Time) (got fleetMeasures) {
	last := from
	for _, call := range calls {
		switch {
		case call.Time.Before(from) || call.Time.After(to):
		case call.Status == http.StatusTooManyRequests:
			got.refused++
		default:
			got.accepted++
			got.pause, last = max(got.pause, call.Time.Sub(last)), call.Time
			got.at = append(got.at, call.Time)
		}
	}
	return got
}

// parts says when the calls were accepted.
func (m fleetMeasures) parts(begin time.Time, part time.Duration) string {
	var counts [11]int
	for _, at := range m.at {
		counts[min(10, at.Sub(begin)/part)]++
	}
	return fmt.Sprint(slices.Collect(slices.Values(counts[2:10])))
}
