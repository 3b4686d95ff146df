package redisquota_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
	"github.com/agent-messaging-service/agentmessaging-go/redisquota"
)

// records are the messages of a log.
type records chan string

func (records) Enabled(context.Context, slog.Level) bool { return true }
func (r records) WithAttrs([]slog.Attr) slog.Handler     { return r }
func (r records) WithGroup(string) slog.Handler          { return r }
func (r records) Handle(_ context.Context, record slog.Record) error {
	r <- record.Message
	return nil
}

// want waits for a message; the bound is for a machine that is very slow.
func (r records) want(tb testing.TB, part string) {
	tb.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case message := <-r:
			if strings.Contains(message, part) {
				return
			}
		case <-timeout:
			require.Fail(tb, "the pacer never said so", part)
		}
	}
}

// newPacer keeps a limit that a test does not reach.
func newPacer(tb testing.TB, c quota.Coordinator) (*agentmessaging.Pacer, records) {
	tb.Helper()
	log := make(records, 100)
	pacer, err := agentmessaging.NewPacer([]agentmessaging.Limit{{Key: "key_minute", Max: 6000, Window: time.Minute}},
		agentmessaging.WithCoordinator(c), agentmessaging.WithPacerLogger(slog.New(log)))
	require.NoError(tb, err)
	return pacer, log
}

// send acquires n permits, one after the other, and returns the longest wait.
func send(tb testing.TB, pacer *agentmessaging.Pacer, n int) (longest time.Duration) {
	tb.Helper()
	for range n {
		begin := time.Now()
		permit, err := pacer.Acquire(tb.Context(), agentmessaging.LimitedAttempt{Method: "GET", Path: "/v1/agents/{agent_id}", Number: 1})
		require.NoError(tb, err)
		longest = max(longest, time.Since(begin))
		permit.Done(agentmessaging.AttemptOutcome{StatusCode: http.StatusOK, Sent: true})
	}
	return longest
}

// TestOutages: the pacer goes on at once and comes back by itself, and Redis
// then knows of every call, whatever it did meanwhile.
func TestOutages(t *testing.T) {
	outages := map[string]func(context.Context) error{
		"refused": func(context.Context) error { return errors.New("dial unix: connection refused") },
		"hung": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"hung, and the client does not heed the context": func(context.Context) error {
			time.Sleep(10 * time.Second)
			return errors.New("i/o timeout")
		},
		"replica": func(context.Context) error {
			return errors.New("READONLY You can't write against a read only replica.")
		},
	}
	for name, fail := range outages {
		for _, flushed := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " and flushed"}[flushed], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testOutage(t, fail, flushed) })
			})
		}
	}
}

func testOutage(t *testing.T, fail func(context.Context) error, flushed bool) {
	model := &modelRedis{}
	c, err := redisquota.New(model, canary)
	require.NoError(t, err)
	pacer, log := newPacer(t, c)
	send(t, pacer, 5)
	model.set(fail, false)
	assert.LessOrEqual(t, send(t, pacer, 5), 250*time.Millisecond)
	log.want(t, "does not answer")
	model.set(nil, flushed)
	sent := 10
	for len(log) == 0 { // it looks for Redis when there are calls
		time.Sleep(time.Second)
		send(t, pacer, 1)
		synctest.Wait()
		sent++
	}
	assert.LessOrEqual(t, sent, 10+4, "seconds until it was back")
	log.want(t, "answers again")
	time.Sleep(10 * time.Second) // the client gives up, too
	assert.Equal(t, sent, model.known())
}

// TestFlushed: Redis answers, and has forgotten everything.
func TestFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := &modelRedis{}
		c, err := redisquota.New(model, canary)
		require.NoError(t, err)
		pacer, log := newPacer(t, c)
		send(t, pacer, 10)
		model.set(nil, true)
		time.Sleep(time.Second) // the new epoch is another time
		send(t, pacer, 1)
		synctest.Wait()
		log.want(t, "lost its state")
		assert.Equal(t, 11, model.known())
	})
}

// TestRealOutages do the same to a process, in real time.
func TestRealOutages(t *testing.T) {
	for name, outage := range map[string]struct{ begin, end func(testing.TB, *server) }{
		"killed": {
			func(_ testing.TB, s *server) { s.kill() },
			func(tb testing.TB, s *server) { s.start(tb) },
		},
		"stopped": {
			func(tb testing.TB, s *server) { s.freeze(tb) },
			func(tb testing.TB, s *server) { s.thaw(tb) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			server := newServer(t)
			pacer, log := newPacer(t, server.coordinator(t, canary))
			send(t, pacer, 10)
			outage.begin(t, server)
			assert.Less(t, send(t, pacer, 10), 2*time.Second) // 200 ms on a machine with time to spare
			log.want(t, "does not answer")
			outage.end(t, server)
			for len(log) == 0 {
				send(t, pacer, 1)
				time.Sleep(10 * time.Millisecond)
			}
			log.want(t, "answers again")
			assertLogged(t, server, 20)
		})
	}
}

// TestRealFlush: what was sent is in Redis again after the next step.
func TestRealFlush(t *testing.T) {
	server := newServer(t)
	pacer, log := newPacer(t, server.coordinator(t, canary))
	send(t, pacer, 10)
	require.NoError(t, server.client(t).FlushAll(t.Context()).Err())
	send(t, pacer, 1)
	log.want(t, "lost its state")
	assertLogged(t, server, 11)
}

// assertLogged waits until Redis knows of so many calls.
func assertLogged(t *testing.T, server *server, atLeast int64) {
	t.Helper()
	client := server.client(t)
	assert.Eventually(t, func() bool {
		logs := client.Keys(t.Context(), "*:log:*").Val()
		return len(logs) == 1 && client.ZCard(t.Context(), logs[0]).Val() >= atLeast
	}, time.Minute, 10*time.Millisecond)
}
