package service

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Behavior says what the service does where the interface is silent. It has an answer to
// each question of package decisions, which also has the words of the questions and the
// fake's own answers. The tag of a field is the ID of its question. The zero value cannot
// be used.
//
// A Behavior does not change once a State uses it, so States and goroutines may share
// one.
type Behavior struct {
	// The contents of answers: names, forms and words.
	Status          StatusValues      `json:"status"`
	ErrorNames      map[string]string `json:"error_names"` // by the fake's own names
	Reason          bool              `json:"reason"`      // a 400 says in reason what is wrong
	Times           string            `json:"times"`
	SMSStatus       map[string]string `json:"sms_status"` // by mode
	MinuteLimitName string            `json:"minute_limit_name"`
	WarmUpLimitName string            `json:"warmup_limit_name"`
	OtherLimitNames map[string]string `json:"other_limit_names"` // by the fake's own names

	// The status that answers a call for which the interface lists nothing; carriedOut means
	// that the call is not refused.
	UnknownMethod     int `json:"unknown_method"`
	AgentOfAnotherKey int `json:"agent_of_another_key"`
	ClearNothing      int `json:"clear_nothing"`
	BYOKCleared       int `json:"byok_cleared"`

	// Which refusal is answered if two apply to a call.
	PathBeforeKey         bool `json:"path_before_key"`             // 404 for an unknown path before 401
	BodyBeforeAgent       bool `json:"body_before_agent"`           // 400 before 404
	BodyBeforeOperation   bool `json:"body_before_operation_limit"` // 400 before the 429 of a limit on operations
	LimitBeforeBody       bool `json:"limit_before_body"`           // the 429 of a limit on requests before 400
	LimitBeforePermission bool `json:"limit_before_permission"`     // the 429 of a limit on requests before 403
	PermissionBeforeBody  bool `json:"permission_before_body"`      // 403 before 400
	StoreDownFirst        bool `json:"store_down_first"`            // 503 before 409

	// Bodies: what the service accepts although section 2 does not list it, and how it
	// counts lengths.
	AcceptsUnknown    bool   `json:"unknown_members"`
	AcceptsNull       bool   `json:"null_members"`
	AcceptsDuplicates bool   `json:"duplicate_members"`
	AcceptsOtherCase  bool   `json:"other_case_members"` // names of members in another case
	AcceptsTrailing   bool   `json:"behind_body"`        // anything after the JSON document
	AcceptsOtherType  bool   `json:"content_type"`       // a Content-Type that is not JSON
	LengthUnit        string `json:"length_unit"`
	MetadataCap       int    `json:"metadata_cap"`

	// The effects of an operation besides its answer, and the limits that calls spend.
	CreationStoresKey  bool            `json:"creation_stores_key"`      // llm.api_key is stored for the API key
	OperationsSpend    bool            `json:"refused_operations_spend"` // a call with a wrong body spends the limit of its operation
	RequestsSpend      map[string]bool `json:"refused_requests_spend"`   // which refused calls spend the limits on requests, by status; see callsWithout429
	Windows            string          `json:"windows"`                  // how calls are counted
	ExactRetryAfter    bool            `json:"retry_after"`              // a call passes after exactly that wait; false: the wait is a second too short
	NamesTheLastToOpen bool            `json:"several_limits"`           // a 429 names the limit that opens last; false: the first in interface 8.1
}

// callsWithout429 is the member of RequestsSpend for the calls of endpoints that list no 429:
// GET /v1/status, and reading and clearing BYOK. Its other members are statuses. Calls with
// 401 can spend the limit per address only.
const callsWithout429 = "status"

// StatusValues are the strings of interface 4.1, which shows only their types.
type StatusValues struct {
	Service string `json:"service"`
	Version string `json:"version"`
	Mode    string `json:"mode"`
}

// Bucket reports whether an answer to the question windows is a token bucket, and how many
// calls it saves up. burst is 0 for WindowsBucket, which saves up the limit's maximum, and 10
// for "token bucket of 10". A number with a leading zero or a sign makes no bucket, so that
// each bucket has one name.
func Bucket(windows string) (burst int, isBucket bool) {
	if windows == decisions.WindowsBucket {
		return 0, true
	}
	size, isSized := strings.CutPrefix(windows, decisions.WindowsBucket+" of ")
	burst, _ = strconv.Atoi(size)
	return burst, isSized && burst > 0 && strconv.Itoa(burst) == size
}

// carriedOut is the status in a Behavior for a call that is not refused.
const carriedOut = 200

// statusOf returns the status with which the service refuses a call of an endpoint for a
// reason: the usual status of the kind, or 400 if section 4 does not list that status for
// the endpoint. Without an endpoint it is always the usual status.
func (b *Behavior) statusOf(kind Kind, e *spec.Endpoint) int {
	usual := Kinds[kind].Status
	switch {
	case kind == BYOKNotConfigured && e == spec.SendMessage: // a decision, since 4.8 does not list 409
		return b.BYOKCleared
	case e != nil && !e.Lists(usual):
		return Kinds[BadRequest].Status
	}
	return usual
}

// ErrorName returns the error member of a body: the name that Behavior has for one of the
// fake's own codes. It returns any other code, which a script may ask for, unchanged.
func (b *Behavior) ErrorName(code string) string { return cmp.Or(b.ErrorNames[code], code) }

// LimitName returns the limit_key of a 429 (interface 7), whose values the interface does
// not list; "" for no limit. Two limits may have the same name, because a real service
// may not distinguish them.
func (b *Behavior) LimitName(limit spec.LimitKey) string {
	switch limit {
	case fakenames.WarmUpKeyHour:
		return b.WarmUpLimitName
	case fakenames.KeyMinute:
		return b.MinuteLimitName
	}
	return b.OtherLimitNames[string(limit)]
}

// Length returns the length of a text for the bounds of interface 8.4. The interface does
// not say what a character is.
func (b *Behavior) Length(text string) int {
	switch b.LengthUnit {
	case decisions.UnitBytes:
		return len(text)
	case decisions.UnitUTF16:
		return len(utf16.Encode([]rune(text)))
	}
	return utf8.RuneCountInString(text)
}

// limitComesBefore reports whether a spent limit on requests refuses a call before its
// flaw does. There is a decision only for a wrong body and for a missing permission. The
// limit comes before any other flaw.
func (b *Behavior) limitComesBefore(flaw *Refusal) bool {
	switch flaw.Status {
	case Kinds[BadRequest].Status:
		return b.LimitBeforeBody
	case Kinds[NotDashboard].Status:
		return b.LimitBeforePermission
	}
	return true
}

// spendsDespite reports whether a call with a flaw still spends a request. A call that is
// refused with a status for which there is no decision spends a request.
func (b *Behavior) spendsDespite(flaw *Refusal) bool {
	spends, decided := b.RequestsSpend[strconv.Itoa(flaw.Status)]
	return spends || !decided
}
