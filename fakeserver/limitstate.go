package fakeserver

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// LimitState describes one limit of an API key at one moment.
type LimitState struct {
	Key  Limit // one of the Limit constants
	Max  int   // calls in a window, by the key's plan or WithLimit
	Used int   // calls that count now
	// Opens is the time of the next call that passes; the zero time if a call
	// passes now. A limit that Exhaust closed has one too, whatever Used says.
	Opens time.Time
}

// Limits returns the state of the limits of key, in the order of interface 8.1.
// The limits per address are left out, since they belong to no key. Looking
// spends nothing. A key that this fake did not issue panics.
func (s *Server) Limits(key string) []LimitState {
	now := s.now()
	var states []LimitState
	s.withKey("Limits", key, func(k *apiKey) { states = s.limitStates(&budget{key: k.counts, now: now}, k) })
	return states
}

// limitStates describes the limits whose windows the budget has. The lock is
// held.
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
	state := LimitState{Key: Limit(spec.Limits[i].Key), Max: b.maxima[i], Used: w.used(b.now)}
	if opens := b.opens(i); opens.After(b.now) {
		state.Opens = opens
	}
	return state
}

// Exhaust closes one limit for one key, as if its calls were used up: the next
// call with key that spends the limit is answered 429, from whatever address.
// Other keys are not affected.
//
// The limit opens when the key's window ends: where calls count already, that is
// when the window would have ended anyway, and else a whole window from now. The
// limits per address, ip_minute and agent_create_ip_minute, belong to no key and
// always stay closed for a whole window. Closing a limit twice changes nothing.
//
// A window with a second left stays closed for a second; with a WithClock that
// stands still, a test decides how much is left. An unknown limit, and a key
// that this fake did not issue, panic.
func (s *Server) Exhaust(key string, limit Limit) {
	i := limitIndex(spec.LimitKey(limit))
	if i < 0 {
		misuse("Exhaust", "unknown limit; the limits are %s", limitKeys()) // not quoted: it may be a key
	}
	now := s.now()
	s.withKey("Exhaust", key, func(k *apiKey) { k.counts.exhaust(i, now) })
}
