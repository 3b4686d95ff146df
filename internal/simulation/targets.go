package simulation

import "time"

// target is a row of the table: the worst figure of its runs, and its bound.
// Bounds that are 0 ask for nothing.
type target struct {
	name      string
	runs      []scenario
	look      func(*world) measures // nil: the scenario's span
	used      float64               // of the quota, at least
	refused   float64               // 429s for each accepted call, at most
	jain      float64               // index over the processes, at least
	pause     time.Duration         // without an accepted call, at most
	wait      time.Duration         // in the 99th percentile, at most
	steps     float64               // operations of the store for each call, at most
	conflicts float64               // of the swaps, at most
	missed    string                // what is missed, and why
}

// others are the models but for the sliding counter, which refuses a window that
// is exactly full.
var others = []model{fixed, fromUse, log, bucket}

// on plays a scenario on each of the models.
func on(models []model, of func(model) scenario) (runs []scenario) {
	for _, m := range models {
		runs = append(runs, of(m))
	}
	return runs
}

// each plays it with each value of an argument, too.
func each[A any](models []model, of func(model, A) scenario, values ...A) (runs []scenario) {
	for _, value := range values {
		runs = append(runs, on(models, func(m model) scenario { return of(m, value) })...)
	}
	return runs
}

// fleets is 1, 4 and 16 processes with so many workers each.
func fleets(models []model, workers ...int) (runs []scenario) {
	for _, n := range workers {
		full := func(m model, processes int) scenario { return saturated(m, processes, n, 60) }
		runs = append(runs, each(models, full, 1, 4, 16)...)
	}
	return runs
}

// outages is the store that fails in a way, for 4 and 16 processes.
func outages(models []model, h health) []scenario {
	return each(models, func(m model, processes int) scenario { return outage(m, processes, h) }, 4, 16)
}

var targets = []target{
	{
		name: "always more calls than the limit, 1, 4 and 16 processes with 8 and 64 callers, and one without a store",
		runs: append(fleets(others, 8, 64), on(others, alone)...), used: 0.99, refused: 0.002, jain: 0.99, pause: 3 * time.Second, steps: 4,
	},
	{
		name: "the same with one caller each", runs: fleets(others, 1),
		used: 0.99, refused: 0.002, jain: 0.99, pause: 3 * time.Second, steps: 4,
		missed: "operations: a lone caller asks once for its place and once for its turn, and now and then again",
	},
	{
		name: "1, 8 and 64 callers each, on a sliding counter", runs: append(fleets([]model{counter}, 1, 8, 64), alone(counter)),
		used: 0.99, refused: 0.002, jain: 0.99, pause: 3 * time.Second,
		missed: "longest pause: a refusal costs its Retry-After of two whole seconds, and a turn",
	},
	{name: "one process with 64 callers among 15 with one", runs: on(models, greedy), used: 0.98, refused: 0.002, jain: 0.99},
	{
		name: "calls at random, 80 % of the limit, 4 and 16 processes", runs: each([]model{fixed, log, bucket}, partLoad, 4, 16),
		used: 0.76, refused: 0.002, steps: 1.5,
		missed: "operations: a call that comes alone takes a load and a swap, and with a store of two methods not less",
	},
	{
		name: "interactive calls beside batch load, 16 processes", runs: on(models, trickle), look: only(interactive),
		refused: 0.02, wait: 2500 * time.Millisecond,
	},
	{
		name: "batch calls beside interactive load", runs: on(models, flood), look: only(batch),
		refused: 0.01, wait: time.Minute,
	},
	{name: "somebody else uses 30 % of the key", runs: on(models, shared), refused: 0.02},
	{name: "four minutes after a limit was halved for five", runs: on(models, halved), used: 0.95, refused: 0.005},
	{name: "half an hour after a limit was doubled, which nobody told", runs: on(models, raised), used: 0.9, refused: 0.005},
	{
		name: "one process killed and one stopped for two minutes of four, at three moments of a minute",
		runs: each(models, lost, 0, 17*time.Second, 40*time.Second), used: 0.95, refused: 0.02,
	},
	{name: "a process restarted every minute", runs: on(models, restarted), used: 0.95, refused: 0.006},
	{
		name: "store dead for 60 s, 4 and 16 processes; that and the next minute", runs: outages(others, dead),
		look: during, used: 0.95, refused: 0.01, pause: 5 * time.Second,
	},
	{
		name: "store hung for 60 s, 4 and 16 processes", runs: outages(others, hung),
		look: during, used: 0.95, refused: 0.01, pause: 5 * time.Second,
	},
	{
		name: "store dead and store hung, on a sliding counter", runs: append(outages([]model{counter}, dead), outages([]model{counter}, hung)...),
		look: during, used: 0.95, refused: 0.01, pause: 5 * time.Second,
		missed: "429s: one to three in 118 calls, since this way of counting refuses a window that is exactly full",
	},
	{name: "store loses its values twice", runs: each(models, flushed, 4, 16), used: 0.98, refused: 0.006},
	{name: "store never seen, 2 to 16 processes", runs: each(models, neverSeen, 2, 4, 8, 16), used: 0.8, refused: 0.02},
	{name: "a limit of 3 an hour, 20 hours", runs: each(models, hourly, 3), used: 0.9, refused: 1.0 / 3},
	{name: "a limit of 50 an hour, 20 hours", runs: each(models, hourly, 50), used: 0.95, refused: 1.0 / 50},
	{name: "answers that take 20 ms", runs: each(models, slowReplies, 20*time.Millisecond), used: 0.97, refused: 0.002},
	{name: "answers that take 1 s", runs: each(models, slowReplies, time.Second), used: 0.97, refused: 0.002},
	{name: "answers that take 10 s", runs: each(models, slowReplies, 10*time.Second), used: 0.97, refused: 0.002},
	{
		name: "600 a minute, 16 processes, store 40 ms there and back", runs: each(models, farAway, 40*time.Millisecond),
		used: 0.98, refused: 0.002, conflicts: 0.15,
	},
	{
		name: "the same, 80 ms", runs: each(models, farAway, 80*time.Millisecond), used: 0.98, refused: 0.002, conflicts: 0.15,
	},
}

// during is the minute of an outage and the one after it.
func during(w *world) measures {
	from := w.starts + w.warm + 17*time.Second
	return w.measure(from, from+2*time.Minute)
}

// only looks at the calls of a class.
func only(c class) func(*world) measures { return func(w *world) measures { return w.of(c) } }

// worst is what of each figure is furthest from its target.
func worst(a, b measures) measures {
	return measures{
		Used: min(a.Used, b.Used), RefusedPerCall: max(a.RefusedPerCall, b.RefusedPerCall), Jain: min(a.Jain, b.Jain),
		Gap: max(a.Gap, b.Gap), P99: max(a.P99, b.P99), Steps: max(a.Steps, b.Steps), Conflicts: max(a.Conflicts, b.Conflicts),
	}
}
