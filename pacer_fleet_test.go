package agentmessaging_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/pacing"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// store is a coordinator in memory, of which much can go wrong.
type store struct {
	mu     sync.Mutex
	state  *pacing.State
	steps  []quota.Step
	delay  time.Duration
	hung   chan struct{} // closed when it goes on
	err    error
	answer func(quota.Step, quota.Answer) quota.Answer
}

var errAway = errors.New("the store is away")

func (s *store) Do(_ context.Context, step quota.Step) (quota.Answer, error) {
	s.mu.Lock()
	delay, hung, err := s.delay, s.hung, s.err
	s.mu.Unlock()
	if err != nil {
		return quota.Answer{Granted: true}, err
	}
	time.Sleep(delay)
	if hung != nil {
		<-hung
	}
	return s.take(step), nil
}

func (s *store) take(step quota.Step) quota.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		s.state = pacing.New(step.Limits, pacing.Tuning{})
	}
	s.steps = append(s.steps, step)
	answer := s.state.Do(time.Now().UnixMicro(), step)
	if s.answer != nil {
		answer = s.answer(step, answer)
	}
	return answer
}

func (s *store) set(change func(*store)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *store) flush()         { s.set(func(s *store) { s.state = nil }) }
func (s *store) fail(err error) { s.set(func(s *store) { s.err = err }) }

func (s *store) count(kind quota.Kind) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range s.steps {
		if step.Kind == kind || kind == "" {
			n++
		}
	}
	return n
}

func (s *store) replayed() (grants []quota.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range s.steps {
		grants = append(grants, step.Grants...)
	}
	return grants
}

// parts are the sizes of the replays.
func (s *store) parts() (sizes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range s.steps {
		if step.Kind == quota.Replay {
			sizes = append(sizes, len(step.Grants))
		}
	}
	return sizes
}

func (s *store) last() quota.Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steps[len(s.steps)-1]
}

// records are the levels and messages of a log.
type records struct {
	mu   sync.Mutex
	seen []string
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *records) WithGroup(string) slog.Handler            { return r }

func (r *records) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, record.Level.String()+" "+record.Message)
	return nil
}

func (r *records) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

const (
	toldAway   = "WARN agentmessaging quota coordinator does not answer; working on a share of the limits"
	toldBack   = "INFO agentmessaging quota coordinator answers again"
	toldForgot = "WARN agentmessaging quota coordinator has lost its state; telling it again"
)

// member is a process of a fleet.
func member(t *testing.T, s *store, limits []agentmessaging.Limit, opts ...agentmessaging.PacerOption) (*agentmessaging.Pacer, *records) {
	log := &records{}
	opts = append(opts, agentmessaging.WithCoordinator(s), agentmessaging.WithPacerLogger(slog.New(log)))
	return newPacer(t, limits, opts...), log
}

// sendFor sends one call after the other until d has passed, and returns the
// times.
func sendFor(pacer *agentmessaging.Pacer, d time.Duration) (sent []time.Time) {
	ctx, cancel := after(d)
	defer cancel()
	for {
		permit, err := pacer.Acquire(ctx, patient)
		if ctx.Err() != nil {
			return sent
		}
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		sent = append(sent, time.Now())
		permit.Done(agentmessaging.AttemptOutcome{StatusCode: 200, Sent: true})
	}
}

// mostIn is the largest number of times within any span.
func mostIn(span time.Duration, times ...time.Time) (most int) {
	for _, from := range times {
		n := 0
		for _, at := range times {
			if d := at.Sub(from); d >= 0 && d < span {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestFleetSharesOneBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{delay: 2 * time.Millisecond}
		var group sync.WaitGroup
		sent := make([][]time.Time, 4)
		var all []time.Time
		for i := range sent {
			pacer, _ := member(t, s, perMinute(60))
			group.Go(func() { sent[i] = sendFor(pacer, 10*time.Minute) })
		}
		group.Wait()
		for _, times := range sent {
			assert.InDelta(t, 150, len(times), 12)
			all = append(all, times...)
		}
		assert.GreaterOrEqual(t, len(all), 588)
		assert.LessOrEqual(t, mostIn(time.Minute, all...), 60)
	})
}

// TestCoordinatorErrs: the process takes its share, says so once, delays no
// call, and tells the coordinator on its return.
func TestCoordinatorErrs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		pacer, log := member(t, s, perMinute(60))
		other, _ := member(t, s, perMinute(60))
		acquire(t, other, sendAttempt)
		acquire(t, pacer, sendAttempt)
		acquire(t, pacer, sendAttempt)
		s.fail(errAway)
		away := sendFor(pacer, 5*time.Minute)
		assert.Equal(t, []string{toldAway}, log.all())
		assert.InDelta(t, 150, len(away), 4)
		assert.LessOrEqual(t, mostIn(time.Minute, away...), 30)
		s.fail(nil)
		back := sendFor(pacer, 3*time.Second)
		time.Sleep(time.Second)
		assert.Equal(t, []string{toldAway, toldBack}, log.all())
		assert.NotEmpty(t, back)
		assert.GreaterOrEqual(t, len(s.replayed()), 28)
		asks := s.count(quota.Ask)
		assert.Greater(t, len(sendFor(pacer, 5*time.Minute)), 280)
		assert.Greater(t, s.count(quota.Ask), asks+280)
		assert.Len(t, log.all(), 2)
	})
}

// TestCoordinatorHangs: a step is given up after 200 ms, also where it ignores
// its context, and what was granted too late is given back.
func TestCoordinatorHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		pacer, log := member(t, s, perMinute(60), agentmessaging.WithFleetSize(1))
		acquire(t, pacer, sendAttempt)
		time.Sleep(time.Minute)
		hung := make(chan struct{})
		s.set(func(s *store) { s.hung = hung })
		for _, want := range []time.Duration{200 * time.Millisecond, 0, 0} {
			begin := time.Now()
			acquire(t, pacer, sendAttempt)
			assert.Equal(t, want, time.Since(begin))
			time.Sleep(time.Second) // a distance: there is no burst
		}
		assert.Equal(t, []string{toldAway}, log.all())
		s.set(func(s *store) { s.hung = nil })
		close(hung)
		sendFor(pacer, 10*time.Second)
		assert.Equal(t, []string{toldAway, toldBack}, log.all())
	})
}

// TestLateGrantIsGivenBack, unless the attempt went with leave from here.
func TestLateGrantIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{delay: 201 * time.Millisecond}
		pacer, _ := member(t, s, perMinute(60))
		ctx, cancel := after(100 * time.Millisecond)
		defer cancel()
		_, err := pacer.Acquire(ctx, sendAttempt)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		assert.Positive(t, s.count(quota.Unused))
	})
	synctest.Test(t, func(t *testing.T) {
		s := &store{delay: 201 * time.Millisecond}
		pacer, _ := member(t, s, perMinute(60))
		acquire(t, pacer, sendAttempt)
		time.Sleep(time.Second)
		assert.Zero(t, s.count(quota.Unused))
	})
}

// TestCoordinatorForgets: it hears again of all calls, once.
func TestCoordinatorForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		pacer, log := member(t, s, perMinute(600))
		var sent []time.Time
		sent = append(sent, sendFor(pacer, 30*time.Second)...)
		s.flush()
		sent = append(sent, sendFor(pacer, 2*time.Minute)...)
		assert.Equal(t, []string{toldForgot}, log.all())
		assert.LessOrEqual(t, mostIn(time.Minute, sent...), 600)
		assert.Equal(t, 1, s.count(quota.Replay))
		assert.Greater(t, len(s.replayed()), 300)
	})
}

// TestCoordinatorForgetsWhileAway: then it hears of what it once knew too.
func TestCoordinatorForgetsWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		pacer, _ := member(t, s, perMinute(600))
		sendFor(pacer, 30*time.Second)
		s.fail(errAway)
		acquire(t, pacer, sendAttempt)
		s.flush()
		s.fail(nil)
		time.Sleep(3 * time.Second)
		acquire(t, pacer, sendAttempt)
		time.Sleep(time.Second)
		known := map[uint64]bool{}
		for _, g := range s.replayed() {
			known[g.ID] = true
		}
		assert.Greater(t, len(known), 300)
	})
}

// TestCoordinatorGoesAwayInAFullMinute: what was sent before counts in the share.
func TestCoordinatorGoesAwayInAFullMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		pacer, _ := member(t, s, perMinute(60))
		sent := sendFor(pacer, 50*time.Second)
		s.fail(errAway)
		sent = append(sent, sendFor(pacer, 2*time.Minute)...)
		assert.LessOrEqual(t, mostIn(time.Minute, sent...), 60)
	})
}

// TestCoordinatorIsNeverThere: the share is that of the size that was told.
func TestCoordinatorIsNeverThere(t *testing.T) {
	for _, tt := range []struct{ fleet, want int }{{1, 60}, {4, 15}, {60, 1}} {
		synctest.Test(t, func(t *testing.T) {
			pacer, log := member(t, &store{err: errAway}, perMinute(60), agentmessaging.WithFleetSize(tt.fleet))
			sent := sendFor(pacer, 10*time.Minute)
			assert.InDelta(t, 10*tt.want, len(sent), 2+float64(tt.want)/4)
			assert.Equal(t, []string{toldAway}, log.all())
		})
	}
}

// TestFleetSizeAlone is an even share without a coordinator.
func TestFleetSizeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		sent := sendFor(newPacer(t, perMinute(60), agentmessaging.WithFleetSize(4)), 10*time.Minute)
		assert.Positive(t, sent[0].Sub(begin), "not with the others that start")
		assert.InDelta(t, 150, len(sent), 4)
		assert.LessOrEqual(t, mostIn(time.Minute, sent...), 15)
		assert.Equal(t, 1, mostIn(3500*time.Millisecond, sent...), "no burst")
	})
}

// TestCoordinatorIsNotAskedForNothing: some endpoints list no 429.
func TestCoordinatorIsNotAskedForNothing(t *testing.T) {
	s := &store{}
	pacer, _ := member(t, s, agentmessaging.PreviewLimits())
	acquire(t, pacer, agentmessaging.LimitedAttempt{Method: "GET", Path: "/v1/status"})
	assert.Zero(t, s.count(""))
}

// TestUnsentIsForgottenEverywhere: what was given back is not replayed.
func TestUnsentIsForgottenEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{err: errAway}
		pacer, _ := member(t, s, perMinute(60))
		acquire(t, pacer, sendAttempt).Done(agentmessaging.AttemptOutcome{})
		synctest.Wait()
		s.fail(nil)
		time.Sleep(3 * time.Second)
		acquire(t, pacer, sendAttempt)
		time.Sleep(time.Second)
		assert.Len(t, s.replayed(), 1)
	})
}

// TestManyCallsAreReplayedInParts of 500, after an empty one.
func TestManyCallsAreReplayedInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{err: errAway}
		pacer, _ := member(t, s, []agentmessaging.Limit{{Max: 5000, Window: 24 * time.Hour}})
		for range 1001 {
			acquire(t, pacer, sendAttempt)
		}
		s.fail(nil)
		time.Sleep(3 * time.Second)
		acquire(t, pacer, sendAttempt)
		time.Sleep(time.Second)
		assert.Equal(t, []int{0, 500, 500, 2}, s.parts())
	})
}

// TestCoordinatorThatStillHangsIsToldNoGrants: what it does late would make
// them younger than they are.
func TestCoordinatorThatStillHangsIsToldNoGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		pacer, _ := member(t, s, perMinute(60))
		acquire(t, pacer, sendAttempt)
		s.set(func(s *store) { s.delay = 300 * time.Millisecond })
		sendFor(pacer, 10*time.Second)
		time.Sleep(time.Second)
		parts := s.parts()
		assert.NotEmpty(t, parts)
		assert.Zero(t, slices.Max(parts))
		s.set(func(s *store) { s.delay = 0 })
		sendFor(pacer, 4*time.Second)
		time.Sleep(time.Second)
		assert.NotZero(t, slices.Max(s.parts()))
	})
}

// TestFirstCallOfAShareIsLate only where nothing was sent in the last minute:
// else the queue has put the processes' calls apart.
func TestFirstCallOfAShareIsLate(t *testing.T) {
	for quiet, late := range map[time.Duration]bool{
		time.Second: false, time.Minute: false, time.Minute + time.Microsecond: true, time.Hour: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &store{answer: func(_ quota.Step, a quota.Answer) quota.Answer { a.Fleet = 60; return a }}
			pacer, _ := member(t, s, []agentmessaging.Limit{{Max: 18000, Window: 30 * time.Minute}})
			acquire(t, pacer, sendAttempt)
			time.Sleep(quiet)
			s.fail(errAway)
			begin := time.Now()
			acquire(t, pacer, sendAttempt)
			assert.Equal(t, late, time.Since(begin) > 0, "%v", quiet)
			assert.Less(t, time.Since(begin), 5820*time.Millisecond)
		})
	}
}

// TestJournalIsTrimmed to the longest window.
func TestJournalIsTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		pacer, _ := member(t, s, perMinute(600))
		sendFor(pacer, 10*time.Minute)
		s.flush()
		sendFor(pacer, time.Second)
		assert.InDelta(t, 600, len(s.replayed()), 15)
	})
}

// TestSlowCoordinatorComesBack although calls go on all the time.
func TestSlowCoordinatorComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{delay: 150 * time.Millisecond}
		pacer, log := member(t, s, perMinute(1200))
		s.fail(errAway)
		sendFor(pacer, 5*time.Second)
		s.fail(nil)
		sendFor(pacer, 4*time.Second)
		time.Sleep(time.Second)
		assert.Equal(t, []string{toldAway, toldBack}, log.all())
	})
}

// TestCoordinatorTalksNonsense: no panic, no hang, no hot loop.
func TestCoordinatorTalksNonsense(t *testing.T) {
	for name, answer := range map[string]quota.Answer{
		"zero":           {},
		"negative":       {Wait: -time.Hour, Fleet: 1, Epoch: 1},
		"huge":           {Wait: 1<<63 - 1, Gap: 1<<63 - 1, Fleet: 1, Epoch: 1},
		"negative gap":   {Wait: time.Second, Gap: -1 << 63, Fleet: 1, Epoch: 1},
		"limit":          {Wait: time.Second, Limit: 1, Fleet: 1, Epoch: 1},
		"negative limit": {Wait: time.Second, Limit: -1, Fleet: 1, Epoch: 1},
		"tiny":           {Wait: 1, Fleet: 1, Epoch: 1},
		"huge fleet":     {Fleet: math.MaxInt, Epoch: 1},
		"negative fleet": {Fleet: -1, Epoch: -1},
		"granted":        {Granted: true, Wait: -1, Limit: 99},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{answer: func(quota.Step, quota.Answer) quota.Answer { return answer }}
				pacer, log := member(t, s, perMinute(60))
				var group sync.WaitGroup
				for range 3 {
					group.Go(func() {
						ctx, cancel := after(5 * time.Second)
						defer cancel()
						for range 5 {
							_, _ = pacer.Acquire(ctx, sendAttempt)
						}
					})
				}
				group.Wait()
				assert.Less(t, s.count(""), 5100)
				assert.Less(t, len(log.all()), 10)
				assert.Equal(t, !answer.Granted && (answer.Wait <= 0 || answer.Limit != 0), len(log.all()) > 0, "as good as no answer")
			})
		})
	}
}

// TestEpochThatChangesAllTheTime costs a replay every 2 s, and no more.
func TestEpochThatChangesAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var epoch int64
		s := &store{answer: func(_ quota.Step, a quota.Answer) quota.Answer {
			epoch++
			a.Epoch = epoch
			return a
		}}
		pacer, log := member(t, s, perMinute(600))
		sendFor(pacer, time.Minute)
		assert.LessOrEqual(t, len(log.all()), 31)
		assert.LessOrEqual(t, s.count(quota.Replay), 62)
	})
}

// TestDoneDoesNotWaitForTheCoordinator.
func TestDoneDoesNotWaitForTheCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		pacer, _ := member(t, s, perMinute(60))
		permit := acquire(t, pacer, sendAttempt)
		s.set(func(s *store) { s.delay = 100 * time.Millisecond })
		begin := time.Now()
		permit.Done(agentmessaging.AttemptOutcome{StatusCode: 429, Sent: true, RetryAfter: 7 * time.Second})
		assert.Zero(t, time.Since(begin))
		time.Sleep(time.Second)
		assert.Equal(t, 1, s.count(quota.Refused))
	})
}

// TestRefusalIsTheFleets: all processes cool down.
func TestRefusalIsTheFleets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		pacer, _ := member(t, s, perMinute(60))
		other, _ := member(t, s, perMinute(60))
		acquire(t, pacer, sendAttempt).Done(agentmessaging.AttemptOutcome{StatusCode: 429, Sent: true, LimitKey: "minute", RetryAfter: 7 * time.Second})
		synctest.Wait()
		begin := time.Now()
		acquire(t, other, sendAttempt)
		assert.Equal(t, 7*time.Second, time.Since(begin))
	})
}

// TestCancelledCallLeavesTheFleetsQueue, and gives back what comes too late.
func TestCancelledCallLeavesTheFleetsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{delay: 50 * time.Millisecond}
		pacer, _ := member(t, s, perMinute(1))
		ctx, cancel := after(20 * time.Millisecond) // while the first ask is under way
		defer cancel()
		_, err := pacer.Acquire(ctx, sendAttempt)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		assert.Equal(t, 1, s.count(quota.Unused))
		begin := time.Now()
		acquire(t, pacer, sendAttempt)
		assert.Equal(t, 50*time.Millisecond, time.Since(begin))
		ctx, cancel = context.WithCancel(t.Context())
		go func() { time.Sleep(time.Second); cancel() }()
		_, err = pacer.Acquire(ctx, sendAttempt)
		require.ErrorIs(t, err, context.Canceled)
		time.Sleep(time.Second)
		assert.Equal(t, 2, s.count(quota.Unused), "the ticket is withdrawn")
	})
}

// TestCoordinatorHearsOfOneWhoComesAsTheLaneEnds: it is served like any other.
func TestCoordinatorHearsOfOneWhoComesAsTheLaneEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{delay: 50 * time.Millisecond}
		pacer, _ := member(t, s, perMinute(1))
		acquire(t, pacer, sendAttempt)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := pacer.Acquire(ctx, patient)
		require.ErrorIs(t, err, context.Canceled)
		time.Sleep(20 * time.Millisecond) // the ticket is being withdrawn
		acquire(t, pacer, sendAttempt)
	})
}

// TestCoordinatorThatHangsIsToldOnce, although several lanes notice.
func TestCoordinatorThatHangsIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		limits := append(perMinute(60), agentmessaging.Limit{Key: "c", Max: 9, Window: time.Minute, Counts: agentmessaging.CountsAgentCreations})
		pacer, log := member(t, &store{hung: hung}, limits)
		var group sync.WaitGroup
		for _, attempt := range []agentmessaging.LimitedAttempt{sendAttempt, createAttempt} {
			group.Go(func() { acquire(t, pacer, attempt) })
		}
		group.Wait()
		assert.Equal(t, []string{toldAway}, log.all())
		close(hung)
	})
}
