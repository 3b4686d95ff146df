package simulation

import (
	"testing"
	"time"
)

// measureAll is the full run that the page shows.
func measureAll(t *testing.T) *figures {
	f := &figures{}
	t.Run("cells", func(t *testing.T) { f.measureSaturated(t) })
	t.Run("situations", func(t *testing.T) { f.measureSituations(t) })
	t.Run("outages", func(t *testing.T) { f.measureOutages(t) })
	t.Run("long windows", func(t *testing.T) { f.measureLong(t) })
	return f
}

func saturatedCell(t *testing.T, m model, p policy, f fleet) cell {
	return newCell("", m, p, f.workers, simulate(t, saturated(m, p, f.processes, f.workers)).measured(), f.processes)
}

func (f *figures) measureSaturated(t *testing.T) {
	for _, m := range allModels {
		for _, p := range policies {
			for _, fleet := range fleets {
				f.Saturated = append(f.Saturated, saturatedCell(t, m, p, fleet))
			}
		}
	}
}

// situations that are shown for all policies.
var situations = []struct {
	name  string
	model model
	of    func(model, policy) scenario
}{
	{"one process with 64 workers among 15 with one", log, greedy},
	{"one active process of 16", log, oneActive},
	{"load of 80 % at random, 4 processes", log, func(m model, p policy) scenario { return partLoad(m, p, 4, 0.8) }},
	{"load of 80 % at random, 16 processes", log, func(m model, p policy) scenario { return partLoad(m, p, 16, 0.8) }},
	{"somebody else uses 20 a minute of the key", log, shared},
	{"the real limit is 50 instead of 60", log, lower},
	{"start into a minute that is spent", log, coldStart},
	{"refused calls count, too", log, func(m model, p policy) scenario { return odd(m, p, quirks{countsRefused: true}) }},
	{"Retry-After is rounded down", log, func(m model, p policy) scenario { return odd(m, p, quirks{truncates: true}) }},
}

func (f *figures) measureSituations(t *testing.T) {
	for _, s := range situations {
		for _, p := range policies {
			f.Situations = append(f.Situations, newCell(s.name, s.model, p, 0, simulate(t, s.of(s.model, p)).measured(), 0))
		}
	}
	for _, p := range policies {
		w := simulate(t, trickle(log, p))
		c := newCell("interactive calls, 5 % of the limit, beside a saturating batch (their own waits)", log, p, 0, w.of(interactive), 16)
		c.Used = round(w.measured().Used)
		f.Situations = append(f.Situations, c)
	}
}

var failures = []struct {
	name string
	of   func(model, policy, int) scenario
}{
	{"the coordinator is dead, and back without its state", killed},
	{"the coordinator hangs", hung},
	{"the coordinator takes 80 ms", slowed},
	{"the coordinator loses its state, once", flushed},
}

func (f *figures) measureOutages(t *testing.T) {
	for _, failure := range failures {
		for _, m := range usualModels {
			for _, p := range []int{4, 16} {
				f.Outages = append(f.Outages, newCell(failure.name, m, paced, 8, duringOutage(simulate(t, failure.of(m, paced, p))), p))
			}
		}
	}
}

// duringOutage is the time of the failure and a minute after it.
func duringOutage(w *world) measures {
	from := w.starts + w.warm
	return w.measure(from, from+6*time.Minute)
}

func (f *figures) measureLong(t *testing.T) {
	for _, l := range longLimits {
		for _, m := range longModels {
			f.Long = append(f.Long, newCell(l.name(), m, paced, 1, simulate(t, longWindow(m, paced, l, 20)).measured(), 1))
		}
	}
}
