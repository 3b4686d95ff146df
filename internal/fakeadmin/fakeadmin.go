// Package fakeadmin lets the programs of this module ask a fake what tests have no
// need to ask. Package fakeserver cannot be imported here, since it imports this
// package.
package fakeadmin

import "time"

// Admin is what a program around a fake asks of it. Call is fakeserver.Call.
type Admin[Call any] interface {
	DroppedCalls() int // since New or Reset, which Calls no longer returns
	LastSeq() int      // of the newest call; 0 before the first
	// CallsAfter returns the first n calls that Calls would return and whose Seq is
	// greater than seq. It costs as much as it returns, however many calls there are.
	CallsAfter(seq, n int) []Call
	// KeepExchanges keeps n exchanges of each conversation, however many calls are
	// kept. It resets the fake, which must not be in use yet.
	KeepExchanges(n int)
	ExchangeCount(agentID string) int // 0 for an unknown agent
	Keys() []Key                      // revoked ones included, in the order of issue: the default key first
	KeyOf(text string) Key            // panics for a key that the fake did not issue
	// KeyLabeled returns the API key with a label, its text, and whether there is one.
	KeyLabeled(label string) (key Key, text string, ok bool)
	Advanced() time.Duration // how far Advance and Sleep have moved the clock
	// Restart is Reset, and takes the clock back to where it would be without Advance
	// and Sleep. No limit survives it, so none sees a clock that runs backwards.
	Restart()
	// WhyUnused says how many calls a *fakeserver.Script or *fakeserver.Injection has
	// matched, which kept call came nearest, and why it did not act on that one. It shows
	// no key.
	WhyUnused(rule any) string
	// ForgetCalls empties Calls. Calls under way stay, and Seq goes on.
	ForgetCalls()
}

// The labels of the key that a reset does not remove, and of calls without a key that the
// fake issued, as in Call.Key.
const (
	KeyDefault = "key_000001"
	KeyMissing = "missing" // no Authorization header, or not one bearer token
	KeyUnknown = "unknown" // a bearer token that is no key of the fake
)

// Key describes an API key without its text.
type Key struct {
	Label     string    `json:"label"` // key_000001, as in Call.Key
	Plan      string    `json:"plan"`
	Dashboard bool      `json:"dashboard"` // issued through the dashboard (interface 5)
	Revoked   bool      `json:"revoked"`
	IssuedAt  time.Time `json:"issued_at"`   // by the fake's clock
	Address   string    `json:"called_from"` // of its last call; "" before the first call with an active plan
}

// Open is set by package fakeserver. It returns an Admin of a *fakeserver.Server.
var Open func(fake any) any

// Of returns the Admin of a *fakeserver.Server.
func Of[Call any](fake any) Admin[Call] { return Open(fake).(Admin[Call]) }
