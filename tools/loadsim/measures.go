package loadsim

import (
	"cmp"
	"slices"
	"time"
)

// Event is something that happened in a World.
type Event struct {
	Kind    Kind
	At      time.Duration // since midnight of the first day
	Load    int           // whose call it was: an index of Scenario.Loads
	Wait    time.Duration // since the call began
	process int
}

// Kind of an Event. The service accepts or refuses an attempt; a call is done or
// lost.
type Kind int

// The kinds. Those without a class are the accepted calls of somebody else, and the
// operations of the store.
const (
	Accepted Kind = iota
	Refused
	Done
	Lost
	elsewhere
	loaded
	swapped
	conflicted
	kinds
)

func (w *World) note(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.At = clock()
	w.Events = append(w.Events, e)
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
	Steps             float64       // operations of the store for each accepted call
	Conflicts         float64       // of the swaps
}

// RefusedPerCall is refusals for each accepted call.
func (m Measures) RefusedPerCall() float64 { return share(m.Refused, m.Accepted) }

// share is part/whole.
func share(part, whole int) float64 { return float64(part) / float64(max(1, whole)) }

// Measure looks at the calls of some classes, or of all. The span is counted from the end of the warm time; to 0 is the end of the run.
func (w *World) Measure(from, to time.Duration, classes ...Class) (m Measures) {
	begins := w.Starts + w.Warm
	from, to = begins+from, begins+cmp.Or(to, w.Span, clock()-begins)
	allowed, last := w.Model.service(w.Real).allowed(w.Starts, from, to), from
	var waits []time.Duration
	var count [kinds]int
	shares := make([]int, len(w.Fleet))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.Events {
		class := w.Loads[e.Load].Class
		if e.At < from || e.At >= to || classes != nil && e.Kind < elsewhere && !slices.Contains(classes, class) {
			continue
		}
		count[e.Kind]++
		switch e.Kind {
		case Accepted:
			m.Pause, last = max(m.Pause, e.At-last), e.At
			waits = append(waits, e.Wait)
			shares[e.process]++
		case Done, Lost:
			m.Last = e.At - from
			if e.Kind == Done && class == Interactive {
				m.Longest = max(m.Longest, e.Wait)
			}
		}
	}
	m.Accepted, m.Refused, m.Done, m.Lost = count[Accepted], count[Refused], count[Done], count[Lost]
	m.Used, m.Jain, m.Pause = share(m.Accepted, allowed-count[elsewhere]), jain(shares), max(m.Pause, to-last)
	swaps := count[swapped] + count[conflicted]
	m.Steps, m.Conflicts = share(count[loaded]+swaps, m.Accepted), share(count[conflicted], swaps)
	if slices.Sort(waits); len(waits) > 0 {
		m.P99 = waits[len(waits)*99/100]
	}
	return m
}

// jain is Jain's index: 1 where all are equal, 1/n where one has everything.
func jain(shares []int) float64 {
	sum, squares := 0, 0
	for _, n := range shares {
		sum += n
		squares += n * n
	}
	return share(sum*sum, len(shares)*squares)
}
