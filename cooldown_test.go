package agentmessaging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// gateway answers each path with 429 until its time, by the clock of the
// bubble, and notes when requests came.
type gateway struct {
	mu    sync.Mutex
	until map[string]time.Time
	key   string // limit_key; empty: none
	came  []time.Time
}

func (g *gateway) RoundTrip(req *http.Request) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.came = append(g.came, time.Now())
	if left := time.Until(g.until[req.URL.Path]); left > 0 {
		return answering(clienttest.Limited(fmt.Sprint(left.Seconds()), g.key)).RoundTrip(req)
	}
	return answering(clienttest.OK).RoundTrip(req)
}

func (g *gateway) close(d time.Duration, paths ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until == nil {
		g.until = map[string]time.Time{}
	}
	for _, path := range paths {
		g.until[path] = time.Now().Add(d)
	}
}

func (g *gateway) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.came)
}

// The paths that get and post call.
const agentPath, messagesPath = "/v1/agents/agent_1", "/v1/agents/agent_1/messages"

// Who refused a call.
const here, there = true, false

// wantRefused makes one call that is refused by the service or here. The caller
// is too impatient to wait for the end of a cool-down.
func wantRefused(t *testing.T, client *agentmessaging.Client, local bool, do clienttest.Do) *agentmessaging.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := do(ctx, client)
	var failure *agentmessaging.Error
	require.ErrorAs(t, err, &failure)
	require.ErrorIs(t, err, agentmessaging.ErrRateLimited)
	require.Equal(t, local, failure.Local, "refused here")
	return failure
}

func creating(ctx context.Context, client *agentmessaging.Client) error {
	_, err := client.CreateAgent(ctx, create{})
	return err
}

// TestCoolDownParksCallers: none of them is sent before Retry-After has
// passed, all of them are behind it, and jitter is only later.
func TestCoolDownParksCallers(t *testing.T) {
	for _, tt := range []struct {
		random float64
		last   time.Duration
	}{{0, 20 * time.Second}, {0.999, 22*time.Second + 250*time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			service := &gateway{key: "key_minute"}
			client := newClient(t, service, clienttest.Jitter(tt.random))
			service.close(20*time.Second, agentPath)
			begin := time.Now()
			assert.Equal(t, 20*time.Second, wantRefused(t, client, there, get).RetryAfter)
			var group sync.WaitGroup
			for range 50 {
				group.Go(func() {
					var info agentmessaging.CallInfo
					assert.NoError(t, get(agentmessaging.WithCallInfo(t.Context(), &info), client))
					assert.Equal(t, time.Since(begin), info.Waited)
					assert.Equal(t, 1, info.Attempts)
				})
			}
			group.Wait()
			require.Len(t, service.came, 51)
			for _, at := range service.came[1:] {
				assert.GreaterOrEqual(t, at.Sub(begin), 20*time.Second)
				assert.LessOrEqual(t, at.Sub(begin), tt.last)
				assert.Equal(t, tt.random == 0, at.Sub(begin) == 20*time.Second)
			}
		})
	}
}

// TestCoolDownLearnsWhatALimitCovers from where its key was seen; without a key
// it is of the endpoint.
func TestCoolDownLearnsWhatALimitCovers(t *testing.T) {
	for _, key := range []string{"key_minute", ""} {
		synctest.Test(t, func(t *testing.T) {
			service := &gateway{key: key}
			client := newClient(t, service, clienttest.Jitter(0))
			service.close(time.Minute, agentPath)
			wantRefused(t, client, there, get)
			require.NoError(t, post(t.Context(), client), "not seen there yet")
			service.close(20*time.Second, messagesPath)
			wantRefused(t, client, there, post)
			time.Sleep(time.Hour)

			require.NoError(t, post(t.Context(), client))
			service.close(time.Minute, agentPath)
			assert.Equal(t, key, wantRefused(t, client, there, get).LimitKey)
			if key == "" {
				assert.NoError(t, post(t.Context(), client))
				return
			}
			wantRefused(t, client, here, post) // known by now
			assert.NoError(t, creating(t.Context(), client))
		})
	}
}

// TestCoolDownOfBYOKSetsLeavesPlainCreation alone.
func TestCoolDownOfBYOKSetsLeavesPlainCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t)
		fake.Exhaust(fake.Key(), fakeserver.LimitBYOKSetKeyHour)
		client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(fake.HTTPClient(t)))
		require.NoError(t, err)
		withKey := func(ctx context.Context, client *agentmessaging.Client) error {
			_, err := client.CreateAgent(ctx, create{LLM: llm{Provider: "openai", APIKey: "provider-canary"}})
			return err
		}
		wantRefused(t, client, there, withKey)
		wantRefused(t, client, here, withKey)
		assert.NoError(t, creating(t.Context(), client))
	})
}

// TestCoolDownRefusesAtOnce where the wait would be too long, and nothing is
// sent.
func TestCoolDownRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: "key_day"}
		client := newClient(t, service, clienttest.Jitter(0.999), agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: time.Minute}))
		service.close(61*time.Second, agentPath)
		require.Equal(t, 1, wantRefused(t, client, there, get).Attempts)
		time.Sleep(time.Second - 1)

		var info agentmessaging.CallInfo
		begin := time.Now()
		err := get(agentmessaging.WithCallInfo(t.Context(), &info), client)
		assert.EqualError(t, err, "agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited: the longest wait that the RetryPolicy allows is 1 m,"+
			" its turn in 1 m (refused here by the cool-down, limit key_day, retry after 1 m, trace trace_1)")
		assert.Zero(t, info.Attempts+int(time.Since(begin)))
		assert.Equal(t, 1, service.count())

		time.Sleep(time.Nanosecond) // now as long as MaxWait, and so without room for jitter
		deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, get(deadline, client), agentmessaging.ErrRateLimited, "the deadline is as near as the end")
		nearly, cancel := context.WithTimeout(t.Context(), time.Minute+1)
		defer cancel()
		require.NoError(t, get(nearly, client))
		assert.Equal(t, time.Minute, time.Since(begin)-1)
		assert.Equal(t, 2, service.count())
	})
}

// TestLocalRefusalSaysWhatItCollidedWith, and which answer is behind it.
func TestLocalRefusalSaysWhatItCollidedWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, answering(clienttest.Limited("420", "key_day")), agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: time.Hour}))
		wantRefused(t, client, there, get)
		ctx, cancel := context.WithTimeout(t.Context(), 299*time.Second)
		defer cancel()
		assert.EqualError(t, get(ctx, client), "agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited: the call's deadline is in 4 m 59 s,"+
			" its turn in 7 m (refused here by the cool-down, limit key_day, retry after 7 m, trace trace_1)")
	})
}

// TestCoolDownJitterStaysBeforeTheDeadline.
func TestCoolDownJitterStaysBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{}
		client := newClient(t, service, clienttest.Jitter(0.999))
		service.close(time.Minute, agentPath)
		wantRefused(t, client, there, get)
		ctx, cancel := context.WithTimeout(t.Context(), 61*time.Second)
		defer cancel()
		begin := time.Now()
		assert.NoError(t, get(ctx, client))
		assert.InDelta(t, 60.5, time.Since(begin).Seconds(), 0.001)
	})
}

// TestCoolDownProlonged while a caller is parked, or waits to try again, by
// what another endpoint of the limit was told: who wakes up looks again.
func TestCoolDownProlonged(t *testing.T) {
	for _, tt := range []struct {
		parked  bool
		by      time.Duration // at 9 s
		refused time.Duration // 0: it succeeds
		after   time.Duration
	}{
		{parked: true, by: 30 * time.Second, after: 39 * time.Second},
		{parked: false, by: 30 * time.Second, after: 39 * time.Second},
		{parked: true, by: time.Hour, refused: time.Hour - time.Second, after: 10 * time.Second},
		{parked: false, by: time.Hour, refused: time.Hour - time.Second, after: 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			service := &gateway{key: "k"}
			client := newClient(t, service, clienttest.Jitter(0))
			service.close(10*time.Second, agentPath)
			begin := time.Now()
			if tt.parked {
				wantRefused(t, client, there, get)
			}
			go func() {
				time.Sleep(9 * time.Second)
				service.close(tt.by, agentPath, messagesPath)
				wantRefused(t, client, there, post)
			}()
			err := get(t.Context(), client)
			assert.Equal(t, tt.refused == 0, err == nil, "%+v: %v", tt, err)
			told, _ := agentmessaging.RetryAfter(err)
			assert.Equal(t, tt.refused, told)
			assert.Equal(t, tt.after, time.Since(begin))
		})
	}
}

// TestCoolDownIsCancelled: a caller that leaves is not kept.
func TestCoolDownIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{}
		client := newClient(t, service)
		service.close(time.Minute, messagesPath)
		wantRefused(t, client, there, post)
		reason := errors.New("the user left")
		var info agentmessaging.CallInfo
		ctx, cancel := context.WithCancelCause(agentmessaging.WithCallInfo(t.Context(), &info))
		time.AfterFunc(3*time.Second, func() { cancel(reason) })
		begin := time.Now()
		err := post(ctx, client)
		assert.Equal(t, clienttest.NoAnswer, clienttest.Outcome(err), "nothing was sent")
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, reason)
		assert.Equal(t, []time.Duration{3 * time.Second, 3 * time.Second, 0}, []time.Duration{time.Since(begin), info.Waited, time.Duration(info.Attempts)})
		assert.Equal(t, 1, service.count())
	})
}

// TestCoolDownDoesNotDoubleTheWait of the call that was refused.
func TestCoolDownDoesNotDoubleTheWait(t *testing.T) {
	for _, random := range []float64{0, 0.999} {
		synctest.Test(t, func(t *testing.T) {
			service := &gateway{key: "k"}
			service.close(20*time.Second, agentPath)
			var info agentmessaging.CallInfo
			begin := time.Now()
			require.NoError(t, get(agentmessaging.WithCallInfo(t.Context(), &info), newClient(t, service, clienttest.Jitter(random))))
			assert.InDelta(t, 20+2.25*random, time.Since(begin).Seconds(), 0.001)
			assert.Equal(t, time.Since(begin), info.Waited)
			assert.Equal(t, 2, info.Attempts)
		})
	}
}

// TestWithoutCoolDownARefusalThatTellsNothing is waited out for a second.
func TestWithoutCoolDownARefusalThatTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		client := newClient(t, answering(clienttest.Limited("", ""), clienttest.OK), clienttest.Jitter(0), agentmessaging.WithoutCoolDown())
		require.NoError(t, get(t.Context(), client))
		assert.Equal(t, time.Second, time.Since(begin))
	})
}

// TestAdvanceEndsTheCoolDown of a client that has the fake's clock, or hears it
// from the fake's connections.
func TestAdvanceEndsTheCoolDown(t *testing.T) {
	for name, connect := range map[string]func(*testing.T, *fakeserver.Server) (string, agentmessaging.Option){
		"wire": func(t *testing.T, fake *fakeserver.Server) (string, agentmessaging.Option) {
			return fake.BaseURL(), agentmessaging.WithHTTPClient(fake.HTTPClient(t))
		},
		"direct": func(_ *testing.T, fake *fakeserver.Server) (string, agentmessaging.Option) {
			return fake.BaseURL(), clienttest.Through(fake.Direct())
		},
		"wrapped": func(t *testing.T, fake *fakeserver.Server) (string, agentmessaging.Option) {
			return fake.BaseURL(), clienttest.Through(struct{ http.RoundTripper }{fake.HTTPClient(t).Transport})
		},
		"socket": func(t *testing.T, fake *fakeserver.Server) (string, agentmessaging.Option) {
			server := httptest.NewServer(fake)
			t.Cleanup(server.Close)
			return server.URL, agentmessaging.WithClock(fake)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fake := fakeserver.New(t)
			fake.Advance(48 * time.Hour) // its clock and the machine's are apart from the start
			url, opt := connect(t, fake)
			client, err := agentmessaging.NewClient(url, fake.Key(), opt)
			require.NoError(t, err)
			fake.Exhaust(fake.Key(), fakeserver.LimitKeyDay)
			wantRefused(t, client, there, get)
			fake.Advance(time.Hour / 2)
			assert.InDelta(t, 23*time.Hour+time.Hour/2, wantRefused(t, client, here, get).RetryAfter, float64(time.Minute))
			assert.Equal(t, 1, fake.CallCount())
			fake.Advance(24 * time.Hour)
			assert.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrNotFound)
			assert.Equal(t, 2, fake.CallCount())
		})
	}
}

// TestLongCoolDownIsLookedAt once an hour, by one call, which may be a patient
// one: the plan may have been upgraded.
func TestLongCoolDownIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: "key_day"}
		client := newClient(t, service, clienttest.Jitter(0))
		service.close(20*time.Hour, agentPath)
		wantRefused(t, client, there, get)
		for range 3 {
			wantRefused(t, client, here, get)
			time.Sleep(time.Hour)
			wantRefused(t, client, there, get)
			wantRefused(t, client, here, get)
		}
		service.close(0, agentPath)
		patient, err := client.With(agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: 48 * time.Hour}))
		require.NoError(t, err)
		begin := time.Now()
		require.NoError(t, get(t.Context(), patient))
		assert.Equal(t, time.Hour, time.Since(begin))
		require.NoError(t, get(t.Context(), client), "what let one pass is open")
		assert.Equal(t, 6, service.count())
	})
}

// stopped is a clock that stands still, and on which nobody waits.
type stopped struct{ slept time.Duration }

func (*stopped) Now() time.Time  { return time.Unix(0, 0) }
func (*stopped) Random() float64 { return 0 }

func (s *stopped) Sleep(_ context.Context, d time.Duration) error {
	s.slept += d
	return nil
}

// TestCoolDownUnderAClockThatStandsStill: a wait that was waited is over.
func TestCoolDownUnderAClockThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, clock := &gateway{key: "k"}, &stopped{}
		client := newClient(t, service, agentmessaging.WithClock(clock))
		service.close(20*time.Second, agentPath)
		wantRefused(t, client, there, get)
		service.close(0, agentPath)
		require.NoError(t, get(t.Context(), client))
		assert.Equal(t, 20*time.Second, clock.slept)
	})
}

// TestCoolDownInSeveralBubbles: the client is made outside, and what was seen
// by the clock of one bubble holds up nobody by that of another.
func TestCoolDownInSeveralBubbles(t *testing.T) {
	service := &gateway{key: "k"}
	client := newClient(t, service)
	inside := func(t *testing.T) {
		time.Sleep(time.Hour)
		service.close(time.Minute, agentPath)
		wantRefused(t, client, there, get)
		wantRefused(t, client, here, get)
		require.NoError(t, get(t.Context(), client))
		service.close(time.Minute, agentPath)
		wantRefused(t, client, there, get)
	}
	for range 3 {
		synctest.Test(t, inside)
	}
	service.close(time.Hour, agentPath)
	wantRefused(t, client, there, get)
	wantRefused(t, client, here, get)
	synctest.Test(t, inside)
}

// TestCoolDownIsTold to observers and loggers once, and each wait to its call.
// A limit_key is foreign text: short, on one line, without the key.
func TestCoolDownIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			told []string
			out  bytes.Buffer
		)
		observer := agentmessaging.ObserverFunc(func(_ context.Context, event agentmessaging.Event) context.Context {
			switch e := event.(type) {
			case agentmessaging.CoolDown:
				told = append(told, fmt.Sprintf("%s cools %s", e.Endpoint.Name, e.Wait))
				assert.Len(t, e.LimitKey, 64)
				assert.Regexp(t, `^\[redacted\] kkk`, e.LimitKey)
			case agentmessaging.LimiterWait:
				told = append(told, fmt.Sprintf("%s/%d waits %s", e.Endpoint.Name, e.Attempt, e.Wait))
			case agentmessaging.CallEnd:
				told = append(told, fmt.Sprintf("%s waited %s", e.Endpoint.Name, e.Waited))
			}
			return nil
		})
		service := &gateway{key: clienttest.Key + `\n` + strings.Repeat("k", 100)}
		client := newClient(t, service, clienttest.Jitter(0), agentmessaging.WithObserver(observer),
			agentmessaging.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
		service.close(20*time.Second, agentPath, messagesPath)
		wantRefused(t, client, there, get)
		wantRefused(t, client, there, post) // the same end: no news
		assert.NotContains(t, wantRefused(t, client, here, post).Error(), clienttest.Key)
		require.NoError(t, post(t.Context(), client))
		assert.Equal(t, []string{
			"GetAgent cools 20s", "GetAgent waited 0s", "SendMessage waited 0s", "SendMessage waited 0s",
			"SendMessage/1 waits 20s", "SendMessage waited 20s",
		}, told)
		assert.Equal(t, 1, strings.Count(out.String(), `level=INFO msg="agentmessaging cool-down" method=GET path=/v1/agents/{agent_id}`))
		assert.NotContains(t, out.String(), clienttest.Key)
	})
}
