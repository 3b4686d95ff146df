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
	s.withKey("Limits", key, func(k *apiKey) {
		for i, l := range spec.Limits {
			if !l.PerIP {
				states = append(states, s.limitState(k, i, now))
			}
		}
	})
	return states
}

func (s *Server) limitState(k *apiKey, i int, now time.Time) LimitState {
	w := k.counts.windows[i]
	b := budget{key: k.counts, now: now}
	b.maxima[i] = s.maximum(k, i)
	state := LimitState{Key: string(spec.Limits[i].Key), Max: b.maxima[i], Used: w.used(now)}
	if opens := b.opens(i); opens.After(now) {
		state.Opens = opens
	}
	return state
}

// maximum is how many calls a key may make in the window of spec.Limits[i].
func (s *Server) maximum(k *apiKey, i int) int {
	if m := s.config.maxima[i]; m != 0 {
		return m
	}
	return k.plan.Max(i)
}
