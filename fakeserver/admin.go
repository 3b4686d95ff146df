package fakeserver

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TotalCalls is the number of all calls since New or Reset, those that Calls
// no longer has included.
func (s *Server) TotalCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.world.journal.kept) + s.world.journal.dropped
}

// DroppedCalls is how many older calls Calls no longer has.
func (s *Server) DroppedCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.journal.dropped
}

// CallsAfter returns the first n of the calls that Calls would return and whose
// Seq is greater than seq: what is new since a call, at the cost of what is
// returned. Where Calls has dropped calls in between, their numbers are missing.
// An n below 1 and a zero Matcher panic.
func (s *Server) CallsAfter(seq, n int, matchers ...Matcher) []Call {
	if n < 1 {
		misuse("CallsAfter", "%d calls is less than 1", n)
	}
	checkMatchers("CallsAfter", matchers)
	var found []*record
	for _, r := range s.recordsAfter(seq) {
		if len(found) < n && matchesAll(matchers, r) {
			found = append(found, r)
		}
	}
	return copiedCalls(found)
}

func (s *Server) recordsAfter(seq int) []*record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.journal.since(func(r *record) bool { return r.call.Seq > seq })
}

// LastSeq is the Seq of the newest call, 0 before the first. Reset does not
// start it again.
func (s *Server) LastSeq() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered
}

// AgentCount is the number of agents that Agents would return.
func (s *Server) AgentCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.world.ordered)
}

// ExchangeCount is the number of exchanges that Conversation would return. An
// unknown agent panics.
func (s *Server) ExchangeCount(agentID string) (n int) {
	s.withAgent("ExchangeCount", agentID, func(a *agent) { n = len(a.exchanges.kept) })
	return n
}

// BYOKAvailable reports whether the BYOK store is available: what
// SetBYOKAvailable said last, or true.
func (s *Server) BYOKAvailable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.world.byokUnavailable
}

// KeyInfo is what can be seen of an API key without its text.
type KeyInfo struct {
	Label     string // key_000001, as in Call.Key
	Plan      Plan
	Dashboard bool // issued through the dashboard (interface 5)
	Revoked   bool
	IssuedAt  time.Time // by the fake's clock; New and Reset issue the default key
	Address   string    // the IP address that it called from last; "" before the first call with an active plan
}

// Keys returns all API keys in the order of issue: first the default key, then
// those of IssueKey. Revoked ones are there too.
func (s *Server) Keys() []KeyInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.Collect(maps.Values(s.world.keys))
	slices.SortFunc(keys, func(a, b *apiKey) int { return cmp.Compare(a.number, b.number) })
	infos := make([]KeyInfo, len(keys))
	for i, k := range keys {
		infos[i] = k.info()
	}
	return infos
}

func (k *apiKey) info() KeyInfo {
	return KeyInfo{
		Label: k.label, Plan: Plan(k.plan.Name), Dashboard: k.dashboard, Revoked: k.revoked,
		IssuedAt: k.issued, Address: addressText(k.from),
	}
}

func addressText(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

// KeyWithLabel returns the text of the API key with this label, and whether
// there is one: for a program that shows labels and must act on keys.
func (s *Server) KeyWithLabel(label string) (key string, ok bool) {
	digits, _ := strings.CutPrefix(label, "key_")
	n, err := strconv.Atoi(digits)
	if err != nil || numbered("key", n) != label {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 1 || n > len(s.world.keys) {
		return "", false
	}
	return s.config.keyText(n), true
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

// Advanced is how much Advance has added to the clock.
func (s *Server) Advanced() time.Duration { return time.Duration(s.offset.Load()) }
