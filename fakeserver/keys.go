package fakeserver

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Plan is the developer plan of an API key: interface 5 and 8.2. The zero value
// means PlanPreview.
type Plan string

// The plans of interface 8.2, and one with the limits of interface 8.1.
const (
	PlanPreview Plan = spec.PreviewPlan // preview: active, with the preview limits of interface 8.1
	PlanFree    Plan = spec.FreePlan    // free: inactive, so every call is answered 402
	PlanPro     Plan = spec.ProPlan     // pro: active, with the Pro limits of interface 8.2
	PlanBYOK    Plan = spec.BYOKPlan    // byok: active, with the BYOK limits of interface 8.2
)

const planNames = spec.PreviewPlan + ", " + spec.FreePlan + ", " + spec.ProPlan + " and " + spec.BYOKPlan

func (p Plan) isKnown() bool {
	_, known := spec.PlanNamed(string(p))
	return known
}

// checked returns the plan's name, or panics for an unknown plan.
func (p Plan) checked(method string) string {
	if p = cmp.Or(p, PlanPreview); !p.isKnown() {
		misuse(method, "unknown plan %q; the plans are %s", string(p), planNames)
	}
	return string(p)
}

// KeyOptions say what kind of key IssueKey makes. The zero value makes a key
// like the default one: dashboard-issued, on the preview plan.
type KeyOptions struct {
	// Plan is the key's plan; the zero value means PlanPreview.
	Plan Plan
	// NotDashboard makes a key that was not issued through the dashboard:
	// BYOK operations and warm-up in byok mode answer 403 (interface 5).
	NotDashboard bool
}

const keyKind = "amk_fake"

// keyText is the text of the n-th key, from 1. It is computed and never stored.
func (c *config) keyText(n int) string {
	switch {
	case c.key == "":
		return service.Numbered(keyKind, n)
	case n == 1:
		return c.key
	default:
		return service.Numbered(c.key, n)
	}
}

// labelOf computes the label from the text of a key of fakes without WithKey. Any
// other text may be a real key, and is not shown.
func labelOf(key string) string {
	if n := numberOf(keyKind, key); n > 0 {
		return service.Numbered("key", n)
	}
	return mask.Withheld
}

// numberOf is the n of which Numbered makes the text; 0 if none does.
func numberOf(kind, text string) int {
	digits, _ := strings.CutPrefix(text, kind+"_")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || service.Numbered(kind, n) != text {
		return 0
	}
	return n
}

// Key returns the default API key: dashboard-issued, on the plan of WithPlan or
// else the preview plan. Its text is that of WithKey, or else amk_fake_000001 in
// every fake.
func (s *Server) Key() string { return s.config.keyText(1) }

// IssueKey returns a new API key. Each key is an account: it shares agents, BYOK
// configuration and limits with no other key, except for the limits per address.
// An unknown plan panics.
func (s *Server) IssueKey(o KeyOptions) string {
	plan, now := o.Plan.checked("IssueKey"), s.Now()
	defer s.lock().Unlock()
	text := s.config.keyText(len(s.gen.service.Keys()) + 1)
	s.gen.service.Issue(service.DigestOf(text), plan, !o.NotDashboard, now)
	return text
}

// IssueKeyOn is IssueKey without types of this package: it makes a key on one of
// the plans preview, free, pro and byok, dashboard-issued or not. With it a Server
// is an Abilities of packages contract and observe. An unknown plan panics.
func (s *Server) IssueKeyOn(plan string, dashboard bool) string {
	return s.IssueKey(KeyOptions{Plan: Plan(plan), NotDashboard: !dashboard})
}

// keyLocked finds a key. An unknown one panics, without its text.
func (s *Server) keyLocked(method, key string) *service.Key {
	k := s.gen.service.Key(service.DigestOf(key))
	if k == nil {
		misuse(method, "this fake did not issue that key; Key and IssueKey return the ones it did")
	}
	return k
}

// RevokeKey makes every later call with key answer 401. A key that this fake
// did not issue panics.
func (s *Server) RevokeKey(key string) {
	now := s.Now()
	defer s.lock().Unlock()
	s.keyLocked("RevokeKey", key).SetRevoked(true, now)
}

// ReinstateKey makes a key that was revoked valid again, with its agents, limits
// and BYOK configuration. A key that this fake did not issue panics.
func (s *Server) ReinstateKey(key string) {
	defer s.lock().Unlock()
	s.keyLocked("ReinstateKey", key).SetRevoked(false, time.Time{})
}

// SetPlan moves key to another plan, with immediate effect: PlanFree makes
// every later call answer 402, the others set the limits of the plan. Calls that
// were counted stay counted. A key that this fake did not issue, and an unknown
// plan, panic.
func (s *Server) SetPlan(key string, plan Plan) {
	known := plan.checked("SetPlan")
	defer s.lock().Unlock()
	s.keyLocked("SetPlan", key).Plan = known
}

// Limit names one of the limits of interface 8.1, for Exhaust and WithLimit. The
// Limit constants are its values. A variable with an API key has another type, so
// the arguments of Exhaust cannot be swapped.
type Limit string

// The limits of interface 8.1, by their names in the limit_key of a 429. The
// interface shows no names; the fake chose these. They are untyped constants, so
// that they can be compared with a Limit and with the LimitKey of an
// agentmessaging.Error, which is a string. Comments show the values and the preview
// defaults.
const (
	LimitKeyMinute           = spec.KeyMinute           // key_minute: 60 requests of a key in a minute
	LimitIPMinute            = spec.IPMinute            // ip_minute: 120 requests from an address in a minute
	LimitKeyDay              = spec.KeyDay              // key_day: 1,000 requests of a key in a day
	LimitAgentCreateKeyDay   = spec.AgentCreateKeyDay   // agent_create_key_day: 50 agents created by a key in a day
	LimitAgentCreateIPMinute = spec.AgentCreateIPMinute // agent_create_ip_minute: 10 agents created from an address in a minute
	LimitBYOKSetKeyHour      = spec.BYOKSetKeyHour      // byok_set_key_hour: 5 provider keys stored by a key in an hour
	LimitWarmUpKeyHour       = spec.WarmUpKeyHour       // warmup_key_hour: 3 warm-ups of a key in an hour
)

func limitKeys() string {
	var names []string
	for _, l := range spec.Limits {
		names = append(names, string(l.Key))
	}
	return strings.Join(names, ", ")
}

// Exhaust closes one limit for one key, as if its calls were used up: the next
// call with key that spends the limit is answered 429, from whatever address.
// Other keys are not affected.
//
// The limit opens again when the window of its calls ends. If the key has made
// calls that count, their window is already running and ends when it would have
// ended without Exhaust, perhaps in a second; a sliding window ends when its oldest
// call stops counting. Otherwise a window starts now. The limits per address,
// ip_minute and agent_create_ip_minute, belong to no key, so for them a window
// always starts now. Windows that are aligned to the clock (Decisions, windows) end
// with its minute, hour or day, and a token bucket stays closed for a whole window
// from now. Closing a limit twice changes nothing.
//
// An unknown limit, and a key that this fake did not issue, panic.
func (s *Server) Exhaust(key string, limit Limit) {
	i, now := spec.LimitIndex(spec.LimitKey(limit)), s.Now()
	if i < 0 {
		misuse("Exhaust", "unknown limit; the limits are %s", limitKeys()) // not quoted: it may be a key
	}
	defer s.lock().Unlock()
	s.gen.service.Exhaust(s.keyLocked("Exhaust", key), i, now)
}

// LimitState describes one limit of an API key at one moment.
type LimitState struct {
	Key  Limit // one of the Limit constants
	Max  int   // calls that a window allows, by the key's plan or WithLimit
	Used int   // calls that count now
	// Opens is when the limit lets the next call through; the zero time if it lets
	// one through now. A limit that Exhaust closed has an Opens too, even if Used
	// is less than Max.
	Opens time.Time
}

// Limits returns the state of the limits of key, in the order of interface 8.1.
// The limits per address are included only if a FromIP is given; Used then counts
// the calls of every key from that address. Limits spends nothing. A key that
// this fake did not issue, and a second FromIP, panic.
func (s *Server) Limits(key string, from ...FromIP) (states []LimitState) {
	ip, now := netip.Addr{}, s.Now()
	if len(from) > 0 {
		ip = address("Limits", from).Unmap().WithZone("")
	}
	defer s.lock().Unlock()
	for _, l := range s.gen.service.LimitStates(s.keyLocked("Limits", key), ip, now) {
		states = append(states, LimitState{Limit(l.Limit), l.Max, l.Used, l.Opens})
	}
	return states
}
