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

// on plays a scenario on each of the models.
func on(of func(model) scenario, on ...model) (runs []scenario) {
	for _, m := range on {
		runs = append(runs, of(m))
	}
	return runs
}

// fleets is 1, 4 and 16 processes with so many workers each.
func fleets(workers []int, on ...model) (runs []scenario) {
	for _, m := range on {
		for _, n := range workers {
			for _, processes := range []int{1, 4, 16} {
				runs = append(runs, saturated(m, processes, n, 60))
			}
		}
	}
	return runs
}

// with fixes an argument of a scenario.
func with[A any](of func(model, A) scenario, a A) func(model) scenario {
	return func(m model) scenario { return of(m, a) }
}

var targets = []target{
	{
		name: "always more calls than the limit, 1, 4 and 16 processes with 8 and 64 callers",
		runs: fleets([]int{8, 64}, fixed, fromUse, log, bucket), used: 0.99, refused: 0.002, jain: 0.99, pause: 3 * time.Second, steps: 4,
	},
	{
		name: "the same with one caller each", runs: fleets([]int{1}, fixed, fromUse, log, bucket),
		used: 0.99, refused: 0.002, jain: 0.99, pause: 3 * time.Second, steps: 4,
		missed: "operations: a lone caller asks once for its place and once for its turn, and now and then again",
	},
	{
		name: "1, 8 and 64 callers each, on a sliding counter", runs: fleets([]int{1, 8, 64}, counter), used: 0.99, refused: 0.002, jain: 0.99,
		pause: 3 * time.Second, missed: "longest pause: a refusal costs its second and a turn",
	},
	{name: "one process with 64 callers among 15 with one", runs: on(greedy, models...), used: 0.98, refused: 0.002, jain: 0.99},
	{
		name: "calls at random, 80 % of the limit, 4 and 16 processes", runs: append(partLoads(4), partLoads(16)...),
		used: 0.76, refused: 0.002, steps: 1.5, missed: "operations: a call takes a load and a swap, and with a store of two methods not less",
	},
	{
		name: "interactive calls beside batch load, 16 processes", runs: on(trickle, models...), look: only(interactive),
		refused: 0.02, wait: 2500 * time.Millisecond,
	},
	{
		name: "batch calls beside interactive load", runs: on(flood, models...), look: only(batch), refused: 0.01, wait: 45 * time.Second,
	},
	{name: "somebody else uses 30 % of the key", runs: on(shared, models...), refused: 0.02},
	{name: "four minutes after a limit was halved for five", runs: on(halved, models...), used: 0.95, refused: 0.005},
	{name: "half an hour after a limit was doubled, which nobody told", runs: on(raised, models...), used: 0.9, refused: 0.005},
	{name: "one process killed and one stopped for two minutes of four", runs: on(lost, fixed, fromUse, log, bucket), used: 0.95, refused: 0.02},
	{
		name: "the same on a sliding counter", runs: on(lost, counter), used: 0.95, refused: 0.025,
		missed: "quota used: it is 82 to 97 %, as the calls that the stopped process had under way arrive at once, and the level may be halved",
	},
	{name: "a process restarted every minute", runs: on(restarted, models...), used: 0.95, refused: 0.006},
	{
		name: "store dead for 60 s, 4 and 16 processes; that and the next minute", runs: append(outages(4, dead), outages(16, dead)...),
		look: during, used: 0.95, refused: 0.01, pause: 5 * time.Second,
	},
	{
		name: "store hung for 60 s, 4 and 16 processes", runs: append(outages(4, hung), outages(16, hung)...),
		look: during, used: 0.95, refused: 0.01, pause: 5 * time.Second,
	},
	{
		name: "store dead and store hung, on a sliding counter", runs: []scenario{outage(counter, 4, dead), outage(counter, 16, dead), outage(counter, 4, hung), outage(counter, 16, hung)},
		look: during, used: 0.95, refused: 0.01, pause: 5 * time.Second,
		missed: "429s: two or three in 118 calls, since this way of counting refuses a window that is exactly full",
	},
	{name: "store loses its values twice", runs: append(flushes(4), flushes(16)...), used: 0.98, refused: 0.006},
	{name: "store never seen, 2 to 16 processes", runs: unseen(), used: 0.8, refused: 0.02},
	{name: "a limit of 3 an hour, 20 hours", runs: on(with(hourly, 3), models...), used: 0.9, refused: 1.0 / 3},
	{name: "a limit of 50 an hour, 20 hours", runs: on(with(hourly, 50), models...), used: 0.95, refused: 1.0 / 50},
	{name: "answers that take 20 ms", runs: on(with(slowReplies, 20*time.Millisecond), models...), used: 0.97, refused: 0.002},
	{name: "answers that take 1 s", runs: on(with(slowReplies, time.Second), models...), used: 0.97, refused: 0.002},
	{name: "answers that take 10 s", runs: on(with(slowReplies, 10*time.Second), models...), used: 0.97, refused: 0.002},
	{
		name: "600 a minute, 16 processes, store 40 ms there and back", runs: on(with(farAway, 40*time.Millisecond), models...),
		used: 0.98, refused: 0.002, conflicts: 0.15,
	},
	{
		name: "the same, 80 ms", runs: on(with(farAway, 80*time.Millisecond), models...), used: 0.9, refused: 0.002, conflicts: 0.15,
		missed: "conflicts: the store is beyond what this rate allows, and the log says so",
	},
}

func partLoads(processes int) []scenario {
	return on(func(m model) scenario { return partLoad(m, processes, 0.8) }, fixed, log, bucket)
}

func outages(processes int, h health) []scenario {
	return on(func(m model) scenario { return outage(m, processes, h) }, fixed, fromUse, log, bucket)
}

func flushes(processes int) []scenario { return on(with(flushed, processes), models...) }

func unseen() (runs []scenario) {
	for _, processes := range []int{2, 4, 8, 16} {
		runs = append(runs, on(with(neverSeen, processes), models...)...)
	}
	return runs
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
