package fakeserver

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// LimitState is where one limit of an API key stands.
type LimitState struct {
	Key  string // one of the LimitKey constants
	Max  int    // calls in a window, by the key's plan or WithLimit
	Used int    // calls that count now
	// Opens is when the next call passes; the zero time when it passes now.
	// It is set where Exhaust has shut the limit too, whatever Used is.
	Opens time.Time
}

// Limits returns where the limits of key stand, in the order of interface 8.1,
// without those per address: those belong to no key. Looking spends nothing. A
// key that this fake did not issue panics.
func (s *Server) Limits(key string) []LimitState {
	now := s.now()
	var states []LimitState
	s.withKey("Limits", key, func(k *apiKey) { states = s.limitStates(&budget{key: k.counts, now: now}, k) })
	return states
}

// limitStates are those of the limits whose windows the budget has. The lock
// is held.
func (s *Server) limitStates(b *budget, k *apiKey) (states []LimitState) {
	for i, l := range spec.Limits {
		if !l.PerIP || b.ip != nil {
			b.maxima[i] = s.maximum(k, i)
			states = append(states, b.state(i))
		}
	}
	return states
}

func (b *budget) state(i int) LimitState {
	w := b.counts(i).windows[i]
	state := LimitState{Key: string(spec.Limits[i].Key), Max: b.maxima[i], Used: w.used(b.now)}
	if opens := b.opens(i); opens.After(b.now) {
		state.Opens = opens
	}
	return state
}

// Exhaust uses up the limit limitKey, one of the LimitKey constants, for key:
// its next call to an endpoint that the limit covers is refused with 429,
// whatever address it comes from.
//
// A limit of a key is shut until the window that is open ends, and where none
// is, for a whole window from now. By a clock that runs, a window that has a
// second left is shut for a second: WithClock makes time stand still. With
// WithSlidingWindows the window ends when the oldest call that counts leaves.
// The limits per address, ip_minute and agent_create_ip_minute, are shut for a
// whole window from now, since their windows belong to no key. A limit that
// Exhaust has shut already stays as it is.
//
// An unknown limit key, and a key that this fake did not issue, panic.
func (s *Server) Exhaust(limitKey, key string) {
	i := limitIndex(spec.LimitKey(limitKey))
	if i < 0 {
		// Not quoted: the arguments may have been swapped.
		misuse("Exhaust", "unknown limit key; the limit keys are %s", limitKeys())
	}
	now := s.now()
	s.withKey("Exhaust", key, func(k *apiKey) { k.counts.exhaust(i, now) })
}
