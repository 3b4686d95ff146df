package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// saturated is n workers in each of so many processes, all of whom always want
// more, at so many calls a minute.
func saturated(m model, processes, n, most int) scenario {
	return scenario{
		service:   func() *service { return m.perMinute(most) },
		limits:    []pacer.Limit{{Key: "ours", Max: most, Window: time.Minute}}, // the service's names are others
		processes: processes, loads: []load{{class: batch, workers: slices.Repeat([]int{n}, processes)}},
		latency: usualLatency, away: time.Millisecond,
		starts: 15*time.Hour + 20*time.Minute + 17*time.Second,
		warm:   103 * time.Second, span: 10 * time.Minute, // measured from a whole minute on
		seed: uint64(1000*processes + n),
	}
}

// alone is a process without a store.
func alone(m model) scenario {
	s := saturated(m, 1, 8, 60)
	s.alone = true
	return s
}

// greedy is one process with 64 workers among 15 with one.
func greedy(m model) scenario {
	s := saturated(m, 16, 1, 60)
	s.loads[0].workers[0] = 64
	return s
}

// partLoad is calls at random, at 80 % of the limit.
func partLoad(m model, processes int) scenario {
	s := saturated(m, processes, 0, 60)
	s.loads = []load{{class: interactive, perMinute: 48}}
	s.span = 30 * time.Minute
	return s
}

// trickle is a few interactive calls beside a saturating batch.
func trickle(m model) scenario {
	s := saturated(m, 16, 8, 60)
	s.loads = append(s.loads, load{class: interactive, perMinute: 6})
	return s
}

// flood is interactive calls that would use everything, beside a batch.
func flood(m model) scenario {
	s := saturated(m, 4, 1, 60)
	s.loads = append(s.loads, load{class: interactive, workers: []int{8, 8, 8, 8}})
	s.span = 20 * time.Minute // one refusal is not the 99th wait
	return s
}

// shared is a key of which somebody else uses 30 %.
func shared(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.loads = append(s.loads, load{class: elsewhere, perMinute: 18})
	s.span = 2 * time.Hour // the figure is small, and the arrivals are at random
	return s
}

// halved is a limit that is halved for five minutes; measured from four minutes
// after it came back.
func halved(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.warm += 9 * time.Minute
	s.meanwhile = func(ctx context.Context, w *world) {
		sleep(ctx, 103*time.Second)
		w.service.resize(30)
		sleep(ctx, 5*time.Minute)
		w.service.resize(60)
	}
	return s
}

// raised is a limit that is doubled, which nobody tells the pacers.
func raised(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.service = func() *service { return m.perMinute(120) }
	s.warm += 30 * time.Minute
	return s
}

// outage is a store that fails for a minute.
func outage(m model, processes int, h health) scenario {
	s := saturated(m, processes, 8, 60)
	s.meanwhile = func(ctx context.Context, w *world) {
		sleep(ctx, s.warm+17*time.Second)
		w.store.set(h)
		sleep(ctx, time.Minute)
		w.store.set(fine)
	}
	return s
}

// flushed is a store that loses its values twice.
func flushed(m model, processes int) scenario {
	s := saturated(m, processes, 8, 60)
	s.meanwhile = func(ctx context.Context, w *world) {
		for range 2 {
			sleep(ctx, s.warm+17*time.Second)
			w.store.flush()
		}
	}
	return s
}

// neverSeen is a store that is dead from the start on.
func neverSeen(m model, processes int) scenario {
	s := saturated(m, processes, 8, 60)
	s.warm += 5 * time.Minute
	s.meanwhile = func(_ context.Context, w *world) { w.store.set(dead) }
	return s
}

// lost is one process of four that is killed, and one that is frozen for two
// minutes, at a moment of the minute that the shift chooses.
func lost(m model, shift time.Duration) scenario {
	s := saturated(m, 4, 8, 60)
	s.starts += shift
	s.meanwhile = func(ctx context.Context, w *world) {
		sleep(ctx, s.warm+20*time.Second)
		w.fleet[0].end()
		w.fleet[1].freeze()
		sleep(ctx, 2*time.Minute)
		w.fleet[1].thaw()
	}
	return s
}

// restarted is a fleet of which a process is restarted every minute.
func restarted(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.meanwhile = func(ctx context.Context, w *world) {
		for i := 0; sleep(ctx, time.Minute); i++ {
			w.fleet[i%4].end()
			w.start(ctx, i%4)
		}
	}
	return s
}

// hourly is workers in four processes who want more than a limit of an hour.
func hourly(m model, most int) scenario {
	s := saturated(m, 4, 2, 60)
	s.limits = append(s.limits, pacer.Limit{Key: "hour", Max: most, Window: time.Hour})
	s.service = func() *service {
		service := fixed.perMinute(60)
		service.limits = append(service.limits, m.window(&size{most, time.Hour}))
		return service
	}
	s.warm, s.span = 0, 20*time.Hour
	return s
}

// slowReplies is a service whose answers take long.
func slowReplies(m model, replies time.Duration) scenario {
	s := saturated(m, 4, 64, 60)
	s.replies = replies
	return s
}

// farAway is a fleet at a high rate whose store is so far away, there and back.
func farAway(m model, away time.Duration) scenario {
	s := saturated(m, 16, 8, 600)
	s.away, s.span = away/2, 4*time.Minute
	return s
}
