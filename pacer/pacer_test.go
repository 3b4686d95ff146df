package pacer_test

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
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

// patient returns a message that waits for any time.
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

// limitOf returns the state of the limit with a key.
func limitOf(p *pacer.Pacer, key string) pacer.LimitState {
	limits := p.State().Limits
	return limits[slices.IndexFunc(limits, func(l pacer.LimitState) bool { return l.Key == key })]
}

func acquire(t testing.TB, p *pacer.Pacer, attempt agentmessaging.LimitedAttempt) agentmessaging.Permit {
	t.Helper()
	permit, err := p.Acquire(context.Background(), attempt)
	require.NoError(t, err)
	return permit
}

// within returns a context with a timeout.
func within(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// ask makes a call that does not wait. It returns a permit, or how long the call would wait.
func ask(t testing.TB, p *pacer.Pacer, attempt agentmessaging.LimitedAttempt) (permit agentmessaging.Permit, wait time.Duration) {
	t.Helper()
	permit, err := p.Acquire(within(t, time.Millisecond), attempt)
	if err == nil {
		return permit, 0
	}
	var refusal *agentmessaging.Error
	require.ErrorAs(t, err, &refusal)
	return nil, refusal.RetryAfter
}

// use sends calls until the next would have to wait, and counts them.
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
	_, zero := new(pacer.Pacer).Acquire(t.Context(), agentmessaging.LimitedAttempt{})
	for _, tt := range []struct {
		name, want string
		err        error
	}{
		{"Acquire of the zero value", "Pacer: is the zero value; make one with New", zero},
		{"SetLimits of the zero value", "Pacer: is the zero value; make one with New", new(pacer.Pacer).SetLimits(perMinute(1))},
		{"no limits", "limits: must be 1 to 30 limits", refusal(nil)},
		{"31 limits", "limits: must be 1 to 30 limits", refusal(make([]pacer.Limit, 31))},
		{"a line break in Key", "limits[0].Key: must be printable, and at most 64 bytes", refusal([]pacer.Limit{{Key: "a\nb", Max: 1, Window: time.Minute}})},
		{"no Max", "limits[0].Max: must be at least 1", refusal([]pacer.Limit{{Key: "k", Window: time.Minute}})},
		{"a window below a second", "limits[1].Window: must be at least a second", refusal([]pacer.Limit{one, {Key: "k", Max: 1, Window: time.Second - 1}})},
		{"a window of 292 years", "limits[0].Window: must be at least a second, and at most 100 years", refusal([]pacer.Limit{{Key: "k", Max: 1, Window: math.MaxInt64}})},
		{"unknown Counts", "limits[1].Counts: must be one of ", refusal([]pacer.Limit{one, {Key: "k", Max: 1, Window: time.Minute, Counts: "tokens"}})},
		{"a nil option", "opts: an option is nil", refusal(perMinute(1), nil)},
		{"a nil logger", "WithLogger: was given nil", refusal(perMinute(1), pacer.WithLogger(nil))},
		{"a nil handler", "WithLogger: was given nil", refusal(perMinute(1), pacer.WithLogger(slog.New((*slog.TextHandler)(nil))))},
		{"a nil store", "WithStore: was given a nil store", refusal(perMinute(1), pacer.WithStore((*loadsim.Store)(nil), "key"))},
		{"no API key", "WithStore: was given an empty API key", refusal(perMinute(1), pacer.WithStore(loadsim.NewStore(), ""))},
	} {
		assert.ErrorIs(t, tt.err, agentmessaging.ErrInvalid, tt.name)
		assert.ErrorContains(t, tt.err, tt.want, tt.name)
	}
	assert.Zero(t, new(pacer.Pacer).State())
}

// TestLimitSets compares each set of limits with the plan of its name.
func TestLimitSets(t *testing.T) {
	for perDay, limits := range map[int][]pacer.Limit{1000: pacer.PreviewLimits(), 10_000: pacer.ProLimits(), 50_000: pacer.BYOKPlanLimits()} {
		assert.Equal(t, perDay, limitOf(newPacer(t, limits), "key_day").Max, "a day of the plan")
	}
}

func TestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.PreviewLimits())
		held := acquire(t, p, creation)
		sent := use(t, p, message) + 1
		w := waiting{pacer: p}
		w.enter(t.Context(), message, "interactive")
		w.enter(pacer.WithPriority(t.Context(), pacer.PriorityBatch), message, "batch")
		held.Done(tooMany("creations", time.Hour))
		require.NoError(t, p.SetLimits(pacer.PreviewLimits()), "limits that do not differ open nothing")
		s, perMinute, creations := p.State(), limitOf(p, "key_minute"), limitOf(p, "agent_create_key_day")
		assert.Equal(t, pacer.State{Interactive: 1, Batch: 1, Processes: 1, Limits: s.Limits}, s)
		assert.Equal(t, sent, perMinute.Used, "the refused creation counts")
		assert.Equal(t, time.Hour, creations.ClosedFor, "the Retry-After of the refusal")
		assert.Equal(t, "creations", creations.ClosedBy, "the limit_key of the refusal")
		assert.Less(t, perMinute.ClosedFor, 3*time.Second, "the pace lets a call go soon")
		assert.Equal(t, "used up", perMinute.ClosedBy, "no refusal closed it")
		assert.Zero(t, limitOf(p, "warmup_key_hour").ClosedFor, "nothing spent it")
		w.group.Wait()
	})
}

// callers plays n clients that each make a call at the same time.
func callers(m loadsim.Model, real []pacer.Limit, n int, opts ...agentmessaging.Option) loadsim.Measures {
	return loadsim.Run(loadsim.Scenario{Model: m, Real: real, Client: opts, Loads: []loadsim.Load{{Workers: []int{n}, Calls: 1}}}).Measure(0, 0)
}

// TestClientShowsItsPlace checks that the event at the beginning of a wait has the place in the
// queue and the time until the turn: 2 s for each place, because another process has as many
// waiting calls.
func TestClientShowsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := loadsim.NewStore()
		another := waiting{pacer: sharing(t, perMinute(60), store)}
		for range 30 {
			another.enter(t.Context(), patient(), "of another process")
		}
		var mu sync.Mutex
		waits := map[int]time.Duration{}
		observer := agentmessaging.ObserverFunc(func(_ context.Context, e agentmessaging.Event) context.Context {
			if start, is := e.(agentmessaging.LimiterWaitStart); is {
				mu.Lock()
				defer mu.Unlock()
				assert.Equal(t, "minute", start.LimitKey)
				waits[start.Place] = start.Expected
			}
			return nil
		})
		p := sharing(t, perMinute(60), store)
		callers(loadsim.Bucket, perMinute(60), 20, agentmessaging.WithLimiter(p), agentmessaging.WithObserver(observer))
		assert.Greater(t, len(waits), 10, "calls that wait")
		for place, expected := range waits {
			assert.InDelta(t, 2*place, expected.Seconds(), 3, "the wait at place %d", place)
		}
	})
}

// A client whose calls are all refused asks less and less often, and gives up after its
// timeout.
func TestClientGivesUpWhenAllAreRefusedForItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := callers(loadsim.Refusing, perMinute(60), 1, agentmessaging.WithLimiter(newPacer(t, perMinute(60))))
		assert.Equal(t, 1, got.Lost)
		assert.InDelta(t, 5*60, got.Last.Seconds(), 65)
		assert.LessOrEqual(t, got.Refused, 12)
	})
}

// refusing is a user's limiter that wraps a pacer, and lets no call go.
type refusing struct{ *pacer.Pacer }

func (refusing) Acquire(context.Context, agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	return nil, io.ErrNoProgress
}

func TestLimiterThatWrapsAPacerIsAsked(t *testing.T) {
	client, err := agentmessaging.NewClient("http://127.0.0.1", "key", agentmessaging.WithLimiter(refusing{newPacer(t, perMinute(60))}))
	require.NoError(t, err)
	_, err = client.Status(t.Context())
	assert.ErrorIs(t, err, io.ErrNoProgress)
}

// TestUnsentAttempt checks that an attempt that was not sent gives back its permit and its
// place in the pace, even if it was a trial.
func TestUnsentAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, append(perMinute(60), pacer.Limit{Key: "hour", Max: 2, Window: time.Hour}))
		began := time.Now()
		for used := range 3 {
			for range 100 {
				unsent := acquire(t, p, message)
				unsent.Done(agentmessaging.AttemptOutcome{})
				unsent.Done(agentmessaging.AttemptOutcome{}) // gives nothing back a second time
			}
			for _, l := range p.State().Limits {
				assert.Equal(t, used, l.Used, l.Key)
			}
			permit := acquire(t, p, message)
			permit.Done(agentmessaging.AttemptOutcome{Sent: true}) // without a status: it may have arrived, so it counts
			permit.Done(agentmessaging.AttemptOutcome{})           // a second Done, as of a deferred call, is ignored
		}
		assert.Less(t, time.Since(began), 3*time.Second)

		p = newPacer(t, append(perMinute(60), pacer.Limit{Key: "day", Max: 2, Window: 24 * h, Counts: pacer.CountsAgentCreations}))
		refused, unsent := acquire(t, p, withKey), acquire(t, p, creation)
		refused.Done(tooMany("day", time.Hour))
		began = time.Now()
		unsent.Done(agentmessaging.AttemptOutcome{})
		acquire(t, p, creation)
		assert.Equal(t, time.Hour, time.Since(began), "a call that is given back does not shorten a pause")
	})
}

// TestUncountedCalls checks that calls that no limit counts (interface 4) wait only after
// they were refused themselves.
func TestUncountedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(1))
		refused := acquire(t, p, status)
		for range 100 {
			acquire(t, p, status)
		}
		refused.Done(tooMany("proxy", time.Minute))
		acquire(t, p, message)
		began := time.Now()
		acquire(t, p, status)
		assert.Equal(t, time.Minute, time.Since(began))
		time.Sleep(h)
		acquire(t, p, status).Done(tooMany("proxy", s))
		acquire(t, p, status)
		assert.Equal(t, time.Minute+h+s, time.Since(began), "what was long ago does not make it wait longer")
	})
}

// waiting has the calls of a test by their names.
type waiting struct {
	pacer *pacer.Pacer
	group sync.WaitGroup

	mu              sync.Mutex
	served, refused []string // in this order
}

// enter starts a call and waits until it is in its queue, or has its answer.
func (w *waiting) enter(ctx context.Context, attempt agentmessaging.LimitedAttempt, name string) {
	w.group.Go(func() {
		_, err := w.pacer.Acquire(ctx, attempt)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.served = append(w.served, name)
		} else {
			w.refused = append(w.refused, name)
		}
	})
	synctest.Wait()
}

// TestOrder checks the order in which waiting calls go, and which are refused. The words of a
// row are calls.
func TestOrder(t *testing.T) {
	many := func(n int) string { return strings.Repeat("interactive ", n) }
	for _, tt := range []struct {
		rule, came, served, refused string
		shut                        time.Duration // for which the limit closes when all have come
	}{
		{rule: "as they came", came: "first second third", served: "first second third"},
		{rule: "interactive calls first, but every eighth grant to a batch call", came: "batch " + many(10) + "batch", served: many(7) + "batch " + many(3) + "batch"},
		{rule: "tenants in turn", came: "of-tenant-a of-tenant-a of-tenant-a of-tenant-b", served: "of-tenant-a of-tenant-b of-tenant-a of-tenant-a"},
		{rule: "a call that leaves keeps no place", came: "leaves first second", served: "first second", refused: "leaves"},
		{rule: "also if a batch call is next", came: "leaves batch", served: "batch", refused: "leaves"},
		{rule: "a limit closes for longer than a deadline allows: the others go when it opens", came: "patient deadline-in-20-s", served: "patient", refused: "deadline-in-20-s", shut: 2 * time.Minute},
		{rule: "a limit closes for longer than MaxWait allows", came: "waits-90-s-at-most patient", served: "patient", refused: "waits-90-s-at-most", shut: 2 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := waiting{pacer: newPacer(t, perMinute(60))}
			held := acquire(t, w.pacer, message)
			use(t, w.pacer, message)
			leaves, leave := context.WithCancel(t.Context())
			contexts := map[string]context.Context{
				"batch": pacer.WithPriority(t.Context(), pacer.PriorityBatch), "leaves": leaves, "deadline-in-20-s": within(t, 20*time.Second),
				"of-tenant-a": pacer.WithTenant(t.Context(), "a"), "of-tenant-b": pacer.WithTenant(t.Context(), "b"),
			}
			for _, name := range strings.Fields(tt.came) {
				attempt := patient()
				if name == "waits-90-s-at-most" {
					attempt = message
				}
				w.enter(cmp.Or(contexts[name], t.Context()), attempt, name)
			}
			if leave(); tt.shut > 0 {
				held.Done(tooMany("", tt.shut))
			}
			began := time.Now()
			synctest.Wait()
			assert.Equal(t, tt.refused, strings.Join(w.refused, " "), "%s: refused at once", tt.rule)
			w.group.Wait()
			assert.Equal(t, tt.served, strings.Join(w.served, " "), "%s: served", tt.rule)
			assert.InDelta(t, len(w.served), (time.Since(began) - tt.shut).Seconds(), 1, "%s: a second for each call", tt.rule)
		})
	}
}

// A call is refused at once if the limits let no call go for longer than MaxWait.
func TestRefusedAtOnce(t *testing.T) {
	for _, tt := range []struct {
		rule         string
		limits       []pacer.Limit
		ended        agentmessaging.AttemptOutcome // of an attempt before
		wait, within time.Duration
	}{
		{rule: "a limit that is closed for longer than MaxWait", limits: perMinute(60), ended: tooMany("hourly", time.Hour), wait: time.Hour, within: time.Second},
		{rule: "a limit that is closed for years: a day is believed", limits: perMinute(60), ended: tooMany("k", math.MaxInt64), wait: 24 * time.Hour, within: time.Second},
		{rule: "a window that is used up", limits: []pacer.Limit{{Max: 1, Window: 10 * time.Minute}}, ended: accepted, wait: 10 * time.Minute, within: 50 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, tt.limits)
			acquire(t, p, message).Done(tt.ended)
			assert.InDelta(t, tt.wait, wantRefusal(t, p, t.Context(), message).RetryAfter, float64(tt.within), tt.rule)
			_, err := p.Acquire(within(t, 0), message)
			assert.ErrorIs(t, err, context.DeadlineExceeded, "%s, and the context has ended", tt.rule)
		})
	}
}

// In a long queue a call is refused at once if its turn would come after its deadline, and then
// takes no place. A call that can go in time waits.
func TestLongLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := waiting{pacer: newPacer(t, perMinute(60))}
		use(t, w.pacer, message)
		for range 120 {
			w.enter(t.Context(), patient(), "patient")
		}
		refusal := wantRefusal(t, w.pacer, within(t, 110*time.Second), message)
		assert.ErrorContains(t, refusal, "agentmessaging: 429 rate_limited (limit minute, retry after ")
		assert.InDelta(t, 121*time.Second, refusal.RetryAfter, float64(15*time.Second))
		w.enter(within(t, 150*time.Second), message, "deadline in 150 s")
		w.group.Wait()
		assert.Contains(t, w.served, "deadline in 150 s")
	})
}

// Interactive calls that wait for their own limit hold up no batch call.
func TestBatchBesideAClosedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := waiting{pacer: newPacer(t, perMinute(6))}
		acquire(t, w.pacer, creation).Done(tooMany("", time.Minute))
		w.enter(t.Context(), creation, "creation")
		w.enter(t.Context(), withKey, "creation with a key")
		w.enter(pacer.WithPriority(t.Context(), pacer.PriorityBatch), message, "batch message")
		w.group.Wait()
		assert.Equal(t, "batch message", w.served[0], "the first to go")
	})
}
