package pacer_test

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
	"github.com/agent-messaging-service/agentmessaging-go/internal/traffic"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// The attempts that the tests ask for.
var (
	message  = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents/{agent_id}/messages"}
	creation = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents"}
	withKey  = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents", SetsBYOK: true}
	byokSet  = agentmessaging.LimitedAttempt{Method: "PUT", Path: "/v1/byok", SetsBYOK: true}
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

// ask makes a call that does not wait: it is let go, or told how long it would.
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
		"nil store":               refusal(perMinute(1), pacer.WithStore((*traffic.Store)(nil), "key")),
		"empty API key":           refusal(perMinute(1), pacer.WithStore(traffic.NewStore(), "")),
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

// waiting are calls by the names of their callers.
type waiting struct {
	pacer *pacer.Pacer
	group sync.WaitGroup

	mu              sync.Mutex
	served, refused string // in this order
}

// enter starts a call and waits until it is in the line, or has its answer.
func (w *waiting) enter(ctx context.Context, attempt agentmessaging.LimitedAttempt, name rune) {
	w.group.Go(func() {
		_, err := w.pacer.Acquire(ctx, attempt)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.served += string(name)
		} else {
			w.refused += string(name)
		}
	})
	synctest.Wait()
}

// TestOrder of the calls that wait: interactive ones first but for every eighth,
// tenants by turns, and otherwise as they came. Who leaves keeps no place. When a
// limit shuts for longer than a call may take, the call is refused, and the
// others go when it opens.
func TestOrder(t *testing.T) {
	for _, test := range []struct {
		came, served, refused string
		shut                  time.Duration
	}{
		{"abcab", "abcab", "", 0},
		{"BaaaaaaaaaaB", "aaaaaaaBaaaB", "", 0},
		{"hhhhhL", "hLhhhh", "", 0},
		{"xab", "ab", "x", 0},
		{"xB", "B", "x", 0},
		{"at", "a", "t", 2 * time.Minute},
		{"ma", "a", "m", 2 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := waiting{pacer: newPacer(t, perMinute(60))}
			held := acquire(t, w.pacer, message)
			use(t, w.pacer, message)
			leaves, leave := context.WithCancel(t.Context())
			as := map[rune]context.Context{
				'B': pacer.WithPriority(t.Context(), pacer.PriorityBatch), 'x': leaves, 't': within(t, 20*time.Second),
				'h': pacer.WithTenant(t.Context(), "heavy"), 'L': pacer.WithTenant(t.Context(), "light"),
			}
			for _, name := range test.came {
				attempt := patient()
				if name == 'm' {
					attempt = message // at most 90 s
				}
				w.enter(cmp.Or(as[name], t.Context()), attempt, name)
			}
			if leave(); test.shut > 0 {
				held.Done(tooMany("", test.shut))
			}
			began := time.Now()
			synctest.Wait()
			assert.Equal(t, test.refused, w.refused)
			w.group.Wait()
			assert.Equal(t, test.served, w.served)
			assert.InDelta(t, len(test.served), (time.Since(began) - test.shut).Seconds(), 1)
		})
	}
}

// TestRefusedAtOnce where the turn would come after the deadline, or the limits
// let nobody go for longer than MaxWait; a long line is no reason. Who is refused
// keeps no place.
func TestRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := waiting{pacer: newPacer(t, perMinute(60))}
		use(t, w.pacer, message)
		began := time.Now()
		w.enter(pacer.WithPriority(t.Context(), pacer.PriorityBatch), message, 'B')
		w.group.Wait()
		assert.Less(t, time.Since(began), 1500*time.Millisecond)
		for range 120 {
			w.enter(t.Context(), patient(), 'a')
		}
		refusal := wantRefusal(t, w.pacer, within(t, 110*time.Second), message)
		assert.Equal(t, "minute", refusal.LimitKey)
		assert.InDelta(t, 121, refusal.RetryAfter.Seconds(), 15)
		w.enter(within(t, 150*time.Second), message, 'b')
		acquire(t, w.pacer, message).Done(tooMany("hourly", time.Hour))
		w.group.Wait()
		assert.Contains(t, w.served, "b")
		refusal = wantRefusal(t, w.pacer, t.Context(), message)
		assert.InDelta(t, 3600, refusal.RetryAfter.Seconds(), 1)
		_, err := w.pacer.Acquire(within(t, 0), message)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// TestNobodyWaitsInVain: of many callers with all sorts of deadlines each is
// either served or soon refused, and none comes back later than its deadline,
// whatever happens to the limits meanwhile.
func TestNobodyWaitsInVain(t *testing.T) {
	for rate, callers := range map[int]int{60: 300, 6000: 30_000} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, perMinute(rate))
			held, shut := acquire(t, p, message), time.Now().Add(2*time.Minute)
			use(t, p, message)
			var served atomic.Int32
			var group sync.WaitGroup
			for i := range callers {
				limit := time.Duration(1+i*7919%300) * time.Second
				group.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), limit)
					defer cancel()
					begin := time.Now()
					switch _, err := p.Acquire(ctx, patient()); {
					case !time.Now().Before(shut):
						assert.LessOrEqual(t, time.Since(begin), limit+20*time.Millisecond)
					case err != nil:
						assert.LessOrEqual(t, time.Since(begin), limit/10)
					default:
						served.Add(1)
					}
				})
				synctest.Wait()
			}
			time.Sleep(time.Until(shut))
			assert.InEpsilon(t, 2*rate, served.Load(), 0.1, "nearly all turns were used")
			waiting := p.State().Interactive
			held.Done(tooMany("", time.Minute))
			synctest.Wait()
			assert.Less(t, p.State().Interactive, waiting, "the hopeless have their answer")
			group.Wait()
			assert.Zero(t, p.State().Interactive)
		})
	}
}

// TestUnsentAttempt gives its permit back, and its place in the even pace, also
// where it was to find out whether a limit is real.
func TestUnsentAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, append(perMinute(60), pacer.Limit{Key: "hour", Max: 2, Window: time.Hour}))
		began := time.Now()
		for used := range 3 {
			for range 100 {
				acquire(t, p, message).Done(agentmessaging.AttemptOutcome{})
			}
			for _, l := range p.State().Limits {
				assert.Equal(t, used, l.Used)
			}
			acquire(t, p, message).Done(agentmessaging.AttemptOutcome{Sent: true}) // its fate is unknown: it counts
		}
		assert.Less(t, time.Since(began), 3*time.Second)
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
			{accepted, "", 0},
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

// TestSetLimits: what was sent counts on, but not what was learned, and who waits
// goes by the new limits.
func TestSetLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(6))
		sent := use(t, p, message)
		w := waiting{pacer: p}
		for range 20 {
			w.enter(t.Context(), patient(), 'a')
		}
		begin := time.Now()
		require.NoError(t, p.SetLimits(perMinute(600)))
		w.group.Wait()
		assert.Less(t, time.Since(begin), 3*time.Second)
		assert.Equal(t, sent+20, p.State().Limits[0].Used)
		fill(t, p, 2*time.Minute)
		acquire(t, p, patient()).Done(tooMany("", time.Second))
		assert.Less(t, level(p), 600.0)
		assert.Error(t, p.SetLimits(nil))
		require.NoError(t, p.SetLimits(perMinute(300)))
		assert.Equal(t, 300.0, level(p))
		require.NoError(t, p.SetLimits([]pacer.Limit{{Key: "other", Max: 2, Window: time.Minute}}))
		assert.Zero(t, p.State().Limits[0].Used)
	})
}

// TestSetLimitsReopens what refusals have shut, here or in the store, and counts
// a long limit to its new number.
func TestSetLimitsReopens(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var opts []pacer.Option
			if shared {
				opts = append(opts, pacer.WithStore(traffic.NewStore(), traffic.Key))
			}
			limits := pacer.PreviewLimits()
			limits[2].Max = 2
			p := newPacer(t, limits, opts...)
			for range 2 {
				acquire(t, p, message)
			}
			acquire(t, p, message).Done(tooMany("day", 10*time.Hour))
			synctest.Wait()
			require.NoError(t, p.SetLimits(limits))
			wantRefusal(t, p, t.Context(), message)
			limits[2].Max = 5
			require.NoError(t, p.SetLimits(limits))
			begin := time.Now()
			for range 6 {
				acquire(t, p, message)
			}
			assert.Less(t, time.Since(begin), 15*time.Second)
		})
	}
}

// shifted is a clock that was set back.
type shifted struct {
	cooldown.RealClock
	years int
	back  time.Duration
}

func (s *shifted) Now() time.Time { return time.Now().AddDate(-s.years, 0, 0).Add(-s.back) }

// TestClockSetBack changes nothing, whether it is the client's or the store's, and
// neither does a client's clock that begins in the year 1.
func TestClockSetBack(t *testing.T) {
	for _, test := range []struct {
		isStores bool
		years    int
	}{{}, {isStores: true}, {years: 1999}} {
		synctest.Test(t, func(t *testing.T) {
			clock, store, attempt := &shifted{years: test.years}, traffic.NewStore(), patient()
			p := newPacer(t, perMinute(60))
			if attempt.Clock = clock; test.isStores {
				p, attempt.Clock, store.Clock = sharing(t, perMinute(60), store), nil, clock
			}
			for i := range 180 {
				_, err := p.Acquire(within(t, 2*time.Second), attempt)
				require.NoError(t, err, "call %d", i)
				if i%60 == 30 {
					clock.back += time.Hour
				}
			}
			assert.InDelta(t, 60, p.State().Limits[0].Used, 2)
		})
	}
}
