package simulation

import (
	"context"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

type (
	model    = loadsim.Model
	scenario = loadsim.Scenario
)

// saturated is n workers in each of so many processes, all of whom always want
// more, at so many calls a minute.
func saturated(m model, processes, n, most int) scenario {
	s := scenario{
		Model:     m,
		Limits:    []pacer.Limit{{Key: "ours", Max: most, Window: time.Minute}}, // the service's names are others
		Processes: processes, Loads: []loadsim.Load{{Workers: []int{n}}},
		Latency: 40 * time.Millisecond, Store: loadsim.NewStore(),
		Starts: 15*time.Hour + 20*time.Minute + 17*time.Second,
		Warm:   103 * time.Second, Span: 30 * time.Minute, // measured from a whole minute on
		Seed: uint64(1000*processes + n),
	}
	s.Store.Away = time.Millisecond
	return s
}

// alone is a process without a store.
func alone(m model) scenario {
	s := saturated(m, 1, 8, 60)
	s.Store = nil
	return s
}

// greedy is one process with 64 workers among 15 with one.
func greedy(m model) scenario {
	s := saturated(m, 16, 1, 60)
	s.Loads[0].Workers = []int{64, 1}
	return s
}

// mix is so many workers in each process, and another load beside them.
type mix struct {
	processes, workers int
	span               time.Duration
	load               loadsim.Load
}

func mixed(m model, with mix) scenario {
	s := saturated(m, with.processes, with.workers, 60)
	if s.Span = with.span; with.workers == 0 {
		s.Loads = nil
	}
	s.Loads = append(s.Loads, with.load)
	return s
}

// atRandom is calls at random, at 80 % of the limit.
func atRandom(processes int) mix {
	return mix{processes, 0, 30 * time.Minute, loadsim.Load{Class: loadsim.Interactive, PerMinute: 48}}
}

// halved is a limit that is halved for five minutes; measured from four minutes
// after it came back.
func halved(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.Warm += 9 * time.Minute
	s.Meanwhile = func(_ context.Context, w *loadsim.World) {
		time.Sleep(103 * time.Second)
		w.Resize(30)
		time.Sleep(5 * time.Minute)
		w.Resize(60)
	}
	return s
}

// outage is a store that fails for a minute.
func outage(m model, processes int, fail func(*loadsim.Store, bool)) scenario {
	s := saturated(m, processes, 8, 60)
	s.Meanwhile = func(_ context.Context, w *loadsim.World) {
		time.Sleep(s.Warm + 17*time.Second)
		fail(s.Store, true)
		time.Sleep(time.Minute)
		fail(s.Store, false)
	}
	return s
}

// flushed is a store that loses its values twice.
func flushed(m model, processes int) scenario {
	s := saturated(m, processes, 8, 60)
	s.Meanwhile = func(context.Context, *loadsim.World) {
		for range 2 {
			time.Sleep(s.Warm + 17*time.Second)
			s.Store.Values(func(values map[string]loadsim.Entry) { clear(values) })
		}
	}
	return s
}

// neverSeen is a store that is dead from the start on.
func neverSeen(m model, processes int) scenario {
	s := saturated(m, processes, 8, 60)
	s.Warm += 5 * time.Minute
	s.Store.Kill(true)
	return s
}

// lost is one process of four that is killed, and one that is frozen for two
// minutes, at a moment of the minute that the shift chooses.
func lost(m model, shift time.Duration) scenario {
	s := saturated(m, 4, 8, 60)
	s.Starts += shift
	s.Meanwhile = func(_ context.Context, w *loadsim.World) {
		time.Sleep(s.Warm + 20*time.Second)
		w.Fleet[0].Kill()
		w.Fleet[1].Freeze(true)
		time.Sleep(2 * time.Minute)
		w.Fleet[1].Freeze(false)
	}
	return s
}

// restarted is a fleet of which a process is restarted every minute.
func restarted(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.Meanwhile = func(ctx context.Context, w *loadsim.World) {
		for i := range 31 { // until the end
			time.Sleep(time.Minute)
			w.Fleet[i%4].Kill()
			w.Start(ctx, i%4)
		}
	}
	return s
}

// hourly is workers in four processes who want more than a limit of an hour.
func hourly(m model, most int) scenario {
	s := saturated(m, 4, 2, 60)
	s.Limits = append(s.Limits, pacer.Limit{Key: "hour", Max: most, Window: time.Hour})
	s.Warm, s.Span = 0, 20*time.Hour
	return s
}

// slowReplies is a service whose answers take long.
func slowReplies(m model, replies time.Duration) scenario {
	s := saturated(m, 4, 64, 60)
	s.Replies = replies
	return s
}

// farAway is a fleet at a high rate whose store is so far away, there and back.
func farAway(m model, away time.Duration) scenario {
	s := saturated(m, 16, 8, 600)
	s.Store.Away, s.Span = away/2, 4*time.Minute
	return s
}

// unpaced is programs that use the client as it comes.
func unpaced(m model, programs int, latency time.Duration, loads ...loadsim.Load) scenario {
	return scenario{Model: m, Unpaced: true, Processes: programs, Latency: latency, Loads: loads}
}

// batches are 500 messages of each program, by 20, one and 500 callers.
func batches(programs int, replies time.Duration) (runs []scenario) {
	for _, callers := range []int{20, 1, 500} {
		for _, latency := range []time.Duration{0, 40 * time.Millisecond} {
			runs = append(runs, on(loadsim.All, func(m model) scenario {
				s := unpaced(m, programs, latency, loadsim.Load{Workers: []int{callers}, Calls: 500 / callers})
				s.Replies = replies
				return s
			})...)
		}
	}
	return runs
}

// many is 16 programs with eight callers each.
func many(m model) scenario {
	s := unpaced(m, 16, 40*time.Millisecond, loadsim.Load{Workers: []int{8}})
	s.Span = 20 * time.Minute
	return s
}

// innocent is messages beside creations that are refused under the same name. The
// windows have room for them: they come every 6 s.
func innocent(m model) scenario {
	s := unpaced(m, 1, 40*time.Millisecond,
		loadsim.Load{Workers: []int{70}, Calls: 1}, // refused at first
		loadsim.Load{Workers: []int{96}, Calls: 1, Begin: 4 * time.Minute, Call: loadsim.CreateAgent},
		loadsim.Load{Class: loadsim.Interactive, Workers: []int{1}, Calls: 80, Begin: 4*time.Minute + 300*time.Millisecond, Every: 6 * time.Second})
	s.Limits = []pacer.Limit{{Max: 60, Window: time.Minute}, {Max: 10, Window: time.Minute, Counts: pacer.CountsAgentCreations}}
	return s
}

// shared is messages and reads under one limit.
func shared(m model) scenario {
	load := loadsim.Load{Workers: []int{8}, Calls: 31}
	reads := load
	reads.Call = loadsim.GetAgent
	return unpaced(m, 1, 40*time.Millisecond, load, reads)
}

// refusing is a service that refuses each of so many callers for ever.
func refusing(m model, callers int) scenario {
	return unpaced(m, 1, 40*time.Millisecond, loadsim.Load{Workers: []int{callers}, Calls: 1})
}
