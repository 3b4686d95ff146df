package traffic

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/testoption"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// batch is a service so far away, and who sends 500 messages to it at once.
type batch struct {
	clients    int
	way, reply time.Duration // at most

	*service
	begin  time.Time
	mu     sync.Mutex // guards random
	random *rand.Rand
}

// pause takes part of a time.
func (b *batch) pause(most time.Duration) { time.Sleep(time.Duration(b.Random() * float64(most))) }

// Random decides the jitter of its clients.
func (b *batch) Random() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.random.Float64()
}

func (b *batch) RoundTrip(*http.Request) (*http.Response, error) {
	b.pause(b.way)
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"reply_text": "Hi", "trace_id": "t"}`))}
	if wait := b.call(Message, time.Since(b.begin)); wait > 0 {
		answer.StatusCode = http.StatusTooManyRequests
		answer.Header.Set("Retry-After", fmt.Sprint(retryAfter(wait).Seconds()))
		return answer, nil
	}
	b.pause(b.reply)
	return answer, nil
}

// lose sends the messages, and returns how many were refused to the last.
func (b *batch) lose(t *testing.T) int {
	b.begin = time.Now()
	var refused atomic.Int32
	var group sync.WaitGroup
	for range b.clients {
		client, err := agentmessaging.NewClient("https://service.invalid", "key", agentmessaging.WithHTTPClient(&http.Client{Transport: b}), testoption.WithRandom(b.Random).(agentmessaging.Option))
		require.NoError(t, err)
		for range 500 / b.clients {
			group.Go(func() {
				if _, err := client.SendMessage(t.Context(), "agent", agentmessaging.MessageParams{Text: "Hello"}); err != nil {
					refused.Add(1)
				}
			})
		}
	}
	group.Wait()
	return int(refused.Load())
}

// TestBatch: of 500 messages, where 60 may go in a minute, clients without any
// option that concerns limits lose none on fixed windows. Of a window that slides, or
// that others use too, a client can only guess what is free: some messages meet
// three refusals.
func TestBatch(t *testing.T) {
	if raceDetector() {
		t.Skip("500 timers of one moment end the race detector of Go 1.26 in a bubble, by SIGSEGV")
	}
	const way, soon, late = 100 * time.Millisecond, 100 * time.Millisecond, 3 * time.Second
	for _, model := range Models {
		for name, tt := range map[string]struct {
			*batch
			lost int // at most, unless windows are fixed
		}{
			"quick":        {&batch{clients: 1, way: way, reply: soon}, 10},
			"slow":         {&batch{clients: 1, way: way, reply: late}, 40},
			"two programs": {&batch{clients: 2, way: way, reply: late}, 90},
		} {
			t.Run(string(model)+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					tt.service, tt.random = model.service(pacer.Limit{Max: 60, Window: time.Minute}), rand.New(rand.NewPCG(1, 1))
					lost := tt.lose(t)
					if tt.clients == 1 && (model == Fixed || model == FromUse) {
						assert.Zero(t, lost, "messages lost")
					}
					assert.LessOrEqual(t, lost, tt.lost, "messages lost")
					assert.Less(t, time.Since(tt.begin), 30*time.Minute, "of 7 that it takes at least")
				})
			})
		}
	}
}

// raceDetector reports whether the test was built with -race.
func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
