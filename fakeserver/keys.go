package fakeserver

import (
	"strings"
	"time"
)

// KeyOptions say what kind of key IssueKey makes.
type KeyOptions struct {
	// Plan is the key's plan; the zero value means PlanPreview.
	Plan Plan
	// NotDashboard makes a key that was not issued through the dashboard:
	// BYOK operations and warm-up in byok mode answer 403 (interface 5).
	NotDashboard bool
}

// KeyInfo describes an API key without its text.
type KeyInfo struct {
	Label     string    `json:"label"` // key_000001, as in Call.Key
	Plan      Plan      `json:"plan"`
	Dashboard bool      `json:"dashboard"` // issued through the dashboard (interface 5)
	Revoked   bool      `json:"revoked"`
	IssuedAt  time.Time `json:"issued_at"`   // by the fake's clock; New and Reset issue the default key
	Address   string    `json:"called_from"` // the IP address of its last call; "" before the first call with an active plan
}

// apiKey is an account: interface 2.4 and 5 scope everything by API key.
type apiKey struct {
	KeyInfo
	number int  // in the order of issue, from 1
	warm   bool // no cold start any more
	byok   *byokConfig
	counts *counts
}

func (c *config) keyText(n int) string {
	switch {
	case c.key == "":
		return keyText(n)
	case n == 1:
		return c.key
	default:
		return numbered(c.key, n)
	}
}

func (w *world) issue(c *config, o KeyOptions, now time.Time) string {
	n := len(w.keys) + 1
	text := c.keyText(n)
	w.keys[digestOf(text)] = &apiKey{
		KeyInfo: KeyInfo{
			Label: numbered("key", n), Plan: Plan(o.Plan.spec("IssueKey").Name), Dashboard: !o.NotDashboard, IssuedAt: now,
		},
		number: n,
		counts: newCounts(c.sliding),
	}
	return text
}

// Key returns the default API key: dashboard-issued, on the preview plan or
// WithPlan. Without WithKey its text is the same in every fake.
func (s *Server) Key() string { return s.config.keyText(1) }

// IssueKey returns a new API key, which is an account of its own: agents, BYOK
// configuration and limits are not shared with any other. An unknown plan
// panics.
func (s *Server) IssueKey(o KeyOptions) string {
	o.Plan.spec("IssueKey") // may panic, so before the lock
	now := s.now()
	return look(s, func(w *world) string { return w.issue(&s.config, o, now) })
}

// RevokeKey makes every later call with key answer 401. A key that this fake
// did not issue panics.
func (s *Server) RevokeKey(key string) {
	s.withKey("RevokeKey", key, func(k *apiKey) { k.Revoked = true })
}

// ReinstateKey makes a key that was revoked valid again, with all that it had. A
// key that this fake did not issue panics.
func (s *Server) ReinstateKey(key string) {
	s.withKey("ReinstateKey", key, func(k *apiKey) { k.Revoked = false })
}

// SetPlan moves key to another plan, with immediate effect: PlanFree makes
// every later call answer 402, the others set the limits of interface 8.2.
// What was counted stays counted. A key that this fake did not issue, and an
// unknown plan, panic.
func (s *Server) SetPlan(key string, plan Plan) {
	known := Plan(plan.spec("SetPlan").Name)
	s.withKey("SetPlan", key, func(k *apiKey) { k.Plan = known })
}

// withKey runs f on the key under the lock. An unknown key panics, after the
// lock is released and without its text.
func (s *Server) withKey(method, key string, f func(*apiKey)) {
	if !with(s, func(w *world) *apiKey { return w.keys[digestOf(key)] }, f) {
		misuse(method, "this fake did not issue that key; Key and IssueKey return the ones it did")
	}
}

// IssueKeyOn is IssueKey in plain types: it makes a key on one of the plans
// preview, free, pro and byok, dashboard-issued or not. With it a Server has
// the abilities that package contract asks of a target.
func (s *Server) IssueKeyOn(plan string, dashboard bool) string {
	return s.IssueKey(KeyOptions{Plan: Plan(plan), NotDashboard: !dashboard})
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
	i := limitIndex(limit)
	if i < 0 {
		misuse("Exhaust", "unknown limit; the limits are %s", limitKeys()) // not quoted: it may be a key
	}
	now := s.now()
	s.withKey("Exhaust", key, func(k *apiKey) { k.counts.exhaust(i, now) })
}

// bearer returns the token of the one Authorization header: interface 5. The
// scheme's case does not matter, and a token has no spaces (RFC 9110, 11.4).
func bearer(headers []string) (token string, ok bool) {
	if len(headers) != 1 {
		return "", false
	}
	scheme, rest, _ := strings.Cut(headers[0], " ")
	token = strings.TrimLeft(rest, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " \t") {
		return "", false
	}
	return token, true
}
