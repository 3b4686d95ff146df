package pacer_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/pacer/storetest"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

// TestStoreFails checks that the processes go on with their shares, and return to the store.
// Each logs one record when the store fails, and one when it is back.
func TestStoreFails(t *testing.T) {
	for name, fail := range map[string]func(*loadsim.Store, time.Duration){"dead": (*loadsim.Store).Kill, "hung": (*loadsim.Store).Hang} {
		synctest.Test(t, func(t *testing.T) {
			s, log := fleet(4)
			s.Span = 4 * time.Minute
			s.Meanwhile = func(w *loadsim.World) {
				time.Sleep(time.Minute)
				fail(s.Store, 2*time.Minute)
				time.Sleep(119 * time.Second)
				assert.NoError(t, w.Fleet[0].SetLimits(perMinute(59)), name)
				state := w.Fleet[0].State()
				assert.Equal(t, 4, state.Processes, name)
				assert.InDelta(t, 110, time.Since(state.StoreDown).Seconds(), 11, name)
				time.Sleep(6 * time.Second)
				for _, p := range w.Fleet {
					assert.True(t, p.State().StoreDown.IsZero(), "back within 5 s")
				}
			}
			m := loadsim.Run(s).Measure(0, s.Span)
			assert.LessOrEqual(t, m.Refused, 1, "the fleet follows on the shares")
			assert.GreaterOrEqual(t, m.Used, 0.96, name)
			assert.Equal(t, 4, count(log, "store does not answer"), name)
			assert.Equal(t, 4, count(log, "store answers again"), name)
			assert.Equal(t, name == "dead", count(log, "what to do about that") > 0, "its words are whole")
			assert.Zero(t, count(log, loadsim.Key), name)
		})
	}
}

// TestStoreLosesItsValue checks that a process writes back what was learned, and how much of
// a long limit is used. It logs a loss once in two minutes.
func TestStoreLosesItsValue(t *testing.T) {
	for name, lose := range map[string]func(e *loadsim.Entry, first loadsim.Entry){
		"flushed": func(e *loadsim.Entry, _ loadsim.Entry) { *e = loadsim.Entry{} },
		"foreign": func(e *loadsim.Entry, _ loadsim.Entry) { e.Value = []byte("OK") },
		"older":   func(e *loadsim.Entry, first loadsim.Entry) { *e = first }, // from a replica, or a backup
	} {
		synctest.Test(t, func(t *testing.T) {
			log, option := logging()
			store := loadsim.NewStore()
			p := sharing(t, append(perMinute(20), pacer.Limit{Key: "day", Max: 1000, Window: 24 * time.Hour}), store, option)
			acquire(t, p, message)
			first := map[string]loadsim.Entry{}
			store.Values(func(values map[string]loadsim.Entry) { maps.Copy(first, values) })
			fill(t, p, 2*time.Minute)
			acquire(t, p, patient()).Done(tooMany("", 15*time.Second))
			synctest.Wait()
			assert.Less(t, level(p), 17.0, "%s: the refusal has lowered the level", name)
			for _, loss := range []struct{ after, logged int }{{after: 0, logged: 1}, {after: 90, logged: 1}, {after: 120, logged: 2}} {
				time.Sleep(time.Duration(loss.after) * time.Second)
				levelBefore, usedBefore := level(p), limitOf(p, "day").Used
				store.Values(func(values map[string]loadsim.Entry) {
					for key, e := range values {
						lose(&e, first[key])
						values[key] = e
					}
				})
				acquire(t, p, patient())
				assert.Equal(t, levelBefore, level(p), "%s: the level", name)
				assert.Equal(t, usedBefore+1, limitOf(p, "day").Used, "%s: the calls of the day", name)
				synctest.Wait()
				assert.Equal(t, loss.logged, count(log, "begins the shared state afresh"), "%s: records", name)
			}
		})
	}
}

// Other limits have another value in the store. A process takes there what it has counted. A
// fake's clock stands still meanwhile, because no call waits for anything but the store.
func TestOtherLimitsKeepTheCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// An endpoint that the interface does not list counts as a request.
		fake, store, attempt := fakeserver.New(t), loadsim.NewStore(), message
		store.Clock, store.Away, attempt.Clock, attempt.Path = fake, 10*time.Millisecond, fake, "/v2/new"
		p, began := sharing(t, perMinute(60), store), fake.Now()
		acquire(t, p, attempt)
		synctest.Wait()
		assert.NoError(t, p.SetLimits(append(perMinute(60), pacer.Limit{Key: "day", Max: 1000, Window: 24 * time.Hour})))
		acquire(t, p, attempt)
		synctest.Wait()
		assert.Equal(t, 2, limitOf(p, "minute").Used)
		assert.Less(t, fake.Now().Sub(began), time.Second)
	})
}

func slow(by time.Duration) func(*loaded) { return func(*loaded) { time.Sleep(by) } }

// TestBrokenStore has stores that do not answer, or whose time goes back. No call of a store
// is made while another has not returned.
func TestBrokenStore(t *testing.T) {
	var blocked atomic.Int64
	setBack := func(by time.Duration) func(*loaded) {
		return func(l *loaded) { l.now = l.now.Add(-map[string]time.Duration{"1": by, "3": by}[l.version]) }
	}
	for name, tt := range map[string]struct {
		fault func(*loaded)
		logs  string
	}{
		"panics":                     {func(*loaded) { panic("key " + loadsim.Key + " of redis://me:canary@host") }, "a part of the program panicked: key [redacted] of redis://[redacted]\""},
		"ends its goroutine":         {func(*loaded) { runtime.Goexit() }, "a part of the program panicked"},
		"tells no time":              {func(l *loaded) { l.now = time.Time{} }, "says that the time is 0001-01-01"},
		"is far in the future":       {func(l *loaded) { l.now = time.Unix(1<<40, 0) }, "says that the time is 36812-"},
		"takes 249 ms":               {slow(249 * time.Millisecond), ""},
		"takes 251 ms":               {slow(251 * time.Millisecond), "does not answer; working on a share of the limits"},
		"takes an hour":              {func(*loaded) { blocked.Add(1); time.Sleep(time.Hour) }, "does not answer; working on a share of the limits"},
		"loads an old version":       {func(l *loaded) { l.version = "old" }, "the store refuses the version that Load returned"},
		"goes back by 5 s":           {setBack(5 * time.Second), ""},
		"goes back by more than 5 s": {setBack(5*time.Second + time.Microsecond), "begins the shared state afresh"},
		"forgets each value":         {func(l *loaded) { l.value = nil }, "begins the shared state afresh"},
	} {
		synctest.Test(t, func(t *testing.T) {
			log, option := logging()
			p := sharing(t, perMinute(60), &broken{Store: loadsim.NewStore(), fault: tt.fault}, option)
			for range 20 {
				acquire(t, p, patient())
			}
			synctest.Wait() // it logs once the calls have gone
			assert.Contains(t, log.String(), tt.logs, "a store that %s", name)
			assert.Equal(t, min(1, len(tt.logs)), count(log, "\n"), "a store that %s: records in %s", name, log)
			time.Sleep(time.Hour) // for the store that takes an hour
		})
	}
	assert.EqualValues(t, 1, blocked.Load(), "calls of the store that takes an hour")
}

// logging returns an option that logs to a buffer. Read it when no pacer works.
func logging() (*bytes.Buffer, pacer.Option) {
	log := &bytes.Buffer{}
	return log, pacer.WithLogger(slog.New(slog.NewTextHandler(log, nil)))
}

func count(log *bytes.Buffer, words string) int { return strings.Count(log.String(), words) }

// fleet returns a scenario of processes with four workers each, which share 60 calls a minute
// for six minutes. It has no latency, so no window may have more.
func fleet(processes int) (s loadsim.Scenario, log *bytes.Buffer) {
	log, option := logging()
	return loadsim.Scenario{
		Model: loadsim.Sliding, Limits: perMinute(60), Options: []pacer.Option{option}, Store: loadsim.NewStore(),
		Processes: processes, Loads: []loadsim.Load{{Workers: []int{4}}}, Span: 6 * time.Minute,
	}, log
}

// sharing is a process that shares limits.
func sharing(t *testing.T, limits []pacer.Limit, store pacer.Store, opts ...pacer.Option) *pacer.Pacer {
	t.Helper()
	return newPacer(t, limits, append(opts, pacer.WithStore(store, loadsim.Key))...)
}

// TestStoreAppears checks that the shares that processes begin with, without the store, do not
// become the level of the fleet.
func TestStoreAppears(t *testing.T) {
	s, _ := fleet(4)
	s.Meanwhile = func(w *loadsim.World) {
		time.Sleep(time.Minute)
		assert.Zero(t, w.Fleet[0].State().Processes, "after a minute without the store")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 60.0, level(w.Fleet[0].Pacer), "two minutes later")
	}
	synctest.Test(t, func(*testing.T) {
		s.Store.Kill(time.Minute)
		w := loadsim.Run(s)
		assert.InDelta(t, 60, w.Measure(0, time.Minute).Accepted, 10, "each process a quarter")
		assert.GreaterOrEqual(t, w.Measure(70*time.Second, s.Span).Used, 0.98)
	})
}

// Without the store, a process learns its share of 60 calls a minute from refusals, and keeps it
// for 40 windows. When the store is back, its first call waits, because others may still be on
// their shares.
func TestRefusalsTeachAShare(t *testing.T) {
	for name, tt := range map[string]struct {
		calls, wait time.Duration // for which calls go before the refusal, and its Retry-After
		level       float64
	}{
		"the first refusal": {calls: 20 * s, wait: 10 * s, level: 8.9},
		"a quarter that grew for two windows by a half, to the calls of the second": {calls: 2 * time.Minute, wait: s, level: 27},
	} {
		synctest.Test(t, func(t *testing.T) {
			loads, began := 0, time.Now()
			store := &broken{Store: loadsim.NewStore(), fault: func(*loaded) { loads++ }}
			store.Kill(h)
			p := sharing(t, perMinute(60), store)
			fill(t, p, tt.calls)
			assert.InDelta(t, tt.calls.Seconds()/1.7, loads, 3, "%s: it asks the store every 1.7 s", name)
			acquire(t, p, patient()).Done(tooMany("", tt.wait))
			synctest.Wait()
			assert.InDelta(t, tt.level, level(p), 0.1, name)
			time.Sleep(39 * time.Minute)
			assert.InDelta(t, tt.level, level(p), 0.1, "%s: 39 windows later", name)
			time.Sleep(time.Until(began.Add(2 * h)))
			_, wait := ask(t, p, message)
			assert.Equal(t, 2*s, wait, "%s: with the store", name)
		})
	}
}

// TestWayToTheStore checks that a process takes the store's time for the middle of the round
// trip, and that an error of some milliseconds does not make it ask too early for its turn.
func TestWayToTheStore(t *testing.T) {
	for away, want := range map[time.Duration]float64{0: 60.4, 100 * time.Millisecond: 60.57} {
		synctest.Test(t, func(t *testing.T) {
			loads := 0
			store := &broken{Store: loadsim.NewStore(), fault: func(l *loaded) {
				if loads++; loads == 2 {
					l.now = l.now.Add(10 * time.Millisecond)
				}
			}}
			store.Away = away
			p, began := sharing(t, perMinute(1), store), time.Now()
			acquire(t, p, message)
			acquire(t, p, message)
			assert.InDelta(t, want, time.Since(began).Seconds(), 0.04, away)
			assert.Equal(t, 3, loads, away)
		})
	}
}

// A process claims the turn of a waiting call 250 ms before it comes.
func TestGrantOfACallThatLeavesIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sharing(t, perMinute(60), loadsim.NewStore())
		fill(t, p, time.Second)
		used := limitOf(p, "minute").Used
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = p.Acquire(ctx, patient()) }()
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, used+1, limitOf(p, "minute").Used, "when its turn is claimed")
		cancel()
		synctest.Wait()
		assert.Equal(t, used, limitOf(p, "minute").Used, "when it has left")
	})
}

// A call that leaves during a step takes no grant, and holds no place before another process.
func TestCallThatLeavesDuringAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := loadsim.NewStore()
		store.Away = 100 * time.Millisecond // a step takes 400 ms
		p, other := sharing(t, perMinute(6), store), sharing(t, perMinute(6), store)
		_, err := p.Acquire(within(t, 150*time.Millisecond), message)
		assert.ErrorIs(t, err, context.DeadlineExceeded, "the step is still under way")
		time.Sleep(time.Second)
		assert.Zero(t, limitOf(p, "minute").Used, "after the step")
		go acquire(t, p, message)
		time.Sleep(100 * time.Millisecond)
		go acquire(t, p, message)                                  // the next step begins 300 ms later, and grants one of two calls
		_, _ = p.Acquire(within(t, 500*time.Millisecond), message) // leaves during this step
		time.Sleep(time.Second)
		_, err = other.Acquire(within(t, 12*s), message)
		assert.NoError(t, err, "the third of 6 calls a minute")
	})
}

func TestProcessIsForgottenTwoMinutesAfterItsLastStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := loadsim.NewStore()
		one, two := sharing(t, perMinute(60), store), sharing(t, perMinute(60), store)
		acquire(t, two, message)
		time.Sleep(2 * time.Minute)
		acquire(t, one, message)
		assert.Equal(t, 2, one.State().Processes, "after 2 min")
		time.Sleep(time.Microsecond)
		acquire(t, one, message)
		assert.Equal(t, 1, one.State().Processes, "after more than 2 min")
	})
}

// TestValue checks that the store's value is small, that neither its key nor a print of the
// pacer shows the API key, and that the store keeps the value for as long as it matters.
func TestValue(t *testing.T) {
	for processes, most := range map[int]int{1: 500, 16: 700} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := fleet(processes)
			s.Limits, s.Span, s.Loads[0].Class = pacer.PreviewLimits(), 30*time.Second, loadsim.Interactive
			loadsim.Run(s)
			p := sharing(t, s.Limits, s.Store)
			assert.NotContains(t, fmt.Sprintf("%+v %#v", p, p), loadsim.Key, "%d processes", processes)
			s.Store.Values(func(values map[string]loadsim.Entry) {
				for key, e := range values {
					assert.Regexp(t, `^agentmessaging:[0-9a-f]{32}$`, key, "%d processes", processes)
					assert.Less(t, len(e.Value), most, "%d processes", processes)
					assert.InDelta(t, 49, time.Until(e.Expires).Hours(), 0.1, "%d processes", processes)
				}
			})
		})
	}
}

// failures collects the failures that storetest reports.
type failures struct {
	mu    sync.Mutex
	texts []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

// broken is a store with one fault.
type broken struct {
	*loadsim.Store
	fault func(*loaded) // changes what Load returns, or delays it; may be nil
	blind bool          // to the version of a key that has a value
	sql   bool          // Load skips the rows that have expired, but INSERT does not replace them, and UPDATE lets them expire
	rows  sync.Map      // of sql, by key
}

type loaded struct {
	value   []byte
	version string
	now     time.Time
}

func (b *broken) Load(ctx context.Context, key string) ([]byte, string, time.Time, error) {
	value, version, now, err := b.Store.Load(ctx, key)
	l := loaded{value, version, now}
	if b.fault != nil {
		b.fault(&l)
	}
	return l.value, l.version, l.now, err
}

func (b *broken) Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (bool, error) {
	_, there := b.rows.LoadOrStore(key, ttl)
	switch {
	case b.blind && version == "":
		_, version, _, _ = b.Store.Load(ctx, key)
	case b.sql && version == "" && there:
		return false, nil
	case b.sql && version != "":
		ttl = 50 * time.Millisecond
	}
	return b.Store.Swap(ctx, key, version, value, ttl)
}

// TestFaultsAreFound checks that storetest refuses each broken store with the rule that it
// breaks, and accepts the store of the simulation.
func TestFaultsAreFound(t *testing.T) {
	var kept sync.Map
	for rule, store := range map[string]*broken{
		"": {},
		`a key that was never set has no value and the version ""`: {fault: func(l *loaded) { l.version += "0" }},
		"a value may hold any bytes":                               {fault: func(l *loaded) { l.value = bytes.ToValidUTF8(l.value, nil) }},
		"Load tells the store's time":                              {fault: func(l *loaded) { l.now = time.Time{} }},
		"the store's time passes":                                  {fault: func(l *loaded) { l.now = time.Unix(0, l.now.UnixMilli()) }},
		`Swap with the version "" does not replace a value`:        {blind: true},
		"when its ttl has passed":                                  {sql: true},
		"each Swap counts the ttl anew":                            {sql: true},
		"a call takes at most 250 ms":                              {fault: slow(251 * time.Millisecond)},
		"each call returns soon":                                   {fault: slow(time.Hour)},
		"what Load returned is the caller's own": {fault: func(l *loaded) {
			if len(l.value) > 1<<10 { // the small ones are loaded side by side
				first, _ := kept.LoadOrStore(l.version, l.value)
				l.value = first.([]byte)
			}
		}},
	} {
		var found failures
		store.Store = loadsim.NewStore()
		synctest.Test(t, func(*testing.T) {
			storetest.Run(&found, func() pacer.Store { return store })
			time.Sleep(1000 * time.Hour) // let all calls of a slow store return
		})
		assert.Contains(t, strings.Join(found.texts, "\n"), rule, rule)
		assert.Equal(t, rule == "", len(found.texts) == 0, "%q: only a store without a fault passes", rule)
	}
	var found failures
	storetest.Run(&found, func() pacer.Store { return (*broken)(nil) })
	assert.Equal(t, []string{"newStore returned a nil store"}, found.texts)
}

// A call that asks while a refusal is on its way to the store waits for Retry-After.
func TestRefusalComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := loadsim.NewStore()
		store.Away = 50 * time.Millisecond
		p := sharing(t, perMinute(600), store)
		first := acquire(t, p, message)
		time.Sleep(time.Second)
		var group sync.WaitGroup
		group.Go(func() { acquire(t, p, message) }) // a step is under way
		time.Sleep(10 * time.Millisecond)
		group.Go(func() { acquire(t, p, creation) })
		time.Sleep(10 * time.Millisecond)
		began := time.Now()
		first.Done(tooMany("", 30*time.Second))
		group.Wait()
		assert.GreaterOrEqual(t, time.Since(began), 30*time.Second)
	})
}

// TestRefusalsInARow checks that a process whose calls are refused does not close the limit
// for longer and longer, if calls of another pass, although their answers come when the limit is
// closed. If none passes, or none is answered, it does,
// from a second on, however long the service once asked for. When the limit opens then, one call
// goes, and not as many as after quiet.
func TestRefusalsInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, began := loadsim.NewStore(), time.Now()
		unlucky, lucky := sharing(t, perMinute(60), store), sharing(t, perMinute(60), store)
		for i, asked := range []time.Duration{s, s, s, s, s, 30 * s, s, s, s, s} {
			passes, refused := acquire(t, lucky, patient()), acquire(t, unlucky, patient())
			refused.Done(tooMany("", asked))
			synctest.Wait()
			passes.Done([]agentmessaging.AttemptOutcome{accepted, {Sent: true}}[i/5])
		}
		acquire(t, unlucky, patient()).Done(accepted)
		assert.InDelta(t, 48, time.Since(began).Seconds(), 2)
		assert.Zero(t, use(t, unlucky, message))
	})
}

func TestLoggerMayMakeACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *pacer.Pacer
		var logged atomic.Int32
		call := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.MessageKey {
				acquire(t, p, message)
				logged.Add(1)
			}
			return a
		}
		store := loadsim.NewStore()
		store.Kill(time.Second)
		p = sharing(t, perMinute(60), store, pacer.WithLogger(slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{ReplaceAttr: call}))))
		fill(t, p, 5*time.Second)
		synctest.Wait()
		assert.EqualValues(t, 2, logged.Load(), "the store failed, and is back")
	})
}
