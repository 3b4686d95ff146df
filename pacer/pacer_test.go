package pacer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

// The attempts that the tests ask for.
var (
	message  = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents/{agent_id}/messages"}
	creation = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents"}
	withKey  = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents", SetsBYOK: true}
	warmUp   = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/warmup"}
	status   = agentmessaging.LimitedAttempt{Method: "GET", Path: "/v1/status"}
)

// patient is a message that waits for as long as it takes.
func patient() agentmessaging.LimitedAttempt {
	a := message
	a.MaxWait = 1000 * time.Hour
	return a
}

func perMinute(n int) []pacer.Limit {
	return []pacer.Limit{{Key: "minute", Max: n, Window: time.Minute}}
}

func newPacer(t testing.TB, limits []pacer.Limit, opts ...pacer.Option) *pacer.Pacer {
	t.Helper()
	p, err := pacer.New(limits, opts...)
	require.NoError(t, err)
	return p
}

func acquire(t testing.TB, p *pacer.Pacer, attempt agentmessaging.LimitedAttempt) agentmessaging.Permit {
	t.Helper()
	permit, err := p.Acquire(context.Background(), attempt)
	require.NoError(t, err)
	return permit
}

// within is a context that ends after so long.
func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// ask makes a call that does not wait. It gets a permit, or the time to wait.
func ask(t testing.TB, p *pacer.Pacer, attempt agentmessaging.LimitedAttempt) (permit agentmessaging.Permit, wait time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	permit, err := p.Acquire(ctx, attempt)
	if err == nil {
		return permit, 0
	}
	var refusal *agentmessaging.Error
	require.ErrorAs(t, err, &refusal)
	return nil, refusal.RetryAfter
}

// use takes what may go without a wait.
func use(t testing.TB, p *pacer.Pacer, attempt agentmessaging.LimitedAttempt) (n int) {
	t.Helper()
	for permit, _ := ask(t, p, attempt); permit != nil; permit, _ = ask(t, p, attempt) {
		n++
	}
	return n
}

// wantRefusal checks that a call is refused at once.
func wantRefusal(t *testing.T, p *pacer.Pacer, ctx context.Context, attempt agentmessaging.LimitedAttempt) *agentmessaging.Error {
	t.Helper()
	begin := time.Now()
	_, err := p.Acquire(ctx, attempt)
	var refusal *agentmessaging.Error
	require.ErrorAs(t, err, &refusal)
	assert.Zero(t, time.Since(begin))
	assert.Equal(t, 429, refusal.StatusCode)
	assert.Equal(t, "rate_limited", refusal.Code)
	return refusal
}

var accepted = agentmessaging.AttemptOutcome{StatusCode: 200, Sent: true}

func tooMany(key string, wait time.Duration) agentmessaging.AttemptOutcome {
	return agentmessaging.AttemptOutcome{StatusCode: 429, Sent: true, LimitKey: key, RetryAfter: wait}
}

func TestNewRefuses(t *testing.T) {
	one := pacer.Limit{Key: "k", Max: 1, Window: time.Second}
	refusal := func(limits []pacer.Limit, opts ...pacer.Option) error {
		_, err := pacer.New(limits, opts...)
		return err
	}
	for want, err := range map[string]error{
		"limits: must be 1 to 30": refusal(nil),
		"must be 1 to 30 limits":  refusal(make([]pacer.Limit, 31)),
		"limits[0].Max":           refusal([]pacer.Limit{{Key: "k", Window: time.Minute}}),
		"limits[1].Window":        refusal([]pacer.Limit{one, {Key: "k", Max: 1, Window: time.Second - 1}}),
		"limits[1].Counts":        refusal([]pacer.Limit{one, {Key: "k", Max: 1, Window: time.Minute, Counts: "tokens"}}),
		"opts":                    refusal(perMinute(1), nil),
		"WithLogger":              refusal(perMinute(1), pacer.WithLogger(nil)),
		"WithStore":               refusal(perMinute(1), pacer.WithStore(nil, "key")),
		"nil store":               refusal(perMinute(1), pacer.WithStore((*loadsim.Store)(nil), "key")),
		"empty API key":           refusal(perMinute(1), pacer.WithStore(loadsim.NewStore(), "")),
	} {
		assert.ErrorIs(t, err, agentmessaging.ErrInvalid, want)
		assert.ErrorContains(t, err, want)
	}
}

// TestLimitSets states the numbers of interface 8.2 in its own digits, as
// ExamplePreviewLimits does those of 8.1.
func TestLimitSets(t *testing.T) {
	for plan, want := range map[string][3]int{"pro": {300, 500, 10_000}, "byok": {600, 1000, 50_000}} {
		limits := map[string][]pacer.Limit{"pro": pacer.ProLimits(), "byok": pacer.BYOKPlanLimits()}[plan]
		assert.Equal(t, want, [3]int{limits[0].Max, limits[1].Max, limits[2].Max}, plan)
		assert.Equal(t, pacer.PreviewLimits()[3:], limits[3:], plan)
	}
}

func TestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.PreviewLimits())
		assert.EqualValues(t, pacer.PreviewLimits()[0].Max, p.State().Limits[0].Level)
		held := acquire(t, p, creation)
		sent := use(t, p, message) + 1
		w := waiting{pacer: p}
		w.enter(t.Context(), message, 'a')
		w.enter(pacer.WithPriority(t.Context(), pacer.PriorityBatch), message, 'B')
		held.Done(tooMany("creations", time.Hour))
		s := p.State()
		assert.Equal(t, [3]int{1, 1, 1}, [3]int{s.Interactive, s.Batch, s.Processes})
		assert.Equal(t, pacer.PreviewLimits()[2], s.Limits[2].Limit)
		assert.Equal(t, sent-1, s.Limits[2].Used, "a refused call does not count")
		assert.Equal(t, sent, s.Limits[0].Used)
		assert.Equal(t, time.Hour, s.Limits[3].ClosedFor)
		assert.Equal(t, "creations", s.Limits[3].ClosedBy)
		assert.Less(t, s.Limits[0].ClosedFor, 3*time.Second)
		assert.Equal(t, "used up", s.Limits[0].ClosedBy)
		assert.Zero(t, s.Limits[6].ClosedFor)
		assert.True(t, s.StoreDown.IsZero())
		w.group.Wait()
	})
}
