// Package simulation measures package pacer, and the client without it, on services that
// count calls in each of the usual ways. README.md has the tables of targets.
package simulation

import (
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

type (
	model    = loadsim.Model
	scenario = loadsim.Scenario
	world    = loadsim.World
)

// target is a row of a table: scenarios, and bounds for their figures.
type target struct {
	name    string
	runs    []scenario
	seeds   int             // how many times each run is repeated, each time with another seed; 0: once, with its own seed
	classes []loadsim.Class // the classes to measure; nil: all
	want    bounds

	ideal string // an ideal bound, and why the row does not reach it; "" if all bounds are ideal
}

// bounds are the figures that a row shows, each with its bound.
type bounds []struct {
	figure
	bound float64
}

// figure is a measure of several runs: the worst value, or the mean.
type figure struct {
	name   string
	side   string // the side of its bound on which the figure should be
	mean   bool
	format string
	of     func(loadsim.Measures) float64
}

const atMost, atLeast = "at most", "at least"

var (
	lostCalls  = figure{"lost", atMost, true, "%.2f %%", func(m loadsim.Measures) float64 { return 100 * float64(m.Lost) / float64(max(1, m.Done+m.Lost)) }}
	meanOf429s = figure{"429s a call", atMost, true, "%.2f", loadsim.Measures.RefusedPerCall}
	minutes    = figure{"minutes for 500 calls", atMost, true, "%.1f", func(m loadsim.Measures) float64 { return 500 * m.Last.Minutes() / float64(max(1, m.Done)) }}
	longest    = figure{"longest wait", atMost, false, "%.1f s", func(m loadsim.Measures) float64 { return m.Longest.Seconds() }}
	requests   = figure{"requests", atMost, false, "%.0f", func(m loadsim.Measures) float64 { return float64(m.Accepted + m.Refused) }}
	used       = figure{"quota used", atLeast, false, "%.1f %%", func(m loadsim.Measures) float64 { return 100 * m.Used }}
	refused    = figure{"429s a call", atMost, false, "%.4g", loadsim.Measures.RefusedPerCall}
	jain       = figure{"Jain index", atLeast, false, "%.4g", func(m loadsim.Measures) float64 { return m.Jain }}
	pause      = figure{"longest pause", atMost, false, "%.1f s", func(m loadsim.Measures) float64 { return m.Pause.Seconds() }}
	p99Wait    = figure{"99th percentile of waits", atMost, false, "%.1f s", func(m loadsim.Measures) float64 { return m.P99.Seconds() }}
	storeOps   = figure{"operations a call", atMost, false, "%.4g", func(m loadsim.Measures) float64 { return m.StoreOps }}
	conflicts  = figure{"conflicts", atMost, false, "%.1f %%", func(m loadsim.Measures) float64 { return 100 * m.Conflicts }}
)

// holds reports whether the figure got is as good as its bound.
func (f figure) holds(got, want float64) bool {
	return got == want || (got < want) == (f.side == atMost)
}

// overall returns the figure of several runs.
func (f figure) overall(runs []loadsim.Measures) (got float64) {
	for i, m := range runs {
		switch one := f.of(m); {
		case f.mean:
			got += one / float64(len(runs))
		case i == 0 || f.holds(got, one):
			got = one
		}
	}
	return got
}

var all = slices.Concat(loadsim.Models, loadsim.Strict)

// The bounds on refusals and minutes come from an older client, in which a 429 counted as
// a failure. It lost up to 16 calls of 1,000 (132 with two programs). The bounds are its
// figures times 1.1 for one program, and times 1.3 for two.
var clientTargets = []target{
	{name: "batch of 500, one program", runs: on(all, batches(1, 0)...), seeds: 4, want: bounds{{lostCalls, 0}, {meanOf429s, 0.45}, {minutes, 9.3}}},
	{name: "the same, replies of 8 s", runs: on(all, batches(1, 8*time.Second)...), seeds: 2, want: bounds{{lostCalls, 0}, {meanOf429s, 0.21}, {minutes, 36}}},
	{name: "two programs at once", runs: on(all, batches(2, 0)...), seeds: 3, want: bounds{{lostCalls, 0.1}, {meanOf429s, 0.9}, {minutes, 11.4}}},
	{name: "160 messages of two programs, one of which ends first", runs: on(all, short), seeds: 4, want: bounds{{lostCalls, 0}, {meanOf429s, 0.4}, {minutes, 10}}},
	{name: "16 programs with 8 and with 20 callers each, 20 minutes", runs: on(all, many(8), many(20)), seeds: 3, want: bounds{{lostCalls, 0}}},
	{name: "messages next to 96 creations of 10 a minute, all 429s of one name", seeds: 4,
		runs: on([]model{loadsim.Aligned, loadsim.Fixed, loadsim.Sliding, loadsim.Weighted}, bystanders), want: bounds{{lostCalls, 0}, {longest, 1.2}}},
	{name: "messages and reads that share a limit", runs: on(all, shared), seeds: 4, want: bounds{{lostCalls, 0}, {meanOf429s, 0.27}}},
	{name: "refused forever after 1 s, one caller", runs: on([]model{loadsim.Refusing}, refusing(1)), seeds: 8, want: bounds{{requests, 12}}},
	{name: "refused forever after 1 s, 500 callers", runs: on([]model{loadsim.Refusing}, refusing(500)), seeds: 4, want: bounds{{requests, 560}}},
}

const onlyCounted = ", one at the end of each window; but a service that slides opens for one call and refuses the next"

var pacerTargets = []target{
	{name: "1, 8 and 64 callers who always want more, in 1, 4 and 16 processes, and one process without a store",
		runs: on(loadsim.Models, append(fleets(1, 8, 64), alone)...), want: bounds{{used, 99}, {refused, 0.002}, {jain, 0.99}, {pause, 3}, {storeOps, 4.1}},
		ideal: "4 operations, as a lone caller takes to ask for its place and its turn; but after a 429 all processes ask again"},
	{name: "a leaky bucket, and a token bucket with a burst of 10, one process and four", runs: on(loadsim.Strict, saturated(4, 8), alone),
		want: bounds{{used, 90}, {refused, 0.03}}},
	{name: "one process with 64 callers among 15 with one", runs: on(loadsim.Models, greedy), want: bounds{{used, 98}, {refused, 0.002}, {jain, 0.99}}},
	{name: "calls at random, 80 % of the limit, 4 and 16 processes", runs: on([]model{loadsim.Aligned, loadsim.Sliding, loadsim.Bucket}, atRandom(4), atRandom(16)),
		want:  bounds{{used, 76}, {refused, 0.002}, {storeOps, 2.3}},
		ideal: "1.5 operations; but a call that comes alone takes a load and a swap, and with a store of two methods not less"},
	{name: "interactive calls during batch load, 16 processes", classes: []loadsim.Class{loadsim.Interactive},
		runs: on(loadsim.Models, saturated(16, 2).and(loadsim.Load{Class: loadsim.Interactive, PerMinute: 6}, 10*time.Minute)),
		want: bounds{{refused, 0.02}, {p99Wait, 2.5}}},
	{name: "batch calls during interactive load", classes: []loadsim.Class{loadsim.Batch},
		runs: on(loadsim.Models, saturated(4, 1).and(loadsim.Load{Class: loadsim.Interactive, Workers: []int{8}}, 20*time.Minute)),
		want: bounds{{used, 10}, {refused, 0.01}, {p99Wait, 60}}}, // every eighth call is a batch call
	{name: "somebody else uses 30 % of the key", runs: on(loadsim.Models, saturated(4, 8).and(loadsim.Load{Class: loadsim.Elsewhere, PerMinute: 18}, 90*time.Minute)),
		want: bounds{{refused, 0.02}}},
	{name: "four minutes after a limit was halved for five", runs: on(loadsim.Models, halved), want: bounds{{used, 95}, {refused, 0.005}}},
	{name: "one process killed and one stopped for two minutes of four, at three moments of a minute",
		runs: on(loadsim.Models, lost(0), lost(17*time.Second), lost(40*time.Second)), want: bounds{{used, 95}, {refused, 0.02}}},
	{name: "a process restarted every minute", runs: on(loadsim.Models, restarted), want: bounds{{used, 95}, {refused, 0.006}}},
	{name: "store dead or hung for 60 s, 4 and 16 processes; that and the next minute", runs: on([]model{loadsim.Aligned, loadsim.Fixed, loadsim.Sliding, loadsim.Bucket}, outages...),
		want: bounds{{used, 95}, {refused, 0.01}, {pause, 5}}},
	{name: "the same on a sliding counter", runs: on([]model{loadsim.Weighted}, outages...),
		want:  bounds{{used, 95}, {refused, 3.0 / 118}, {pause, 5}},
		ideal: "0.01 429s; but this way of counting refuses a window that is exactly full"},
	{name: "store loses its values twice", runs: on(loadsim.Models, flushed(4), flushed(16)), want: bounds{{used, 98}, {refused, 0.006}}},
	{name: "store never seen, 2 to 16 processes", runs: on(loadsim.Models, neverSeen(2), neverSeen(4), neverSeen(8), neverSeen(16)), want: bounds{{used, 80}, {refused, 0.02}}},
	{name: "a limit of 3 an hour, six hours", runs: on(loadsim.Models, hourly(3)), want: bounds{{used, 90}, {refused, 1}}, ideal: "0.3333 429s" + onlyCounted},
	{name: "a limit of 50 an hour, six hours", runs: on(loadsim.Models, hourly(50)), want: bounds{{used, 95}, {refused, 1}}, ideal: "0.02 429s" + onlyCounted},
	{name: "answers that take 20 ms and 10 s", runs: on(loadsim.Models, slowReplies(20*time.Millisecond), slowReplies(10*time.Second)), want: bounds{{used, 97}, {refused, 0.002}}},
	{name: "600 a minute, 16 processes, store 80 ms there and back", runs: on(loadsim.Models, farAway),
		want: bounds{{used, 98}, {refused, 0.002}, {conflicts, 15}}},
}

// plan returns the scenario for a way of counting.
type plan func(model) scenario

// on returns the scenarios of all plans on all models.
func on(models []model, plans ...plan) (runs []scenario) {
	for _, p := range plans {
		for _, m := range models {
			runs = append(runs, p(m))
		}
	}
	return runs
}

// but returns the plan with a change.
func (p plan) but(change func(*scenario)) plan {
	return func(m model) scenario {
		s := p(m)
		change(&s)
		return s
	}
}

// then adds an event, which comes after the given time from the previous event.
func (p plan) then(after time.Duration, do func(*world)) plan {
	return p.but(func(s *scenario) {
		before := s.Meanwhile
		s.Meanwhile = func(w *world) {
			if before != nil {
				before(w)
			}
			time.Sleep(after)
			do(w)
		}
	})
}

// perMinute returns a limit per minute with another name than the service's limit.
func perMinute(n int) []pacer.Limit {
	return []pacer.Limit{{Key: "ours", Max: n, Window: time.Minute}}
}

const (
	warm   = 103 * time.Second // the measured span starts at a whole minute
	midway = warm + 17*time.Second
)

// saturated has processes with workers that always want more than 60 calls a minute.
func saturated(processes, workers int) plan {
	return func(m model) scenario {
		s := scenario{
			Model:     m,
			Limits:    perMinute(60),
			Processes: processes, Loads: []loadsim.Load{{Workers: []int{workers}}},
			Latency: 40 * time.Millisecond, Store: loadsim.NewStore(),
			Starts: 15*time.Hour + 20*time.Minute + 17*time.Second,
			Warm:   warm, Span: 30 * time.Minute,
			Seed: uint64(1000*processes + workers),
		}
		s.Store.Away = time.Millisecond
		return s
	}
}

// fleets has 1, 4 and 16 processes, with a number of workers each.
func fleets(workers ...int) (plans []plan) {
	for _, n := range workers {
		plans = append(plans, saturated(1, n), saturated(4, n), saturated(16, n))
	}
	return plans
}

// alone has one process without a store.
var alone = saturated(1, 8).but(func(s *scenario) { s.Store = nil })

// greedy has one process with 64 workers and 15 processes with one worker.
var greedy = saturated(16, 1).but(func(s *scenario) { s.Loads[0].Workers = []int{64, 1} })

// and adds a load.
func (p plan) and(l loadsim.Load, span time.Duration) plan {
	return p.but(func(s *scenario) { s.Loads, s.Span = append(s.Loads, l), span })
}

// atRandom has calls at random times, at 80 % of the limit.
func atRandom(processes int) plan {
	return saturated(processes, 0).and(loadsim.Load{Class: loadsim.Interactive, PerMinute: 48}, 30*time.Minute)
}

// halved halves the limit for five minutes. The measured span begins four minutes after
// the limit is restored.
var halved = saturated(4, 8).but(func(s *scenario) { s.Warm += 9 * time.Minute }).
	then(warm, func(w *world) { w.Resize(30) }).
	then(5*time.Minute, func(w *world) { w.Resize(60) })

// outage has a store that fails for a minute. It measures this minute and the next.
func outage(processes int, fail func(*loadsim.Store, time.Duration)) plan {
	return saturated(processes, 8).but(func(s *scenario) { s.Warm, s.Span = midway, 2*time.Minute }).
		then(midway, func(w *world) { fail(w.Store, time.Minute) })
}

var outages = []plan{
	outage(4, (*loadsim.Store).Kill), outage(16, (*loadsim.Store).Kill), outage(4, (*loadsim.Store).Hang), outage(16, (*loadsim.Store).Hang),
}

// flushed has a store that loses its values twice.
func flushed(processes int) plan {
	lose := func(w *world) { w.Store.Values(func(values map[string]loadsim.Entry) { clear(values) }) }
	return saturated(processes, 8).then(midway, lose).then(midway, lose)
}

// neverSeen has a store that is dead from the start.
func neverSeen(processes int) plan {
	return saturated(processes, 8).but(func(s *scenario) { s.Warm += 5 * time.Minute }).
		then(0, func(w *world) { w.Store.Kill(time.Hour) })
}

// lost has four processes. One is killed, and another is frozen for two minutes. shift
// chooses the moment within the minute.
func lost(shift time.Duration) plan {
	return saturated(4, 8).but(func(s *scenario) { s.Starts += shift }).
		then(warm+20*time.Second, func(w *world) { w.Fleet[0].Kill(); w.Fleet[1].Freeze(2 * time.Minute) })
}

// restarted restarts one of the processes every minute.
var restarted = saturated(4, 8).but(func(s *scenario) {
	s.Meanwhile = func(w *world) {
		for i := range 31 { // until the end
			time.Sleep(time.Minute)
			w.Fleet[i%4].Kill()
			w.Start(i % 4)
		}
	}
})

// hourly has workers in four processes that want more than an hourly limit allows.
func hourly(maxCalls int) plan {
	return saturated(4, 2).but(func(s *scenario) {
		s.Limits = append(s.Limits, pacer.Limit{Key: "hour", Max: maxCalls, Window: time.Hour})
		s.Warm, s.Span = 0, 6*time.Hour
	})
}

// slowReplies has a service whose replies take a long time.
func slowReplies(replies time.Duration) plan {
	return saturated(4, 64).but(func(s *scenario) { s.Replies = replies })
}

// farAway has processes at a high rate, and a store that takes 80 ms for an answer.
var farAway = saturated(16, 8).but(func(s *scenario) {
	s.Limits, s.Store.Away, s.Span = perMinute(600), 40*time.Millisecond, 2*time.Minute
})

// unpaced has programs with a client without a Pacer, 40 ms from the service.
func unpaced(programs int, loads ...loadsim.Load) plan {
	return func(m model) scenario {
		return scenario{Model: m, Real: perMinute(60), Processes: programs, Latency: 40 * time.Millisecond, Loads: loads}
	}
}

// batches has programs that send 500 messages each, with 20, one and 500 callers, and
// with and without latency.
func batches(programs int, replies time.Duration) (plans []plan) {
	for _, callers := range []int{20, 1, 500} {
		for _, latency := range []time.Duration{0, 40 * time.Millisecond} {
			plans = append(plans, unpaced(programs, loadsim.Load{Workers: []int{callers}, Calls: 500 / callers}).
				but(func(s *scenario) { s.Latency, s.Replies = latency, replies }))
		}
	}
	return plans
}

// short has two programs. The one with the larger share of a minute ends first.
var short = unpaced(2, loadsim.Load{Workers: []int{10}, Calls: 8})

// many has 16 programs.
func many(callers int) plan {
	return unpaced(16, loadsim.Load{Workers: []int{callers}}).but(func(s *scenario) { s.Latency, s.Span = 20*time.Millisecond, 20*time.Minute })
}

// bystanders has a message every 6 s, and creations that another limit refuses, with the same
// limit_key in the 429. The limits have room for the messages, so none should wait.
var bystanders = unpaced(1,
	loadsim.Load{Workers: []int{70}, Calls: 1}, // refused at first
	loadsim.Load{Workers: []int{96}, Calls: 1, Begin: 4 * time.Minute, Call: spec.CreateAgent},
	loadsim.Load{Class: loadsim.Interactive, Workers: []int{1}, Calls: 80, Begin: 4*time.Minute + 300*time.Millisecond, Every: 6 * time.Second},
).but(func(s *scenario) {
	s.Real = append(s.Real, pacer.Limit{Max: 10, Window: time.Minute, Counts: pacer.CountsAgentCreations})
})

// shared has messages and reads under one limit.
var shared = unpaced(1, loadsim.Load{Workers: []int{8}, Calls: 31}, loadsim.Load{Workers: []int{8}, Calls: 31, Call: spec.GetAgent})

// refusing has a service that refuses every call, and a number of callers.
func refusing(callers int) plan { return unpaced(1, loadsim.Load{Workers: []int{callers}, Calls: 1}) }
