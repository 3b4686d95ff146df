package fakeserver

import (
	"cmp"
	"net/http"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// choices are what the fake answers where the interface is silent.
type choices struct {
	status     statusValues
	errorNames map[string]string // by the fake's own
	limitNames struct{ warmUp, keyMinute string }
	otherNames map[string]string // of the other limits, by the fake's own
	smsStatus  map[string]string // by mode
	reason     bool
	times      string

	unknownMethod, agentOfAnotherKey, clearNothing, byokCleared int // statuses

	pathBeforeKey, bodyBeforeAgent, limitBeforeBody, bodyBeforeOperation bool // order of checks
	permissionBeforeBody, limitBeforePermission, storeDownFirst          bool // likewise

	unknownMembers, nullMembers, duplicateMembers, otherCase, behindBody, contentType bool // are accepted
	lengthUnit                                                                        string
	metadataCap                                                                       int

	creationStoresKey                   bool
	operationsSpend                     bool            // refused ones
	requestsSpend                       map[string]bool // refused ones, by status; "status" is GET /v1/status
	windows                             string
	exactRetryAfter, namesTheLastToOpen bool
}

type statusValues struct {
	Service string `json:"service"`
	Version string `json:"version"`
	Mode    string `json:"mode"`
}

// The forms of times, units of lengths and kinds of windows.
const (
	timesRFC3339, timesOffset       = "rfc3339", "rfc3339 with an offset"
	timesSeconds, timesMilliseconds = "unix seconds", "unix milliseconds"

	unitPoints, unitUTF16, unitBytes = "code points", "UTF-16 units", "bytes"

	windowsFixed, windowsSliding = "fixed", "sliding"
)

// own are the fake's own choices. All fakes share them: who decides otherwise
// gets choices to change.
var own = newChoices()

func newChoices() *choices {
	c := &choices{
		status:     statusValues{"agent-messaging-fake", "v1", "preview"},
		errorNames: map[string]string{}, otherNames: map[string]string{},
		smsStatus: map[string]string{
			spec.SMSNone: spec.SMSDisabled, spec.SMSSandbox: spec.Active,
			spec.SMSManaged: spec.SMSNeedsCompliance, spec.SMSBYOTwilio: spec.SMSNeedsSetup,
		},
		reason: true, times: timesRFC3339,
		unknownMethod: 405, agentOfAnotherKey: 404, clearNothing: 200, byokCleared: 400,
		pathBeforeKey: true, bodyBeforeAgent: true, limitBeforeBody: true, bodyBeforeOperation: true,
		permissionBeforeBody: true, limitBeforePermission: true, storeDownFirst: true,
		lengthUnit: unitPoints, metadataCap: spec.MetadataCap, creationStoresKey: true,
		requestsSpend: map[string]bool{"401": false, "404": true, "400": true, "409": true, "status": false},
		windows:       windowsFixed, exactRetryAfter: true, namesTheLastToOpen: true,
	}
	c.limitNames.warmUp, c.limitNames.keyMinute = string(spec.WarmUpKeyHour), string(spec.KeyMinute)
	for _, code := range []string{
		codeBadRequest, codeUnauthorized, codePaymentRequired, codeForbidden, codeNotFound, codeMethodNotAllowed,
		codeBYOKNotConfigured, codeBYOKUnavailable,
	} {
		c.errorNames[code] = code
	}
	for _, l := range spec.Limits {
		if l.Key != spec.WarmUpKeyHour && l.Key != spec.KeyMinute {
			c.otherNames[string(l.Key)] = string(l.Key)
		}
	}
	return c
}

// Error identifiers. The interface shows only rate_limited (section 7); the
// fake chose the others.
const (
	codeBadRequest        = "bad_request"
	codeUnauthorized      = "unauthorized"
	codePaymentRequired   = "payment_required"
	codeForbidden         = "forbidden"
	codeNotFound          = "not_found"
	codeMethodNotAllowed  = "method_not_allowed"
	codeBYOKNotConfigured = "byok_not_configured"
	codeRateLimited       = spec.RateLimited
	codeBYOKUnavailable   = "byok_unavailable"
)

// errorName is the error of a body. Scripts may ask for any.
func (c *choices) errorName(code string) string { return cmp.Or(c.errorNames[code], code) }

func (c *choices) limitName(limit spec.LimitKey) string {
	switch limit {
	case spec.WarmUpKeyHour:
		return c.limitNames.warmUp
	case spec.KeyMinute:
		return c.limitNames.keyMinute
	}
	return c.otherNames[string(limit)]
}

// time is a time in an answer. The interface shows only that it is a string.
func (c *choices) time(t time.Time) string {
	switch c.times {
	case timesOffset:
		return t.In(time.FixedZone("", 3600)).Format(time.RFC3339Nano)
	case timesSeconds:
		return strconv.FormatInt(t.Unix(), 10)
	case timesMilliseconds:
		return strconv.FormatInt(t.UnixMilli(), 10)
	}
	return wireTime(t)
}

// length is how long a text is for the bounds of interface 8.4.
func (c *choices) length(text string) int {
	switch c.lengthUnit {
	case unitBytes:
		return len(text)
	case unitUTF16:
		return len(utf16.Encode([]rune(text)))
	}
	return utf8.RuneCountInString(text)
}

func (c *choices) fits(f *spec.Field, text string) bool {
	return f.Fits(text) && (c.lengthUnit == unitPoints || f.MaxLen == 0 || c.length(text) <= f.MaxLen)
}

// hidesAgents reports whether a key finds only the agents that it created.
func (c *choices) hidesAgents() bool { return c.agentOfAnotherKey == http.StatusNotFound }

// withoutBYOK is the answer to a message to a byok agent whose configuration was
// cleared; nil lets the message through.
func (c *choices) withoutBYOK() *failure {
	if c.byokCleared == http.StatusOK {
		return nil
	}
	f := byokNotConfigured(spec.SendMessage, spec.LLMMode)
	f.status = c.byokCleared
	return f
}

// clearedNothing is the answer to clearing BYOK where none is set; nil is success.
func (c *choices) clearedNothing() *failure {
	if c.clearNothing == http.StatusOK {
		return nil
	}
	return nothingStored
}

// limitComesBefore reports whether a spent limit on requests refuses a call
// before its flaw does.
func (c *choices) limitComesBefore(flaw *failure) bool {
	switch flaw.status {
	case http.StatusBadRequest:
		return c.limitBeforeBody
	case http.StatusForbidden:
		return c.limitBeforePermission
	}
	return true
}

// spendsThough reports whether a call with a flaw spends a request.
func (c *choices) spendsThough(flaw *failure) bool {
	spends, asked := c.requestsSpend[strconv.Itoa(flaw.status)]
	return spends || !asked
}
