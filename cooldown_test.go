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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// gateway answers each endpoint with 429 until its time, by the clock of the
// bubble, and notes when requests came.
type gateway struct {
	mu    sync.Mutex
	until map[string]time.Time // by method and path, or path only
	key   string               // limit_key; empty: none
	came  []time.Time
}

func (g *gateway) RoundTrip(req *http.Request) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.came = append(g.came, time.Now())
	s := &stub{answers: []answer{{status: 200, body: anyReply}}}
	if left := time.Until(g.until[req.URL.Path]); left > 0 {
		body := `{"error":"rate_limited"}`
		if g.key != "" {
			body = fmt.Sprintf(`{"error":"rate_limited","limit_key":%q}`, g.key)
		}
		s.answers = []answer{{status: 429, header: retryAfter(fmt.Sprint(left.Seconds())), body: body}}
	}
	return s.RoundTrip(req)
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

const agentPath, messagesPath, agentsPath = "/v1/agents/agent_1", "/v1/agents/agent_1/messages", "/v1/agents"

func jitterOf(random float64) agentmessaging.Option {
	return agentmessaging.WithRandom(func() float64 { return random })
}

// impatient returns a 429 at once instead of waiting for it, and so begins a
// cool-down without waiting it out.
func impatient(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 500*time.Millisecond)
}

// wantRefused makes one call that is answered 429 by the service, or here.
func wantRefused(t *testing.T, client *agentmessaging.Client, local bool, do func(context.Context, *agentmessaging.Client) error) *agentmessaging.Error {
	t.Helper()
	ctx, cancel := impatient(t)
	defer cancel()
	err := do(ctx, client)
	var failure *agentmessaging.Error
	require.ErrorAs(t, err, &failure)
	require.ErrorIs(t, err, agentmessaging.ErrRateLimited)
	require.Equal(t, local, failure.Local)
	return failure
}

func creating(ctx context.Context, client *agentmessaging.Client) error {
	_, err := client.CreateAgent(ctx, create{})
	return err
}

func creatingWithKey(ctx context.Context, client *agentmessaging.Client) error {
	_, err := client.CreateAgent(ctx, create{LLM: llm{Provider: "openai", APIKey: "provider-canary"}})
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
			client := newClient(t, service, jitterOf(tt.random))
			service.close(20*time.Second, agentPath)
			begin := time.Now()
			assert.Equal(t, 20*time.Second, wantRefused(t, client, false, get).RetryAfter)
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

// TestCoolDownLearnsWhatALimitCovers, from where its key was seen.
func TestCoolDownLearnsWhatALimitCovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: "key_minute"}
		client := newClient(t, service, jitterOf(0))
		service.close(time.Minute, agentPath)
		wantRefused(t, client, false, get)
		require.NoError(t, post(t.Context(), client), "not seen there yet")
		time.Sleep(10 * time.Second)
		service.close(20*time.Second, messagesPath)
		wantRefused(t, client, false, post)
		assert.Equal(t, 50*time.Second, wantRefused(t, client, true, post).RetryAfter, "it joins the cool-down that runs")

		time.Sleep(time.Hour)
		require.NoError(t, post(t.Context(), client))
		service.close(time.Minute, agentPath)
		wantRefused(t, client, false, get)
		sent := service.count()
		wantRefused(t, client, true, post) // known by now
		assert.Equal(t, sent, service.count())
		require.NoError(t, creating(t.Context(), client))
	})
}

// TestCoolDownWithoutLimitKeyIsOfTheEndpoint that saw it.
func TestCoolDownWithoutLimitKeyIsOfTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{}
		client := newClient(t, service)
		service.close(time.Minute, agentPath, messagesPath)
		wantRefused(t, client, false, get)
		wantRefused(t, client, false, post)
		time.Sleep(time.Hour)
		service.close(time.Minute, agentPath)
		wantRefused(t, client, false, get)
		assert.Empty(t, wantRefused(t, client, true, get).LimitKey)
		assert.NoError(t, post(t.Context(), client))
	})
}

// TestCoolDownOfBYOKSetsLeavesPlainCreation alone.
func TestCoolDownOfBYOKSetsLeavesPlainCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t)
		fake.Exhaust(fake.Key(), fakeserver.LimitBYOKSetKeyHour)
		client := clientOf(t, fake, fake.Key())
		wantRefused(t, client, false, creatingWithKey)
		wantRefused(t, client, true, creatingWithKey)
		assert.NoError(t, creating(t.Context(), client))
	})
}

// TestCoolDownRefusesAtOnce where the wait would be too long, and nothing is
// sent.
func TestCoolDownRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: "key_day"}
		client := newClient(t, service, jitterOf(0.999), agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: time.Minute}))
		service.close(61*time.Second, agentPath)
		require.Equal(t, 1, wantRefused(t, client, false, get).Attempts)
		time.Sleep(time.Second - 1)

		var info agentmessaging.CallInfo
		begin := time.Now()
		err := get(agentmessaging.WithCallInfo(t.Context(), &info), client)
		var refused *agentmessaging.Error
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "429 rate_limited key_day 1m0.000000001s GET /v1/agents/{agent_id} true", fmt.Sprint(refused.StatusCode, " ",
			refused.Code, " ", refused.LimitKey, " ", refused.RetryAfter, " ", refused.Method, " ", refused.Path, " ", refused.Local))
		assert.ErrorContains(t, err, "refused here by the cool-down, limit key_day")
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

// TestCoolDownJitterStaysBeforeTheDeadline.
func TestCoolDownJitterStaysBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{}
		client := newClient(t, service, jitterOf(0.999))
		service.close(time.Minute, agentPath)
		wantRefused(t, client, false, get)
		ctx, cancel := context.WithTimeout(t.Context(), 61*time.Second)
		defer cancel()
		begin := time.Now()
		assert.NoError(t, get(ctx, client))
		assert.InDelta(t, 60.5, time.Since(begin).Seconds(), 0.001)
	})
}

// TestCoolDownRefusesARetry: an attempt that was made and a retry that
// was refused here.
func TestCoolDownRefusesARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: "k"}
		client := newClient(t, service, jitterOf(0))
		service.close(10*time.Second, agentPath)
		go func() { // another endpoint of the limit tells of the hour
			time.Sleep(6 * time.Second)
			service.close(time.Hour, messagesPath)
			wantRefused(t, client, false, post)
		}()
		err := get(t.Context(), client)
		var failure *agentmessaging.Error
		require.ErrorAs(t, err, &failure)
		assert.True(t, failure.Local)
		assert.Equal(t, 1, failure.Attempts)
		assert.Equal(t, time.Hour-4*time.Second, failure.RetryAfter)
		assert.Equal(t, 2, service.count())
	})
}

// TestCoolDownIsCancelled: a caller that leaves is not kept.
func TestCoolDownIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{}
		client := newClient(t, service)
		service.close(time.Minute, agentPath, messagesPath)
		wantRefused(t, client, false, get)
		wantRefused(t, client, false, post)
		reason := errors.New("the user left")
		for _, do := range []func(context.Context, *agentmessaging.Client) error{get, post} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(3*time.Second, func() { cancel(reason) })
			var info agentmessaging.CallInfo
			begin := time.Now()
			err := do(agentmessaging.WithCallInfo(ctx, &info), client)
			assert.Equal(t, wantError, outcomeOf(t, err))
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, err, reason)
			assert.Equal(t, 3*time.Second, time.Since(begin))
			assert.Equal(t, 3*time.Second, info.Waited)
			assert.Zero(t, info.Attempts)
		}
		assert.Equal(t, 2, service.count())
	})
}

// TestCoolDownProlongedWhileParked: who wakes up looks again.
func TestCoolDownProlongedWhileParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: "k"}
		client := newClient(t, service, jitterOf(0))
		service.close(10*time.Second, agentPath)
		begin := time.Now()
		wantRefused(t, client, false, get)
		go func() {
			time.Sleep(9 * time.Second)
			service.close(30*time.Second, agentPath, messagesPath)
			wantRefused(t, client, false, post)
		}()
		require.NoError(t, get(t.Context(), client))
		assert.Equal(t, 39*time.Second, time.Since(begin))
		assert.Equal(t, 3, service.count())
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
			require.NoError(t, get(agentmessaging.WithCallInfo(t.Context(), &info), newClient(t, service, jitterOf(random))))
			assert.InDelta(t, 20+2.25*random, time.Since(begin).Seconds(), 0.001)
			assert.Equal(t, time.Since(begin), info.Waited)
			assert.Equal(t, 2, info.Attempts)
		})
	}
}

// TestWithoutCoolDown.
func TestWithoutCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: "k"}
		client := newClient(t, service, agentmessaging.WithoutCoolDown())
		service.close(time.Minute, agentPath)
		wantRefused(t, client, false, get)
		wantRefused(t, client, false, get)
		assert.Equal(t, 2, service.count())
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
			return fake.BaseURL(), agentmessaging.WithHTTPClient(&http.Client{Transport: fake.Direct()})
		},
		"wrapped": func(t *testing.T, fake *fakeserver.Server) (string, agentmessaging.Option) {
			transport := struct{ http.RoundTripper }{fake.HTTPClient(t).Transport}
			return fake.BaseURL(), agentmessaging.WithHTTPClient(&http.Client{Transport: transport})
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
			wantRefused(t, client, false, get)
			left := wantRefused(t, client, true, get).RetryAfter
			assert.InDelta(t, 24*time.Hour, left, float64(time.Minute))
			fake.Advance(time.Hour / 2)
			assert.InDelta(t, 23*time.Hour+time.Hour/2, wantRefused(t, client, true, get).RetryAfter, float64(time.Minute))
			assert.Equal(t, 1, fake.CallCount())
			fake.Advance(24 * time.Hour)
			assert.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrNotFound)
			assert.Equal(t, 2, fake.CallCount())
		})
	}
}

// TestLongCoolDownIsLookedAt once an hour, by one call: the plan may have been
// upgraded.
func TestLongCoolDownIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: "key_day"}
		client := newClient(t, service, jitterOf(0))
		service.close(20*time.Hour, agentPath)
		wantRefused(t, client, false, get)
		for range 3 {
			wantRefused(t, client, true, get)
			time.Sleep(time.Hour)
			wantRefused(t, client, false, get)
			wantRefused(t, client, true, get)
		}
		service.close(0, agentPath)
		time.Sleep(time.Hour)
		require.NoError(t, get(t.Context(), client))
		require.NoError(t, get(t.Context(), client), "what let one pass is open")
		assert.Equal(t, 6, service.count())
	})
}

// TestCoolDownOpensForTheLookOfAPatientCaller, who would wait for a day.
func TestCoolDownOpensForTheLookOfAPatientCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: "key_day"}
		client := newClient(t, service, jitterOf(0), agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: 48 * time.Hour}))
		service.close(1_000_000*time.Hour, agentPath)
		wantRefused(t, client, false, get)
		service.close(0, agentPath)
		begin := time.Now()
		require.NoError(t, get(t.Context(), client))
		assert.Equal(t, time.Hour, time.Since(begin))
	})
}

// stopped is a clock that stands still, and on which nobody waits.
type stopped struct{ slept atomic.Int64 }

func (*stopped) Now() time.Time { return time.Unix(0, 0) }

func (s *stopped) Sleep(_ context.Context, d time.Duration) error {
	s.slept.Add(int64(d))
	return nil
}

// TestCoolDownUnderAClockThatStandsStill: a wait that was waited is over.
func TestCoolDownUnderAClockThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, clock := &gateway{key: "k"}, &stopped{}
		client := newClient(t, service, jitterOf(0), agentmessaging.WithClock(clock))
		service.close(20*time.Second, agentPath)
		wantRefused(t, client, false, get)
		service.close(0, agentPath)
		require.NoError(t, get(t.Context(), client))
		assert.EqualValues(t, 20*time.Second, clock.slept.Load())
	})
}

// TestCoolDownUnderAMinuteLimit: what is in flight is refused in one burst, and
// then nothing is sent until the minute is over.
func TestCoolDownUnderAMinuteLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t)
		agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
		client := clientOf(t, fake, fake.Key(), agentmessaging.WithTimeout(time.Hour))
		begin := time.Now()
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				for range 2 {
					_, err := client.GetAgent(t.Context(), agent.ID)
					assert.NoError(t, err)
				}
			})
		}
		group.Wait()
		bursts := map[time.Duration]int{}
		for _, made := range fake.Calls() {
			if made.Status == 429 {
				bursts[made.Time.Sub(begin.UTC()).Truncate(time.Minute)]++
			}
		}
		assert.LessOrEqual(t, bursts[0], 64)
		assert.Positive(t, bursts[0])
		assert.Len(t, bursts, int(time.Since(begin)/time.Minute), "a burst for each window but the last")
		assert.LessOrEqual(t, time.Since(begin), 3*time.Minute)
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
		wantRefused(t, client, false, get)
		wantRefused(t, client, true, get)
		require.NoError(t, get(t.Context(), client))
		service.close(time.Minute, agentPath)
		wantRefused(t, client, false, get)
	}
	for range 3 {
		synctest.Test(t, inside)
	}
	service.close(time.Hour, agentPath)
	wantRefused(t, client, false, get)
	wantRefused(t, client, true, get)
	synctest.Test(t, inside)
}

// TestCoolDownIsTold to observers and loggers once, and each wait to its call.
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
				assert.Equal(t, 64, len(e.LimitKey))
				assert.NotContains(t, e.LimitKey, "\n")
				assert.NotContains(t, e.LimitKey, testKey)
			case agentmessaging.LimiterWait:
				told = append(told, fmt.Sprintf("%s/%d waits %s", e.Endpoint.Name, e.Attempt, e.Wait))
			case agentmessaging.CallEnd:
				told = append(told, fmt.Sprintf("%s waited %s", e.Endpoint.Name, e.Waited))
			}
			return nil
		})
		service := &gateway{key: testKey + "\n" + strings.Repeat("k", 100)}
		client := newClient(t, service, jitterOf(0), agentmessaging.WithObserver(observer),
			agentmessaging.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
		service.close(20*time.Second, agentPath, messagesPath)
		wantRefused(t, client, false, get)
		wantRefused(t, client, false, post) // the same end: no news
		require.NoError(t, post(t.Context(), client))
		assert.Equal(t, []string{
			"GetAgent cools 20s", "GetAgent waited 0s", "SendMessage waited 0s",
			"SendMessage/1 waits 20s", "SendMessage waited 20s",
		}, told)
		assert.Equal(t, 1, strings.Count(out.String(), `level=INFO msg="agentmessaging cool-down" method=GET path=/v1/agents/{agent_id}`))
		assert.NotContains(t, out.String(), testKey)

		service.close(20*time.Second, agentPath)
		told = nil
		wantRefused(t, client, false, get)
		assert.NotContains(t, wantRefused(t, client, true, get).Error(), testKey)
	})
}
