package fakeserver

import (
	"net/netip"
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

// LimitsFrom returns where all seven limits stand for calls with key from an IP
// address, in the order of interface 8.1: for those per address, Used is what
// calls from it have spent, with whatever key, and Max and Opens are those of
// key. Looking spends nothing. A key that this fake did not issue, and what is
// no IP address, panic.
func (s *Server) LimitsFrom(key, address string) []LimitState {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		misuse("LimitsFrom", "%s is not an IP address such as 203.0.113.7", quoteName(address))
	}
	now := s.now()
	var states []LimitState
	s.withKey("LimitsFrom", key, func(k *apiKey) {
		b := budget{key: k.counts, ip: s.world.ips[ip.Unmap().WithZone("")], now: now}
		if b.ip == nil {
			b.ip = newCounts(true, s.config.sliding) // looked at, and not kept
		}
		states = s.limitStates(&b, k)
	})
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

// maximum is how many calls a key may make in the window of spec.Limits[i].
func (s *Server) maximum(k *apiKey, i int) int {
	if m := s.config.maxima[i]; m != 0 {
		return m
	}
	return k.plan.Max(i)
}
