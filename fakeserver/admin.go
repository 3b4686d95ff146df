package fakeserver

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Admin is what a program around a fake asks of it, such as the page of
// agentmessaging-fake: counts, keys by their labels and what is new. A test has
// little use for it.
type Admin struct{ s *Server }

// Admin returns the fake's view for such a program.
func (s *Server) Admin() Admin { return Admin{s} }

// TotalCalls is the number of all calls since New or Reset, those that Calls
// no longer has included.
func (a Admin) TotalCalls() int {
	return look(a.s, func(w *world) int { return w.journal.total() })
}

// DroppedCalls is how many older calls Calls no longer has.
func (a Admin) DroppedCalls() int {
	return look(a.s, func(w *world) int { return w.journal.dropped })
}

// CallsAfter returns the first n of the calls that Calls would return and whose
// Seq is greater than seq: what is new since a call, at the cost of what is
// returned. Where Calls has dropped calls in between, their numbers are missing.
// An n below 1 and a zero Matcher panic.
func (a Admin) CallsAfter(seq, n int, matchers ...Matcher) []Call {
	if n < 1 {
		misuse("CallsAfter", "%d calls is less than 1", n)
	}
	checkMatchers("CallsAfter", matchers)
	var found []*record
	later := look(a.s, func(w *world) []*record {
		return w.journal.since(func(r *record) bool { return r.call.Seq > seq })
	})
	for _, r := range later {
		if len(found) < n && matchesAll(matchers, r) {
			found = append(found, r)
		}
	}
	return copiedCalls(found)
}

// LastSeq is the Seq of the newest call, 0 before the first. Reset does not
// start it again.
func (a Admin) LastSeq() int {
	return look(a.s, func(*world) int { return a.s.answered })
}

// AgentCount is the number of agents that Agents would return.
func (a Admin) AgentCount() int {
	return look(a.s, func(w *world) int { return len(w.ordered) })
}

// ExchangeCount is the number of exchanges that Conversation would return. An
// unknown agent panics.
func (a Admin) ExchangeCount(agentID string) (n int) {
	a.s.withAgent("ExchangeCount", agentID, func(of *agent) { n = len(of.exchanges.kept) })
	return n
}

// BYOKAvailable reports whether the BYOK store is available: what
// SetBYOKAvailable said last, or true.
func (a Admin) BYOKAvailable() bool {
	return look(a.s, func(w *world) bool { return !w.byokUnavailable })
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
func (a Admin) Keys() []KeyInfo {
	return look(a.s, func(w *world) (infos []KeyInfo) {
		for _, k := range w.keysInOrder() {
			infos = append(infos, k.info())
		}
		return infos
	})
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
func (a Admin) KeyWithLabel(label string) (key string, ok bool) {
	digits, _ := strings.CutPrefix(label, "key_")
	n, err := strconv.Atoi(digits)
	if err != nil || numbered("key", n) != label {
		return "", false
	}
	issued := look(a.s, func(w *world) int { return len(w.keys) })
	if n < 1 || n > issued {
		return "", false
	}
	return a.s.config.keyText(n), true
}

// LimitsFrom returns where all seven limits stand for calls with key from an IP
// address, in the order of interface 8.1: for those per address, Used is what
// calls from it have spent, with whatever key, and Max and Opens are those of
// key. Looking spends nothing. A key that this fake did not issue, and what is
// no IP address, panic.
func (a Admin) LimitsFrom(key, address string) []LimitState {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		misuse("LimitsFrom", "%s is not an IP address such as 203.0.113.7", quoteName(address))
	}
	now := a.s.now()
	var states []LimitState
	a.s.withKey("LimitsFrom", key, func(k *apiKey) {
		b := budget{key: k.counts, ip: a.s.world.ips[ip.Unmap().WithZone("")], now: now}
		if b.ip == nil {
			b.ip = newCounts(true, a.s.config.sliding) // looked at, and not kept
		}
		states = a.s.limitStates(&b, k)
	})
	return states
}

// Advanced is how much Advance has added to the clock.
func (a Admin) Advanced() time.Duration { return time.Duration(a.s.offset.Load()) }
