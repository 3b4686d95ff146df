package pacer_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// The attempts that the tests ask for.
var (
	message  = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents/{agent_id}/messages"}
	creation = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents"}
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

// use takes what a fresh pacer gives without a wait.
func use(t testing.TB, p *pacer.Pacer, attempt agentmessaging.LimitedAttempt) (n int) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		_, err := p.Acquire(ctx, attempt)
		cancel()
		if err != nil {
			return n
		}
		n++
	}
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

func tooMany(key string, wait time.Duration) agentmessaging.AttemptOutcome {
	return agentmessaging.AttemptOutcome{StatusCode: 429, Sent: true, LimitKey: key, RetryAfter: wait}
}

// order collects who was served, in order.
type order struct {
	sync.Mutex
	names []string
	group sync.WaitGroup
}

// enter starts a call and waits until it is in the line.
func (o *order) enter(ctx context.Context, p *pacer.Pacer, name string) {
	o.group.Go(func() {
		if _, err := p.Acquire(ctx, patient()); err == nil {
			o.Lock()
			defer o.Unlock()
			o.names = append(o.names, name)
		}
	})
	synctest.Wait()
}

func TestNewRefuses(t *testing.T) {
	one := pacer.Limit{Key: "k", Max: 1, Window: time.Minute}
	for field, limits := range map[string][]pacer.Limit{
		"limits":           nil,
		"limits[0].Max":    {{Key: "k", Window: time.Minute}},
		"limits[1].Window": {one, {Key: "k", Max: 1, Window: time.Second - 1}},
		"limits[1].Counts": {one, {Key: "k", Max: 1, Window: time.Minute, Counts: "tokens"}},
	} {
		_, err := pacer.New(limits)
		var invalid *agentmessaging.ValidationError
		require.ErrorAs(t, err, &invalid)
		assert.Equal(t, field, invalid.Field)
	}
	_, err := pacer.New(make([]pacer.Limit, 31))
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
	for name, opt := range map[string]pacer.Option{
		"opts": nil, "WithLogger": pacer.WithLogger(nil), "WithStore": pacer.WithStore(nil, "key"),
	} {
		_, err := pacer.New(perMinute(1), opt)
		assert.ErrorContains(t, err, name)
	}
	_, err = pacer.New(perMinute(1), pacer.WithStore((*memory)(nil), "key"))
	assert.ErrorContains(t, err, "nil store")
	_, err = pacer.New(perMinute(1), pacer.WithStore(&memory{}, ""))
	assert.ErrorContains(t, err, "empty API key")
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

// TestOrder of the calls that wait: interactive ones first but for every
// eighth, tenants by turns, and otherwise as they came.
func TestOrder(t *testing.T) {
	as := map[rune]context.Context{
		'a': context.Background(), 'b': context.Background(), 'c': context.Background(),
		'B': pacer.WithPriority(context.Background(), pacer.PriorityBatch),
		'h': pacer.WithTenant(context.Background(), "heavy"),
		'L': pacer.WithTenant(context.Background(), "light"),
	}
	for came, served := range map[string]string{
		"abcab":        "abcab",
		"BaaaaaaaaaaB": "aaaaaaaBaaaB",
		"hhhhhL":       "hLhhhh",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, perMinute(60))
			use(t, p, message)
			var o order
			for _, name := range came {
				o.enter(as[name], p, string(name))
			}
			o.group.Wait()
			assert.Equal(t, served, strings.Join(o.names, ""))
		})
	}
}

// TestRefusedAtOnce where the turn would come after the deadline, or the limits
// let nobody go for longer than MaxWait; a long line is no reason.
func TestRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(60))
		use(t, p, message)
		var o order
		for range 120 {
			o.enter(context.Background(), p, "")
		}
		for limit, refused := range map[time.Duration]bool{110 * time.Second: true, 150 * time.Second: false} {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			if refused {
				refusal := wantRefusal(t, p, ctx, message)
				assert.Equal(t, "minute", refusal.LimitKey)
				assert.InDelta(t, 121, refusal.RetryAfter.Seconds(), 15)
			} else {
				o.enter(ctx, p, "in time")
			}
			defer cancel()
		}
		acquire(t, p, message)
		o.group.Wait()
		assert.Contains(t, o.names, "in time")
		acquire(t, p, message).Done(tooMany("hourly", time.Hour))
		refusal := wantRefusal(t, p, context.Background(), message)
		assert.InDelta(t, 3600, refusal.RetryAfter.Seconds(), 1)
	})
}

// TestNobodyWaitsInVain: of many callers with all sorts of deadlines, each is
// either served or refused within a tenth of its deadline.
func TestNobodyWaitsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(60))
		use(t, p, message)
		var group sync.WaitGroup
		served := make(chan bool, 300)
		for i := range 300 {
			limit := time.Duration(1+i*37%120) * time.Second
			group.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				begin := time.Now()
				_, err := p.Acquire(ctx, patient())
				if err != nil {
					assert.LessOrEqual(t, time.Since(begin), limit/10, "deadline %s", limit)
				}
				served <- err == nil
			})
			synctest.Wait()
		}
		group.Wait()
		close(served)
		n := 0
		for ok := range served {
			if ok {
				n++
			}
		}
		assert.InDelta(t, 110, n, 15, "nearly all turns of two minutes were used")
	})
}

// TestDeadlinesOfMany: of 20,000 callers none comes back later than its
// deadline, whatever happens to the limits meanwhile.
func TestDeadlinesOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(6000))
		held := acquire(t, p, message)
		var group sync.WaitGroup
		for i := range 20_000 {
			limit := time.Duration(1+i*7919%300) * time.Second
			group.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				begin := time.Now()
				_, _ = p.Acquire(ctx, patient())
				assert.LessOrEqual(t, time.Since(begin), limit+20*time.Millisecond)
			})
		}
		time.Sleep(30 * time.Second)
		held.Done(tooMany("", time.Minute))
		synctest.Wait()
		assert.Less(t, p.State().Interactive, 20_000, "the hopeless have their answer")
		group.Wait()
		assert.Zero(t, p.State().Interactive)
	})
}

// TestWhoLeavesKeepsNoPlace, whether refused at once or ended by its context: the
// next goes in its stead, a batch call too.
func TestWhoLeavesKeepsNoPlace(t *testing.T) {
	batch := pacer.WithPriority(context.Background(), pacer.PriorityBatch)
	for _, next := range []context.Context{context.Background(), batch} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, perMinute(60))
			use(t, p, message)
			var o order
			ctx, cancel := context.WithCancel(context.Background())
			o.enter(ctx, p, "ended")
			o.enter(next, p, "next")
			cancel()
			began := time.Now()
			o.group.Wait()
			assert.Equal(t, []string{"next"}, o.names)
			assert.Less(t, time.Since(began), 500*time.Millisecond)
			hurried, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			wantRefusal(t, p, hurried, message)
			o.enter(next, p, "next")
			o.group.Wait()
			assert.Less(t, time.Since(began), 1500*time.Millisecond)
			_, err := p.Acquire(ctx, message)
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
}

// TestRefusalsOfWaitingCalls: who waits is refused when a limit shuts for
// longer than it may take, and the others go when it opens.
func TestRefusalsOfWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(60))
		held := acquire(t, p, message)
		use(t, p, message)
		var o order
		o.enter(context.Background(), p, "patient")
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		refused := make(chan error, 2)
		go func() { _, err := p.Acquire(ctx, patient()); refused <- err }()
		go func() { _, err := p.Acquire(context.Background(), message); refused <- err }()
		synctest.Wait()
		begin := time.Now()
		held.Done(tooMany("", 2*time.Minute))
		for range 2 {
			assert.ErrorIs(t, <-refused, agentmessaging.ErrRateLimited)
		}
		assert.Zero(t, time.Since(begin))
		o.group.Wait()
		assert.GreaterOrEqual(t, time.Since(begin), 2*time.Minute)
	})
}

// TestCreationRefused is the case that users met: a creation is refused for
// eight hours, whatever the name, and messages go on.
func TestCreationRefused(t *testing.T) {
	for _, name := range []string{"agents_per_day", "key_day", "key_minute", ""} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, pacer.PreviewLimits())
			acquire(t, p, creation).Done(tooMany(name, 8*time.Hour))
			wantRefusal(t, p, context.Background(), creation)
			for range 600 {
				acquire(t, p, message)
				time.Sleep(time.Minute)
			}
		})
	}
}

// TestALateRefusal says nothing about the level: it was held up on its way.
func TestALateRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(60))
		held := acquire(t, p, message)
		for range 120 {
			acquire(t, p, patient()).Done(agentmessaging.AttemptOutcome{StatusCode: 200, Sent: true})
		}
		held.Done(tooMany("", 10*time.Second))
		assert.Equal(t, 60.0, p.State().Limits[0].Level)
	})
}

func TestUnsentAttemptGivesItsPermitBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, []pacer.Limit{{Key: "hour", Max: 2, Window: time.Hour}})
		for range 10 {
			acquire(t, p, message).Done(agentmessaging.AttemptOutcome{})
		}
		assert.Zero(t, p.State().Limits[0].Used)
		acquire(t, p, message).Done(agentmessaging.AttemptOutcome{Sent: true})
		assert.Equal(t, 1, p.State().Limits[0].Used, "its fate is unknown: it counts")
	})
}

// TestUnlimitedCalls: no limit counts them (interface 4).
func TestUnlimitedCalls(t *testing.T) {
	p := newPacer(t, perMinute(1))
	for range 100 {
		acquire(t, p, status).Done(tooMany("", time.Hour))
	}
	assert.True(t, p.CoolsDown())
}

// reporter is what the client asks of a permit beside Done.
type reporter interface {
	Waited() (limitKey string, wait time.Duration)
	Closed() (limitKey string, wait time.Duration)
}

func TestPermitReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(60))
		next := func() reporter { return acquire(t, p, patient()).(reporter) }
		wantWaited := func(permit reporter, wantKey string, want time.Duration) {
			key, wait := permit.Waited()
			assert.Equal(t, wantKey, key)
			assert.InDelta(t, want, wait, float64(time.Microsecond))
		}
		wantWaited(next(), "", 0)
		use(t, p, message)
		began := time.Now()
		wantWaited(next(), "minute", time.Since(began))
		permits := []reporter{next(), next(), next(), next()}
		for i, test := range []struct {
			outcome agentmessaging.AttemptOutcome
			key     string
			closed  time.Duration
		}{
			{tooMany("", 0), "", time.Second},                                // a refusal without Retry-After
			{tooMany("theirs\n", 5*time.Second), "theirs ", 5 * time.Second}, // one line
			{tooMany("theirs", 5*time.Second), "", 0},                        // no news
			{agentmessaging.AttemptOutcome{StatusCode: 200, Sent: true}, "", 0},
		} {
			permits[i].(agentmessaging.Permit).Done(test.outcome)
			key, closed := permits[i].Closed()
			assert.Equal(t, test.key, key)
			assert.Equal(t, test.closed, closed)
		}
	})
}

func TestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.PreviewLimits())
		assert.EqualValues(t, pacer.PreviewLimits()[0].Max, p.State().Limits[0].Level)
		held := acquire(t, p, creation)
		sent := use(t, p, message) + 1
		var o order
		o.enter(context.Background(), p, "")
		o.enter(pacer.WithPriority(context.Background(), pacer.PriorityBatch), p, "")
		held.Done(tooMany("creations", time.Hour))
		s := p.State()
		assert.Equal(t, [3]int{1, 1, 1}, [3]int{s.Interactive, s.Batch, s.Processes})
		assert.Equal(t, pacer.PreviewLimits()[2], s.Limits[2].Limit)
		assert.Equal(t, sent, s.Limits[2].Used)
		assert.Equal(t, sent, s.Limits[0].Used)
		assert.Equal(t, time.Hour, s.Limits[3].ClosedFor)
		assert.Equal(t, "creations", s.Limits[3].ClosedBy)
		assert.Less(t, s.Limits[0].ClosedFor, 3*time.Second)
		assert.Equal(t, "used up", s.Limits[0].ClosedBy)
		assert.Zero(t, s.Limits[6].ClosedFor)
		assert.True(t, s.StoreDown.IsZero())
		o.group.Wait()
	})
}

// TestSetLimits: what was sent counts on, and who waits goes by the new limits.
func TestSetLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(6))
		sent := use(t, p, message)
		var o order
		for range 20 {
			o.enter(context.Background(), p, "")
		}
		begin := time.Now()
		require.NoError(t, p.SetLimits(perMinute(600)))
		o.group.Wait()
		assert.Less(t, time.Since(begin), 3*time.Second)
		assert.Equal(t, sent+20, p.State().Limits[0].Used)
		assert.Error(t, p.SetLimits(nil))
		require.NoError(t, p.SetLimits([]pacer.Limit{{Key: "other", Max: 2, Window: time.Hour}}))
		assert.Zero(t, p.State().Limits[0].Used)
	})
}
