package fakeserver

import (
	"maps"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Admin answers the questions of a program around a fake, such as the page of
// agentmessaging-fake: how many calls there are, which are new, and which keys
// there are by their labels. Tests rarely need it.
type Admin struct{ s *Server }

// Admin returns the fake's Admin.
func (s *Server) Admin() Admin { return Admin{s} }

// TotalCalls counts the calls since New or Reset, including older ones that
// Calls no longer returns.
func (a Admin) TotalCalls() int {
	return look(a.s, func(w *world) int { return w.log.total() })
}

// DroppedCalls counts the older calls that Calls no longer returns.
func (a Admin) DroppedCalls() int {
	return look(a.s, func(w *world) int { return w.log.dropped })
}

// CallsAfter returns the first n calls that Calls would return and whose Seq is
// greater than seq. It costs as much as it returns, however many calls there
// are. Where Calls has dropped calls in between, their numbers are missing. An
// n below 1 and a zero Matcher panic.
func (a Admin) CallsAfter(seq, n int, matchers ...Matcher) []Call {
	if n < 1 {
		misuse("CallsAfter", "%d calls is less than 1", n)
	}
	checkMatchers("CallsAfter", matchers)
	var found []*record
	later := look(a.s, func(w *world) []*record {
		return w.log.since(func(r *record) bool { return r.call.Seq > seq })
	})
	for _, r := range later {
		if len(found) < n && matchesAll(matchers, r) {
			found = append(found, r)
		}
	}
	return copiedCalls(found)
}

// LastSeq is the Seq of the newest call, or 0 before the first. Reset does not
// set it back.
func (a Admin) LastSeq() int {
	return look(a.s, func(*world) int { return a.s.answered })
}

// AgentCount counts the agents that Agents would return.
func (a Admin) AgentCount() int {
	return look(a.s, func(w *world) int { return len(w.ordered) })
}

// ExchangeCount counts the exchanges that Conversation would return. An unknown
// agent panics.
func (a Admin) ExchangeCount(agentID string) (n int) {
	a.s.withAgent("ExchangeCount", agentID, func(of *agent) { n = len(of.exchanges.kept) })
	return n
}

// BYOKAvailable reports whether the BYOK store is available. It is, until
// SetBYOKAvailable says otherwise.
func (a Admin) BYOKAvailable() bool {
	return look(a.s, func(w *world) bool { return !w.byokUnavailable })
}

// Keys returns all API keys, revoked ones included, in the order of issue: the
// default key first.
func (a Admin) Keys() []KeyInfo {
	return look(a.s, func(w *world) (infos []KeyInfo) {
		for _, k := range w.keysInOrder() {
			infos = append(infos, k.KeyInfo)
		}
		return infos
	})
}

// KeyWithLabel returns the text of the API key with this label, and whether
// there is one. A program that shows labels needs it to act on a key.
func (a Admin) KeyWithLabel(label string) (key string, ok bool) {
	n, issued := numberOf("key", label), look(a.s, func(w *world) int { return len(w.keys) })
	if n == 0 || n > issued {
		return "", false
	}
	return a.s.config.keyText(n), true
}

// LimitsFrom returns the state of all seven limits for calls with key from an
// IP address, in the order of interface 8.1. For the limits per address, Used
// counts the calls of every key from that address, and Max and Opens follow
// from the plan of key. Looking spends nothing. A key that this fake did not
// issue and a text that is no IP address panic.
func (a Admin) LimitsFrom(key, address string) []LimitState {
	ip := parseIP("LimitsFrom", address).Unmap().WithZone("")
	now := a.s.now()
	var states []LimitState
	a.s.withKey("LimitsFrom", key, func(k *apiKey) {
		spent := a.s.world.ips[ip]
		if spent == nil {
			spent = newCounts(a.s.config.sliding) // looked at, and not kept
		}
		states = a.s.config.budget(k.Plan, k.counts, spent, now).states()
	})
	return states
}

// Advanced is how far Advance and Sleep have moved the clock.
func (a Admin) Advanced() time.Duration { return time.Duration(a.s.offset.Load()) }

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
	s.withKey("Limits", key, func(k *apiKey) { states = s.config.budget(k.Plan, k.counts, nil, now).states() })
	return states
}

// states describes the limits that the budget has. The lock is held.
func (b budget) states() (states []LimitState) {
	for i, l := range spec.Limits {
		if !l.PerIP || b.ip != nil {
			states = append(states, b.state(i))
		}
	}
	return states
}

func (b *budget) state(i int) LimitState {
	opens := b.opens(i) // counts what is used now
	state := LimitState{Key: Limit(spec.Limits[i].Key), Max: b.maxima[i], Used: b.counts(i).windows[i].used}
	if opens.After(b.now) {
		state.Opens = opens
	}
	return state
}

func (st *state) keysInOrder() []*apiKey {
	return slices.SortedFunc(maps.Values(st.keys), func(a, b *apiKey) int { return a.number - b.number })
}
