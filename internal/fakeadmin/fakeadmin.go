// Package fakeadmin gives the programs of this module operations on a fake that tests do
// not need. It cannot import package fakeserver, since fakeserver imports fakeadmin.
package fakeadmin

import "time"

// Admin has the operations that a program around a fake needs. Call is fakeserver.Call.
type Admin[Call any] interface {
	DroppedCalls() int // how many calls since New or Reset Calls no longer returns
	LastSeq() int      // the Seq of the newest call; 0 before the first
	// CallsAfter returns the first n calls that Calls would return and whose Seq is greater
	// than seq. Its cost depends on the number of calls that it returns, not on the number
	// that are kept.
	CallsAfter(seq, n int) []Call
	// KeepExchanges keeps n exchanges of each conversation, however many calls are
	// kept. It resets the fake, which must not be in use yet.
	KeepExchanges(n int)
	ExchangeCount(agentID string) int // 0 for an unknown agent
	Keys() []Key                      // in the order of issue, revoked keys included; the default key is first
	// KeyLabeled returns the API key with a label, its text, and whether there is one.
	KeyLabeled(label string) (key Key, text string, ok bool)
	Advanced() time.Duration // how far Advance and Sleep have moved the clock
	// Restart is Reset. It also sets the clock back to the time without Advance and Sleep.
	// No limit survives a Restart, so no limit sees a clock that runs backwards.
	Restart()
	// WhyUnused says how many calls a *fakeserver.Script or *fakeserver.Injection has
	// matched, which kept call came nearest, and why the rule did not act on that call. It
	// shows no key.
	WhyUnused(rule any) string
	// ForgetCalls empties Calls. Calls under way stay, and Seq goes on.
	ForgetCalls()
}

// The labels of calls without a key that the fake issued, as in Call.Key.
const (
	KeyMissing = "missing" // no Authorization header, or not one bearer token
	KeyUnknown = "unknown" // a bearer token that is not a key of the fake
)

// Key describes an API key without its text.
type Key struct {
	Label     string    `json:"label"` // key_000001, as in Call.Key
	Plan      string    `json:"plan"`
	Dashboard bool      `json:"dashboard"` // issued through the dashboard (interface 5)
	Revoked   bool      `json:"revoked"`
	IssuedAt  time.Time `json:"issued_at"`   // by the fake's clock
	Address   string    `json:"called_from"` // of its last call; "" before the first call with an active plan
	Default   bool      `json:"default"`     // the first key, which a reset does not remove
}

// Open is set by package fakeserver. It returns an Admin of a *fakeserver.Server.
var Open func(fake any) any

// Of returns the Admin of a *fakeserver.Server. No type is named here, since package fakeserver
// imports this one.
func Of[Call any](fake any) Admin[Call] { return Open(fake).(Admin[Call]) }
