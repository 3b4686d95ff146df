package simulation

import (
	"slices"
	"sync"
	"time"
)

// event is an attempt that was answered.
type event struct {
	at       time.Duration // when the service decided
	process  int
	class    class
	accepted bool
	wait     time.Duration // since the call began
}

// journal is what happened. Its zero value is empty.
type journal struct {
	mu     sync.Mutex
	events []event
}

func (j *journal) note(e event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// measures are what a span of a run comes to.
type measures struct {
	Accepted int
	Refused  int
	Used     float64 // Accepted of what there was to use
	// RefusedPerCall is refusals for each accepted call.
	RefusedPerCall float64
	Jain           float64       // 1: each process got as much as the others
	P99            time.Duration // of the waits
	Gap            time.Duration // the longest time without an accepted call
	Steps          float64       // operations of the store, for each accepted call
	Conflicts      float64       // of the swaps
}

// measure looks at a span.
func (w *world) measure(from, to time.Duration) measures {
	m := w.within(from, to, batch, interactive)
	allowed := w.scenario.service().allowed(w.starts, from, to) - w.within(from, to, elsewhere).Accepted
	m.Used = float64(m.Accepted) / float64(max(1, allowed))
	return m
}

// measured is the scenario's own span.
func (w *world) measured() measures {
	from := w.starts + w.warm
	m := w.measure(from, from+w.span)
	loads, swaps := w.after.loads-w.before.loads, w.after.swaps-w.before.swaps
	m.Steps = float64(loads+swaps) / float64(max(1, m.Accepted))
	m.Conflicts = float64(w.after.conflicts-w.before.conflicts) / float64(max(1, swaps))
	return m
}

// of looks at one class in the measured span.
func (w *world) of(c class) measures {
	from := w.starts + w.warm
	return w.within(from, from+w.span, c)
}

func (w *world) within(from, to time.Duration, classes ...class) measures {
	var m measures
	var waits []time.Duration
	shares, last := make([]float64, len(w.fleet)), from
	for _, e := range w.journal.events {
		switch {
		case e.at < from || e.at >= to || !slices.Contains(classes, e.class):
		case !e.accepted:
			m.Refused++
		default:
			m.Gap, last = max(m.Gap, e.at-last), e.at
			waits = append(waits, e.wait)
			shares[e.process]++
		}
	}
	m.Accepted, m.Jain = len(waits), jain(shares)
	m.Gap = max(m.Gap, to-last)
	m.RefusedPerCall = float64(m.Refused) / float64(max(1, m.Accepted))
	slices.Sort(waits)
	if len(waits) > 0 {
		m.P99 = waits[len(waits)*99/100]
	}
	return m
}

// jain is Jain's index: 1 where all are equal, 1/n where one has everything.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}
