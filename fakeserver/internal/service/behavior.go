package service

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Behavior is what the service does where the interface is silent. The zero value is of
// no use; NewBehavior has the fake's own answers. Each field is the answer to one
// Decision of package fakeserver, which has the question in words.
//
// A Behavior does not change once a State uses it, so States and goroutines may share
// one.
type Behavior struct {
	// What answers hold: names, forms and words.
	Status     StatusValues
	ErrorNames map[string]string // by the fake's own
	LimitNames struct{ WarmUp, KeyMinute string }
	OtherNames map[string]string // of the other limits, by the fake's own
	SMSStatus  map[string]string // by mode
	Reason     bool              // a 400 says in reason what is wrong
	Times      string

	// The statuses of answers that the interface does not list: accepted, or that of
	// the refusal.
	UnknownMethod, AgentOfAnotherKey, ClearNothing, BYOKCleared int // accepted, or the status of the refusal

	// Which of two flaws of one call is answered, where a call has both.
	PathBeforeKey, BodyBeforeAgent, LimitBeforeBody, BodyBeforeOperation bool // order of checks
	PermissionBeforeBody, LimitBeforePermission, StoreDownFirst          bool // likewise

	// Bodies: what is accepted although section 2 does not list it, and how lengths are
	// counted.
	UnknownMembers, NullMembers, DuplicateMembers, OtherCase, BehindBody, ContentType bool // are accepted
	LengthUnit                                                                        string
	MetadataCap                                                                       int

	// What an operation does beyond its answer, and what calls spend.
	CreationStoresKey                   bool
	OperationsSpend                     bool            // refused ones
	RequestsSpend                       map[string]bool // whether a call refused with this status spends one; and statusCalls
	Windows                             string
	ExactRetryAfter, NamesTheLastToOpen bool
}

const (
	accepted    = 200      // the answer to a question that leads to no refusal
	statusCalls = "status" // the member of RequestsSpend for endpoints that list no 429; observe asks GET /v1/status
)

// StatusValues are the strings of interface 4.1, which shows only their types.
type StatusValues struct {
	Service string `json:"service"`
	Version string `json:"version"`
	Mode    string `json:"mode"`
}

// The forms of times and the units of lengths.
const (
	TimesRFC3339, TimesOffset       = "rfc3339", "rfc3339 with an offset"
	TimesSeconds, TimesMilliseconds = "unix seconds", "unix milliseconds"

	UnitPoints, UnitUTF16, UnitBytes = "code points", "UTF-16 units", "bytes"
)

// How a limit counts calls. Interface 8.1 shows maxima and lengths only.
const (
	WindowsFixed    = "fixed"        // a window starts with its first counted call
	WindowsSliding  = "sliding"      // the calls of the last length count
	WindowsAligned  = "aligned"      // windows start with the clock's minute, hour or day, in UTC
	WindowsWeighted = "weighted"     // aligned; the previous window counts in proportion to its overlap with the last length
	WindowsBucket   = "token bucket" // each length/max adds a call, up to as many as the limit has
)

// IsBucket reports whether a kind is a token bucket: WindowsBucket, or one with a
// size for limits per minute, such as "token bucket of 10".
func IsBucket(kind string) bool { return kind == WindowsBucket || burstOf(kind) > 0 }

// burstOf is how many calls a bucket saves up; 0 means as many as the limit has. A
// number with a leading zero or a sign makes no bucket, so that each bucket has one
// name.
func burstOf(kind string) int {
	n, isBucket := strings.CutPrefix(kind, WindowsBucket+" of ")
	if !isBucket {
		return 0
	}
	burst, _ := strconv.Atoi(n)
	if burst < 1 || strconv.Itoa(burst) != n { // such as 010
		return 0
	}
	return burst
}

// NewBehavior returns the fake's own answers to the open questions. They are guesses;
// an observation of a real service replaces them (fakeserver.Like). Limits and error
// identifiers go by their own names.
func NewBehavior() *Behavior {
	b := &Behavior{
		Status:     StatusValues{"agent-messaging-fake", "v1", "preview"},
		ErrorNames: map[string]string{}, OtherNames: map[string]string{},
		SMSStatus: map[string]string{
			spec.SMSNone: spec.SMSDisabled, spec.SMSSandbox: spec.Active,
			spec.SMSManaged: spec.SMSNeedsCompliance, spec.SMSBYOTwilio: spec.SMSNeedsSetup,
		},
		Reason: true, Times: TimesRFC3339,
		UnknownMethod: 405, AgentOfAnotherKey: 404, ClearNothing: accepted, BYOKCleared: 400,
		PathBeforeKey: true, BodyBeforeAgent: true, LimitBeforeBody: true, BodyBeforeOperation: true,
		PermissionBeforeBody: true, LimitBeforePermission: true, StoreDownFirst: true,
		LengthUnit: UnitPoints, MetadataCap: spec.MetadataCap, CreationStoresKey: true,
		RequestsSpend: map[string]bool{"401": false, "404": true, "400": true, "409": true, statusCalls: false},
		Windows:       WindowsFixed, ExactRetryAfter: true, NamesTheLastToOpen: true,
	}
	b.LimitNames.WarmUp, b.LimitNames.KeyMinute = string(spec.WarmUpKeyHour), string(spec.KeyMinute)
	for _, l := range spec.Limits {
		if l.Key != spec.WarmUpKeyHour && l.Key != spec.KeyMinute {
			b.OtherNames[string(l.Key)] = string(l.Key)
		}
	}
	for _, kind := range Kinds {
		if kind.Code != "" && kind.Code != spec.RateLimited { // the one identifier that interface 7 shows
			b.ErrorNames[kind.Code] = kind.Code
		}
	}
	return b
}

// ErrorName is the error of a body: the name that Behavior has for one of the fake's
// own codes. Scripts may ask for any other, which goes out as it is.
func (b *Behavior) ErrorName(code string) string { return cmp.Or(b.ErrorNames[code], code) }

// LimitName is the limit_key of a 429 (interface 7), whose values the interface does
// not list; "" for no limit. Two limits may have one name: a real service may not tell
// them apart.
func (b *Behavior) LimitName(limit spec.LimitKey) string {
	switch limit {
	case spec.WarmUpKeyHour:
		return b.LimitNames.WarmUp
	case spec.KeyMinute:
		return b.LimitNames.KeyMinute
	}
	return b.OtherNames[string(limit)]
}

// Length is how long a text is for the bounds of interface 8.4, which speaks of
// characters without saying which.
func (b *Behavior) Length(text string) int {
	switch b.LengthUnit {
	case UnitBytes:
		return len(text)
	case UnitUTF16:
		return len(utf16.Encode([]rune(text)))
	}
	return utf8.RuneCountInString(text)
}

// limitComesBefore reports whether a spent limit on requests refuses a call before its
// flaw does. Only a wrong body and a missing permission have a decision; before any
// other flaw the limit comes first.
func (b *Behavior) limitComesBefore(flaw *Refusal) bool {
	switch flaw.AnsweredAs {
	case BadRequest:
		return b.LimitBeforeBody
	case NotDashboard:
		return b.LimitBeforePermission
	}
	return true
}

// spendsDespite reports whether a call with a flaw spends a request. A status that
// nobody asked about spends one.
func (b *Behavior) spendsDespite(flaw *Refusal) bool {
	spends, asked := b.RequestsSpend[strconv.Itoa(flaw.Status)]
	return spends || !asked
}
