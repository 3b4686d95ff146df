package simulation

import (
	"context"
	"time"
)

// Situations other than an even, saturating load.

// each is n workers in each of p processes.
func each(processes, n int) []int {
	workers := make([]int, processes)
	for i := range workers {
		workers[i] = n
	}
	return workers
}

// greedy is one process with 64 workers among 15 with one.
func greedy(m model, p policy) scenario {
	s := saturated(m, p, 16, 1)
	s.workers[0] = 64
	return s
}

// oneActive is 16 processes of which one has anything to do.
func oneActive(m model, p policy) scenario {
	s := saturated(m, p, 16, 0)
	s.workers[3] = 8
	return s
}

// partLoad is calls at random, at a part of the limit.
func partLoad(m model, p policy, processes int, part float64) scenario {
	s := saturated(m, p, processes, 0)
	s.loads = []load{{endpoint: sendMessage, perMinute: part * 60}}
	s.span = 30 * time.Minute
	return s
}

// trickle is a few interactive calls beside a saturating batch.
func trickle(m model, p policy) scenario {
	s := saturated(m, p, 16, 8)
	s.loads = []load{{class: interactive, endpoint: sendMessage, perMinute: 3}}
	s.span = time.Hour
	return s
}

// flood is interactive calls that would use everything, beside a batch.
func flood(m model, p policy) scenario {
	s := saturated(m, p, 4, 1)
	s.loads = []load{{class: interactive, endpoint: sendMessage, workers: each(4, 8)}}
	return s
}

// shared is a key that somebody else uses, too.
func shared(m model, p policy) scenario {
	s := saturated(m, p, 4, 8)
	s.foreign, s.span = 20, 20*time.Minute
	return s
}

// lower is a service whose real limit is 50 where the policy was told 60.
func lower(m model, p policy) scenario {
	s := saturated(m, p, 4, 8)
	s.service, s.span = func() *service { return m.perMinute(50) }, 20*time.Minute
	return s
}

// odd is a saturated service with quirks.
func odd(m model, p policy, q quirks) scenario {
	s := saturated(m, p, 4, 8)
	s.service = func() *service {
		service := m.perMinute(60)
		service.quirks = q
		return service
	}
	return s
}

// coldStart is a fleet that starts when the whole minute is already spent.
func coldStart(m model, p policy) scenario {
	s := saturated(m, p, 4, 8)
	starts := s.starts
	s.service = func() *service {
		service := m.perMinute(60)
		for range 60 {
			service.call(starts, sendMessage)
		}
		return service
	}
	s.warm, s.span = 0, 4*time.Minute+43*time.Second // until a whole minute
	return s
}

// outage is a coordinator that fails for 5 minutes, and then comes back.
func outage(m model, p policy, processes int, fail, restore func(*coordinator)) scenario {
	s := saturated(m, p, processes, 8)
	s.span = 10 * time.Minute
	s.meanwhile = func(ctx context.Context, w *world) {
		sleep(ctx, s.warm)
		fail(w.coordinator)
		sleep(ctx, 5*time.Minute)
		restore(w.coordinator)
	}
	return s
}

func killed(m model, p policy, processes int) scenario {
	return outage(m, p, processes, func(c *coordinator) { c.setDown(true) }, func(c *coordinator) {
		c.flush()
		c.setDown(false)
	})
}

func hung(m model, p policy, processes int) scenario {
	return outage(m, p, processes, (*coordinator).hang, (*coordinator).goOn)
}

func slowed(m model, p policy, processes int) scenario {
	return outage(m, p, processes,
		func(c *coordinator) { c.slow(40 * time.Millisecond) }, func(c *coordinator) { c.slow(usualDelay) })
}

func flushed(m model, p policy, processes int) scenario {
	return outage(m, p, processes, (*coordinator).flush, func(*coordinator) {})
}

// lost is one process of four that is killed, and one that is frozen for a while.
func lost(m model, p policy) scenario {
	s := saturated(m, p, 4, 8)
	s.meanwhile = func(ctx context.Context, w *world) {
		sleep(ctx, s.warm+20*time.Second)
		w.processes[0].kill()
		w.processes[1].freeze()
		sleep(ctx, 2*time.Minute)
		w.processes[1].thaw()
	}
	return s
}

// mixed is callers of two endpoints, one of which has a limit of its own.
func mixed(m model, p policy) scenario {
	s := saturated(m, p, 4, 8)
	s.loads = []load{{class: other, endpoint: createAgent, workers: each(4, 2)}}
	s.limits = append(minuteLimit(),
		limit{key: dayKey, max: 1000, window: day}, limit{key: agentsKey, max: 30, window: day, only: createAgent.Path})
	s.service = func() *service {
		service := m.perMinute(60)
		service.limits = append(service.limits,
			serviceLimit{key: dayKey, window: m.window(1000, day)},
			serviceLimit{key: agentsKey, window: m.window(30, day), only: createAgent.Path})
		return service
	}
	return s
}

const (
	hour = time.Hour
	day  = 24 * hour
)

// longWindow is a single caller who wants more than a long window holds, for
// as many windows as there is time.
func longWindow(m model, p policy, l limit, windows int) scenario {
	return scenario{
		service: func() *service {
			return &service{limits: []serviceLimit{
				{key: minuteKey, window: fixed.window(60, time.Minute)}, {key: l.key, window: m.window(l.max, l.window)},
			}}
		},
		limits: append(minuteLimit(), l), policy: p, workers: []int{1}, seed: uint64(l.max),
		starts: 15*time.Hour + 20*time.Minute + 17*time.Second, span: time.Duration(windows) * l.window,
	}
}
