package simulation

import (
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

// plan makes a scenario for each way of counting.
type plan func(model) scenario

// on plays each plan on each of the models.
func on(models []model, plans ...plan) (runs []scenario) {
	for _, p := range plans {
		for _, m := range models {
			runs = append(runs, p(m))
		}
	}
	return runs
}

// but changes what a plan makes.
func (p plan) but(change func(*scenario)) plan {
	return func(m model) scenario {
		s := p(m)
		change(&s)
		return s
	}
}

// then lets something happen so long after what happened before.
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

// perMinute is a limit under another name than the service's.
func perMinute(n int) []pacer.Limit {
	return []pacer.Limit{{Key: "ours", Max: n, Window: time.Minute}}
}

const (
	warm   = 103 * time.Second // measured from a whole minute on
	midway = warm + 17*time.Second
)

// saturated is so many processes with so many workers each, who always want more
// than 60 calls a minute.
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

// fleets is 1, 4 and 16 processes with so many workers each.
func fleets(workers ...int) (plans []plan) {
	for _, n := range workers {
		plans = append(plans, saturated(1, n), saturated(4, n), saturated(16, n))
	}
	return plans
}

// alone is a process without a store.
var alone = saturated(1, 8).but(func(s *scenario) { s.Store = nil })

// greedy is one process with 64 workers among 15 with one.
var greedy = saturated(16, 1).but(func(s *scenario) { s.Loads[0].Workers = []int{64, 1} })

// and adds a load.
func (p plan) and(l loadsim.Load, span time.Duration) plan {
	return p.but(func(s *scenario) { s.Loads, s.Span = append(s.Loads, l), span })
}

// atRandom is calls at random, at 80 % of the limit.
func atRandom(processes int) plan {
	return saturated(processes, 0).and(loadsim.Load{Class: loadsim.Interactive, PerMinute: 48}, 30*time.Minute)
}

// halved is a limit that is halved for five minutes; measured from four minutes
// after it came back.
var halved = saturated(4, 8).but(func(s *scenario) { s.Warm += 9 * time.Minute }).
	then(warm, func(w *world) { w.Resize(30) }).
	then(5*time.Minute, func(w *world) { w.Resize(60) })

// outages is a store that fails for a minute in either way, for 4 and 16 processes.
func outages() (plans []plan) {
	for _, fail := range []func(*loadsim.Store, time.Duration){(*loadsim.Store).Kill, (*loadsim.Store).Hang} {
		for _, processes := range []int{4, 16} {
			plans = append(plans, saturated(processes, 8).then(midway, func(w *world) { fail(w.Store, time.Minute) }))
		}
	}
	return plans
}

// flushed is a store that loses its values twice.
func flushed(processes int) plan {
	lose := func(w *world) { w.Store.Values(func(values map[string]loadsim.Entry) { clear(values) }) }
	return saturated(processes, 8).then(midway, lose).then(midway, lose)
}

// neverSeen is a store that is dead from the start on.
func neverSeen(processes int) plan {
	return saturated(processes, 8).but(func(s *scenario) { s.Warm += 5 * time.Minute }).
		then(0, func(w *world) { w.Store.Kill(time.Hour) })
}

// lost is one process of four that is killed, and one that is frozen for two
// minutes, at a moment of the minute that the shift chooses.
func lost(shift time.Duration) plan {
	return saturated(4, 8).but(func(s *scenario) { s.Starts += shift }).
		then(warm+20*time.Second, func(w *world) { w.Fleet[0].Kill(); w.Fleet[1].Freeze(2 * time.Minute) })
}

// restarted is a fleet of which a process is restarted every minute.
var restarted = saturated(4, 8).but(func(s *scenario) {
	s.Meanwhile = func(w *world) {
		for i := range 31 { // until the end
			time.Sleep(time.Minute)
			w.Fleet[i%4].Kill()
			w.Start(i % 4)
		}
	}
})

// hourly is workers in four processes who want more than a limit of an hour.
func hourly(most int) plan {
	return saturated(4, 2).but(func(s *scenario) {
		s.Limits = append(s.Limits, pacer.Limit{Key: "hour", Max: most, Window: time.Hour})
		s.Warm, s.Span = 0, 20*time.Hour
	})
}

// slowReplies is a service whose answers take long.
func slowReplies(replies time.Duration) plan {
	return saturated(4, 64).but(func(s *scenario) { s.Replies = replies })
}

// farAway is a fleet at a high rate whose store is 80 ms away, there and back.
var farAway = saturated(16, 8).but(func(s *scenario) {
	s.Limits, s.Store.Away, s.Span = perMinute(600), 40*time.Millisecond, 4*time.Minute
})

// unpaced is programs that use the client as it comes, 40 ms away.
func unpaced(programs int, loads ...loadsim.Load) plan {
	return func(m model) scenario {
		return scenario{Model: m, Real: perMinute(60), Processes: programs, Latency: 40 * time.Millisecond, Loads: loads}
	}
}

// batches are 500 messages of each program, by 20, one and 500 callers, with latency and without.
func batches(programs int, replies time.Duration) (plans []plan) {
	for _, callers := range []int{20, 1, 500} {
		for _, latency := range []time.Duration{0, 40 * time.Millisecond} {
			plans = append(plans, unpaced(programs, loadsim.Load{Workers: []int{callers}, Calls: 500 / callers}).
				but(func(s *scenario) { s.Latency, s.Replies = latency, replies }))
		}
	}
	return plans
}

// many is 16 programs with eight callers each.
var many = unpaced(16, loadsim.Load{Workers: []int{8}}).but(func(s *scenario) { s.Span = 20 * time.Minute })

// innocent is messages beside creations that are refused under the same name. The
// windows have room for them: they come every 6 s.
var innocent = unpaced(1,
	loadsim.Load{Workers: []int{70}, Calls: 1}, // refused at first
	loadsim.Load{Workers: []int{96}, Calls: 1, Begin: 4 * time.Minute, Call: spec.CreateAgent},
	loadsim.Load{Class: loadsim.Interactive, Workers: []int{1}, Calls: 80, Begin: 4*time.Minute + 300*time.Millisecond, Every: 6 * time.Second},
).but(func(s *scenario) {
	s.Real = append(s.Real, pacer.Limit{Max: 10, Window: time.Minute, Counts: pacer.CountsAgentCreations})
})

// shared is messages and reads under one limit.
var shared = unpaced(1, loadsim.Load{Workers: []int{8}, Calls: 31}, loadsim.Load{Workers: []int{8}, Calls: 31, Call: spec.GetAgent})

// refusing is a service that refuses each of so many callers for ever.
func refusing(callers int) plan { return unpaced(1, loadsim.Load{Workers: []int{callers}, Calls: 1}) }
