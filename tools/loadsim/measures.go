package loadsim

import (
	"slices"
	"time"
)

// event is an attempt that was answered.
type event struct {
	at       time.Duration // when the service decided
	process  int
	class    Class
	accepted bool
	wait     time.Duration // since the call began
}

func (w *World) note(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// Measures are what a span of a run comes to.
type Measures struct {
	Accepted int
	Refused  int
	Used     float64 // Accepted of what there was to use
	// RefusedPerCall is refusals for each accepted call.
	RefusedPerCall float64
	Jain           float64       // 1: each process got as much as the others
	P99            time.Duration // of the waits
	Pause          time.Duration // the longest time without an accepted call
	Steps          float64       // operations of the store in the scenario's span, for each accepted call
	Conflicts      float64       // of the swaps of that span
}

// Measure looks at the calls of some classes, or of all that the scenario's
// processes make. The span is counted from the end of the warm time.
func (w *World) Measure(from, to time.Duration, classes ...Class) (m Measures) {
	if classes == nil {
		classes = []Class{Batch, Interactive}
	}
	from, to = w.Starts+w.Warm+from, w.Starts+w.Warm+to
	var waits []time.Duration
	allowed, shares, last := w.newService().allowed(w.Starts, from, to), make([]float64, len(w.Fleet)), from
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		switch {
		case e.at < from || e.at >= to:
		case e.class == Elsewhere && e.accepted:
			allowed--
		case !slices.Contains(classes, e.class):
		case !e.accepted:
			m.Refused++
		default:
			m.Pause, last = max(m.Pause, e.at-last), e.at
			waits = append(waits, e.wait)
			shares[e.process]++
		}
	}
	m.Accepted, m.Jain, m.Pause = len(waits), jain(shares), max(m.Pause, to-last)
	if slices.Sort(waits); len(waits) > 0 {
		m.P99 = waits[len(waits)*99/100]
	}
	calls := float64(max(1, m.Accepted))
	m.Used, m.RefusedPerCall = float64(m.Accepted)/float64(max(1, allowed)), float64(m.Refused)/calls
	m.Steps = float64(w.did.loads+w.did.swaps) / calls
	m.Conflicts = float64(w.did.conflicts) / float64(max(1, w.did.swaps))
	return m
}

// jain is Jain's index: 1 where all are equal, 1/n where one has everything.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	return sum * sum / max(1, float64(len(shares))*squares)
}
