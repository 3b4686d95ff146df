package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// TestCoolDownRefusesAtOnce where the wait would be longer than the policy or the
// deadline allows, says so, and which answer was before it. Nothing is sent.
func TestCoolDownRefusesAtOnce(t *testing.T) {
	const refusal = "agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited: %s (refused here by the cool-down, limit key_day, retry after 7m0s, trace trace_1)"
	for maxWait, says := range map[time.Duration]string{
		time.Minute: "the next attempt is due in 7m0s, later than the RetryPolicy waits (1m0s)",
		time.Hour:   "the next attempt is due in 7m0s, after the call's deadline (4m59s)",
	} {
		policy := agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: maxWait})
		limited(t, "key_day", options{policy}, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
			service.close(7*time.Minute, agentPath)
			wantRefused(t, client, there, get)
			ctx, cancel := context.WithTimeout(t.Context(), 299*time.Second)
			defer cancel()
			begin := time.Now()
			assert.EqualError(t, get(ctx, client), fmt.Sprintf(refusal, says))
			assert.Zero(t, time.Since(begin))
			assert.Equal(t, 1, service.count())
		})
	}
}

// TestCoolDownIsCancelled: a caller that leaves is not kept.
func TestCoolDownIsCancelled(t *testing.T) {
	limited(t, "", nil, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
		service.close(time.Minute, messagesPath)
		wantRefused(t, client, there, post)
		reason := errors.New("the user left")
		var info agentmessaging.CallInfo
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(reason) })
		go func() { assert.ErrorIs(t, post(ctx, client), reason, "who leaves at the same moment") }()
		err := post(agentmessaging.WithCallInfo(ctx, &info), client)
		assert.Equal(t, noAnswer, outcome(err), "nothing was sent")
		assert.ErrorContains(t, err, "in line for a limit: context canceled")
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, reason)
		assert.Equal(t, agentmessaging.CallInfo{Waited: 3 * time.Second}, info)
		assert.Equal(t, 1, service.count())
	})
}

// TestCoolDownIsTold once, and each wait to its call. A limit_key is foreign
// text: it is shown on one line of 64 bytes, without the key.
func TestCoolDownIsTold(t *testing.T) {
	var events []agentmessaging.Event
	limited(t, testKey+`\n`+strings.Repeat("k", 100), nil, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
		_, events = eventsOf(func(observer agentmessaging.Option) {
			client, err := client.With(observer)
			require.NoError(t, err)
			service.close(20*time.Second, agentPath, messagesPath)
			wantRefused(t, client, there, get)
			wantRefused(t, client, there, post) // the same end: no news
			assert.NotContains(t, wantRefused(t, client, here, post).Error(), testKey)
			wantAfter(t, 20*time.Second, client, post)
		})
	})
	var told []string
	for _, event := range events {
		switch e := event.(type) {
		case agentmessaging.CoolDown:
			told = append(told, fmt.Sprint(e.Endpoint.Name, " cools ", e.Wait, e.LimitKey))
		case agentmessaging.LimiterWait:
			told = append(told, fmt.Sprint(e.Endpoint.Name, " waits ", e.Wait, e.LimitKey))
		}
	}
	key := "[redacted] " + strings.Repeat("k", 50) + "..."
	assert.Equal(t, []string{"GetAgent cools 20s" + key, "SendMessage waits 20s" + key}, told)
}

// limiterStub records what it is told, after a wait, and refuses if it has a
// refusal.
type limiterStub struct {
	wait      time.Duration
	refusal   error
	mu        sync.Mutex
	asked     []agentmessaging.LimitedAttempt
	done      []agentmessaging.AttemptOutcome
	deadlines []bool // whether ctx had one
}

func (l *limiterStub) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	time.Sleep(l.wait)
	_, has := ctx.Deadline()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked, l.deadlines = append(l.asked, attempt), append(l.deadlines, has)
	if l.refusal != nil {
		return nil, l.refusal
	}
	return l, nil
}

func (l *limiterStub) Done(outcome agentmessaging.AttemptOutcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, outcome)
}

func TestLimiterIsAskedForEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &limiterStub{}
		transport := answering(notDialed, tooMany("3", "key_minute"), okAnswer)
		_, err := newClient(t, transport, agentmessaging.WithLimiter(limiter)).CreateAgent(t.Context(), create{
			LLM: llm{Provider: agentmessaging.ProviderOpenAI, APIKey: "provider-canary"},
		})
		require.NoError(t, err)
		attempt := agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents", Number: 1, SetsBYOK: true, MaxWait: 90 * time.Second}
		second, third := attempt, attempt
		second.Number, third.Number = 2, 3
		assert.Equal(t, []agentmessaging.LimitedAttempt{attempt, second, third}, limiter.asked)
		assert.Equal(t, []agentmessaging.AttemptOutcome{
			{},
			{StatusCode: 429, Sent: true, LimitKey: "key_minute", RetryAfter: 3 * time.Second},
			{StatusCode: 200, Sent: true},
		}, limiter.done)
	})
}

// TestLimiterIsToldWhatSetsBYOK: SetBYOK, and CreateAgent with a key only.
func TestLimiterIsToldWhatSetsBYOK(t *testing.T) {
	limiter := &limiterStub{}
	client := newClient(t, answering(okAnswer), agentmessaging.WithLimiter(limiter))
	for i, call := range endpoints {
		require.NoError(t, call.call(t.Context(), client), call.name)
		assert.Equal(t, call.name == "SetBYOK", limiter.asked[i].SetsBYOK, call.name)
	}
}

// TestLimiterWaitIsNoPartOfTheTimeout, neither of the call's nor of the
// attempt's: here a minute for each of three attempts.
func TestLimiterWaitIsNoPartOfTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &limiterStub{wait: time.Minute}
		transport := answering(notDialed, notDialed, okAnswer)
		client := clientAt(t, serviceURL, agentmessaging.WithLimiter(limiter), agentmessaging.WithTimeout(10*time.Second),
			agentmessaging.WithHTTPClient(&http.Client{Transport: transport, Timeout: time.Second}))
		var info agentmessaging.CallInfo
		require.NoError(t, get(agentmessaging.WithCallInfo(t.Context(), &info), client))
		assert.Len(t, transport.Sent(), 3)
		assert.Greater(t, info.Waited, 3*time.Minute)
		assert.Equal(t, []bool{false, false, false}, limiter.deadlines)

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, get(ctx, client))
		assert.True(t, limiter.deadlines[3], "the caller's own")
	})
}

// TestLimiterIsAskedAfterTheCoolDown, and the cool-down again where the limiter
// made the call wait; its permit goes back if that refuses.
func TestLimiterIsAskedAfterTheCoolDown(t *testing.T) {
	limiter := &limiterStub{wait: time.Minute}
	limited(t, "k", options{agentmessaging.WithLimiter(limiter), once}, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
		refusedAfterAMinute := func() { assert.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrRateLimited) }
		service.close(90*time.Second, agentPath)
		go refusedAfterAMinute()
		time.Sleep(10 * time.Second)
		wantAfter(t, 80*time.Second, client, get) // to the end of the cool-down, not only of the limiter's minute

		service.close(time.Hour, agentPath)
		go refusedAfterAMinute()
		time.Sleep(10 * time.Second)
		wantRefused(t, client, here, get)
		wantRefused(t, client, here, get) // without asking the limiter
		synctest.Wait()
		assert.Equal(t, []agentmessaging.AttemptOutcome{
			{StatusCode: 429, Sent: true, LimitKey: "k", RetryAfter: 30 * time.Second}, {StatusCode: 200, Sent: true},
			{StatusCode: 429, Sent: true, LimitKey: "k", RetryAfter: 59 * time.Minute}, {},
		}, limiter.done)
	})
}

// gateway answers each path with 429 until its time, by the clock of the
// bubble, and counts the requests.
type gateway struct {
	mu    sync.Mutex
	until map[string]time.Time
	key   string // limit_key; empty: none
	came  int
	last  *http.Request
}

func (g *gateway) RoundTrip(req *http.Request) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.came, g.last = g.came+1, req
	if left := time.Until(g.until[req.URL.Path]); left > 0 {
		return answering(tooMany(fmt.Sprint(left.Seconds()), g.key)).RoundTrip(req)
	}
	return answering(okAnswer).RoundTrip(req)
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
	return g.came
}

// The paths that get and post call.
const agentPath, messagesPath = "/v1/agents/agent_1", "/v1/agents/agent_1/messages"

// limited runs a test in virtual time: a client, with the least jitter unless
// opts say otherwise, of a gateway whose 429s have the limit_key.
func limited(t *testing.T, key string, opts options, test func(t *testing.T, client *agentmessaging.Client, service *gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: key}
		test(t, newClient(t, service, append(options{jitter(0)}, opts...)...), service)
	})
}

// Who refused a call.
const here, there = true, false

// wantRefused makes one call that is refused by the service or here. The caller
// is too impatient to wait for the end of a cool-down.
func wantRefused(t *testing.T, client *agentmessaging.Client, local bool, do doCall) *agentmessaging.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := do(ctx, client)
	var failure *agentmessaging.Error
	require.ErrorAs(t, err, &failure)
	require.ErrorIs(t, err, agentmessaging.ErrRateLimited)
	require.Equal(t, local, failure.Local, "refused here")
	return failure
}

// wantAfter makes one call that succeeds after a wait, and nothing earlier.
func wantAfter(t *testing.T, wait time.Duration, client *agentmessaging.Client, do doCall) {
	t.Helper()
	var info agentmessaging.CallInfo
	begin := time.Now()
	require.NoError(t, do(agentmessaging.WithCallInfo(t.Context(), &info), client))
	assert.Equal(t, wait, time.Since(begin))
	assert.Equal(t, wait, info.Waited)
}
