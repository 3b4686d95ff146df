package loadsim

import (
	"cmp"
	"slices"
	"time"
)

// event is an attempt that the service has answered, or a call that has ended.
type event struct {
	at       time.Duration // when the service decided, or the call ended
	process  int
	class    Class
	ended    bool // it is a call
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
	Accepted, Refused int           // attempts
	Done, Lost        int           // calls
	Used              float64       // Accepted of what there was to use
	Jain              float64       // 1: each process got as much as the others
	P99               time.Duration // of the waits
	Longest           time.Duration // of an interactive call that was carried out
	Last              time.Duration // when the last call ended, since the begin of the span
	Pause             time.Duration // the longest time without an accepted call
	Steps             float64       // operations of the store in the scenario's span, for each accepted call
	Conflicts         float64       // of the swaps of that span
}

// RefusedPerCall is refusals for each accepted call.
func (m Measures) RefusedPerCall() float64 { return float64(m.Refused) / float64(max(1, m.Accepted)) }

// Measure looks at the calls of some classes, or of all that the scenario's processes
// make. The span is counted from the end of the warm time; to 0 is the end of the run.
func (w *World) Measure(from, to time.Duration, classes ...Class) (m Measures) {
	if classes == nil {
		classes = []Class{Batch, Interactive}
	}
	begins := w.Starts + w.Warm
	from, to = begins+from, begins+cmp.Or(to, w.Span, clock()-begins)
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
		case e.ended && e.accepted:
			m.Done, m.Last = m.Done+1, e.at-from
			if e.class == Interactive {
				m.Longest = max(m.Longest, e.wait)
			}
		case e.ended:
			m.Lost, m.Last = m.Lost+1, e.at-from
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
	m.Used = float64(m.Accepted) / float64(max(1, allowed))
	m.Steps = float64(w.did.loads+w.did.swaps) / float64(max(1, m.Accepted))
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
