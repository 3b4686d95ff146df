package simulation

import (
	"context"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

const (
	hour = time.Hour
	day  = 24 * hour
)

// each is n workers in each of p processes.
func each(processes, n int) []int {
	workers := make([]int, processes)
	for i := range workers {
		workers[i] = n
	}
	return workers
}

// saturated is n workers in each of p processes, all of whom always want more,
// at so many calls a minute.
func saturated(m model, processes, n, most int) scenario {
	return scenario{
		service: func() *service { return m.perMinute(most) },
		limits:  []pacer.Limit{{Key: "ours", Max: most, Window: time.Minute}}, // the service's names are others
		workers: each(processes, n), latency: usualLatency, away: time.Millisecond,
		starts: 15*time.Hour + 20*time.Minute + 17*time.Second,
		warm:   103 * time.Second, span: 10 * time.Minute, // measured from a whole minute on
		seed: uint64(1000*processes + n),
	}
}

// greedy is one process with 64 workers among 15 with one.
func greedy(m model) scenario {
	s := saturated(m, 16, 1, 60)
	s.workers[0] = 64
	return s
}

// partLoad is calls at random, at a part of the limit.
func partLoad(m model, processes int, part float64) scenario {
	s := saturated(m, processes, 0, 60)
	s.loads = []load{{class: interactive, endpoint: sendMessage, perMinute: part * 60}}
	s.span = 30 * time.Minute
	return s
}

// trickle is a few interactive calls beside a saturating batch.
func trickle(m model) scenario {
	s := saturated(m, 16, 8, 60)
	s.loads = []load{{class: interactive, endpoint: sendMessage, perMinute: 6}}
	return s
}

// flood is interactive calls that would use everything, beside a batch.
func flood(m model) scenario {
	s := saturated(m, 4, 1, 60)
	s.loads = []load{{class: interactive, endpoint: sendMessage, workers: each(4, 8)}}
	return s
}

// shared is a key of which somebody else uses 30 %.
func shared(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.foreign, s.span = 18, 20*time.Minute
	return s
}

// halved is a limit that is halved for five minutes; measured from four minutes
// after it came back.
func halved(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.warm = 103*time.Second + 9*time.Minute
	s.meanwhile = func(ctx context.Context, w *world) {
		sleep(ctx, 103*time.Second)
		w.service.resize(0, 30)
		sleep(ctx, 5*time.Minute)
		w.service.resize(0, 60)
	}
	return s
}

// raised is a limit that is doubled, which nobody tells the pacers.
func raised(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.service = func() *service { return m.perMinute(120) }
	s.warm = 103*time.Second + 30*time.Minute
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

// lost is one process of four that is killed, and one that is frozen for a while.
func lost(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.meanwhile = func(ctx context.Context, w *world) {
		sleep(ctx, s.warm+20*time.Second)
		w.processes[0].end()
		w.processes[1].freeze()
		sleep(ctx, 2*time.Minute)
		w.processes[1].thaw()
	}
	return s
}

// restarted is a fleet of which a process is restarted every minute.
func restarted(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.meanwhile = func(ctx context.Context, w *world) {
		for i := 0; sleep(ctx, time.Minute); i++ {
			w.processes[i%4].end()
			w.start(ctx, i%4, 8)
		}
	}
	return s
}

// mixed is callers of two endpoints, one of which has a limit of its own.
func mixed(m model) scenario {
	s := saturated(m, 4, 8, 60)
	s.loads = []load{{class: other, endpoint: createAgent, workers: each(4, 2)}}
	s.limits = append(s.limits, pacer.Limit{Key: "creations", Max: 30, Window: day, Counts: pacer.CountsAgentCreations})
	s.service = func() *service {
		service := m.perMinute(60)
		service.limits = append(service.limits, serviceLimit{key: agentsKey, window: m.window(30, day), only: createAgent.Path})
		return service
	}
	return s
}

// hourly is workers in four processes who want more than a limit of an hour.
func hourly(m model, most int) scenario {
	s := saturated(m, 4, 2, 60)
	s.limits = append(s.limits, pacer.Limit{Key: hourKey, Max: most, Window: hour})
	s.service = func() *service {
		service := fixed.perMinute(60)
		service.limits = append(service.limits, serviceLimit{key: hourKey, window: m.window(most, hour)})
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
	s.away = away / 2
	return s
}
