// Package simulation measures package pacer on services that count calls in
// each of the usual ways. README.md has the tables of targets.
package simulation

import (
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

// target is a row of a table: the figures of its runs, and their bounds.
type target struct {
	name   string
	runs   []scenario
	seeds  int             // with each of which the runs are played; 0: with their own
	from   time.Duration   // within the scenario's span
	to     time.Duration   // 0: all of it
	only   []loadsim.Class // nil: all
	want   bounds
	missed string // what is missed, and why
}

// bounds of the figures that a row shows.
type bounds []struct {
	figure
	bound float64
}

// figure is the worst of all runs, or their mean.
type figure struct {
	name   string
	bound  string
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
	wait       = figure{"99th wait", atMost, false, "%.1f s", func(m loadsim.Measures) float64 { return m.P99.Seconds() }}
	steps      = figure{"operations a call", atMost, false, "%.4g", func(m loadsim.Measures) float64 { return m.Steps }}
	conflicts  = figure{"conflicts", atMost, false, "%.1f %%", func(m loadsim.Measures) float64 { return 100 * m.Conflicts }}
)

// holds reports whether a figure is as good as another.
func (f figure) holds(got, want float64) bool {
	return got == want || (got < want) == (f.bound == atMost)
}

// overall is the figure of several runs.
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

// The bounds of 429s and minutes are those of the client before refusals ceased to
// count as failures, which lost up to 16 calls of 1,000 (132 with two programs), and 1.1
// times that with one program, 1.3 times with two.
var clientTargets = []target{
	{name: "batch of 500, one program", runs: on(all, batches(1, 0)...), seeds: 4, want: bounds{{lostCalls, 0}, {meanOf429s, 0.45}, {minutes, 9.3}}},
	{name: "the same, replies of 8 s", runs: on(all, batches(1, 8*time.Second)...), seeds: 2, want: bounds{{lostCalls, 0}, {meanOf429s, 0.21}, {minutes, 36}}},
	{name: "two programs at once", runs: on(all, batches(2, 0)...), seeds: 3, want: bounds{{lostCalls, 0.1}, {meanOf429s, 0.9}, {minutes, 11.4}}},
	{name: "16 programs with 8 callers each, 20 minutes", runs: on(all, many), seeds: 3, want: bounds{{lostCalls, 1}}},
	{name: "messages beside 96 creations of 10 a minute, all 429s of one name", runs: on([]model{loadsim.Fixed, loadsim.FromUse, loadsim.Log, loadsim.Counter}, innocent), seeds: 4, want: bounds{{lostCalls, 0}, {longest, 1.2}}},
	{name: "messages and reads that share a limit", runs: on(all, shared), seeds: 4, want: bounds{{lostCalls, 0}, {meanOf429s, 0.27}}},
	{name: "refused for ever after 1 s, one caller", runs: on([]model{loadsim.Refusing}, refusing(1)), seeds: 8, want: bounds{{requests, 12}}},
	{name: "refused for ever after 1 s, 500 callers", runs: on([]model{loadsim.Refusing}, refusing(500)), seeds: 4, want: bounds{{requests, 560}}},
}

const onlyCounted = "429s: on windows one at the end of each, but a service that slides opens for one call and refuses the next"

var pacerTargets = []target{
	{name: "1, 8 and 64 callers who always want more, in 1, 4 and 16 processes, and one process without a store",
		runs: on(loadsim.Models, append(fleets(1, 8, 64), alone)...), want: bounds{{used, 99}, {refused, 0.002}, {jain, 0.99}, {pause, 3}, {steps, 4}},
		missed: "operations: a lone caller asks once for its place and once for its turn, and now and then again"},
	{name: "a leaky bucket, and a token bucket with a burst of 10, one process and four",
		runs: on(loadsim.Strict, saturated(4, 8), alone),
		want: bounds{{used, 90}, {refused, 0.03}}, missed: "quota used: on a leaky bucket a call that comes early loses its turn, and the distance that prevents this costs as much"},
	{name: "one process with 64 callers among 15 with one", runs: on(loadsim.Models, greedy), want: bounds{{used, 98}, {refused, 0.002}, {jain, 0.99}}},
	{name: "calls at random, 80 % of the limit, 4 and 16 processes", runs: on([]model{loadsim.Fixed, loadsim.Log, loadsim.Bucket}, atRandom(4), atRandom(16)),
		want:   bounds{{used, 76}, {refused, 0.002}, {steps, 1.5}},
		missed: "operations: a call that comes alone takes a load and a swap, and with a store of two methods not less"},
	{name: "interactive calls beside batch load, 16 processes", only: []loadsim.Class{loadsim.Interactive},
		runs: on(loadsim.Models, saturated(16, 8).and(loadsim.Load{Class: loadsim.Interactive, PerMinute: 6}, 10*time.Minute)),
		want: bounds{{refused, 0.02}, {wait, 2.5}}},
	{name: "batch calls beside interactive load", only: []loadsim.Class{loadsim.Batch},
		runs: on(loadsim.Models, saturated(4, 1).and(loadsim.Load{Class: loadsim.Interactive, Workers: []int{8}}, time.Hour)),
		want: bounds{{refused, 0.01}, {wait, 60}}},
	{name: "somebody else uses 30 % of the key", runs: on(loadsim.Models, saturated(4, 8).and(loadsim.Load{Class: loadsim.Elsewhere, PerMinute: 18}, 2*time.Hour)),
		want: bounds{{refused, 0.02}}},
	{name: "four minutes after a limit was halved for five", runs: on(loadsim.Models, halved), want: bounds{{used, 95}, {refused, 0.005}}},
	{name: "one process killed and one stopped for two minutes of four, at three moments of a minute",
		runs: on(loadsim.Models, lost(0), lost(17*time.Second), lost(40*time.Second)), want: bounds{{used, 95}, {refused, 0.02}}},
	{name: "a process restarted every minute", runs: on(loadsim.Models, restarted), want: bounds{{used, 95}, {refused, 0.006}}},
	{name: "store dead or hung for 60 s, 4 and 16 processes; that and the next minute", runs: on([]model{loadsim.Fixed, loadsim.FromUse, loadsim.Log, loadsim.Bucket}, outages()...),
		from: 17 * time.Second, to: 137 * time.Second, want: bounds{{used, 95}, {refused, 0.01}, {pause, 5}}},
	{name: "the same on a sliding counter", runs: on([]model{loadsim.Counter}, outages()...),
		from: 17 * time.Second, to: 137 * time.Second, want: bounds{{used, 95}, {refused, 0.01}, {pause, 5}},
		missed: "429s: one to three in 118 calls, since this way of counting refuses a window that is exactly full"},
	{name: "store loses its values twice", runs: on(loadsim.Models, flushed(4), flushed(16)), want: bounds{{used, 98}, {refused, 0.006}}},
	{name: "store never seen, 2 to 16 processes", runs: on(loadsim.Models, neverSeen(2), neverSeen(4), neverSeen(8), neverSeen(16)), want: bounds{{used, 80}, {refused, 0.02}}},
	{name: "a limit of 3 an hour, 20 hours", runs: on(loadsim.Models, hourly(3)), want: bounds{{used, 90}, {refused, 1.0 / 3}}, missed: onlyCounted},
	{name: "a limit of 50 an hour, 20 hours", runs: on(loadsim.Models, hourly(50)), want: bounds{{used, 95}, {refused, 1.0 / 50}}, missed: onlyCounted},
	{name: "answers that take 20 ms and 10 s", runs: on(loadsim.Models, slowReplies(20*time.Millisecond), slowReplies(10*time.Second)), want: bounds{{used, 97}, {refused, 0.002}}},
	{name: "600 a minute, 16 processes, store 80 ms there and back", runs: on(loadsim.Models, farAway),
		want: bounds{{used, 98}, {refused, 0.002}, {conflicts, 15}}},
}
