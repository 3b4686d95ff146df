// Package decisions lists what the interface document leaves open, with the answers of
// this project's fake. Package fakeserver decides by this list, and package observe asks
// a service the same questions. Both refer to a question by its id. The words and the
// defaults are only here.
package decisions

import (
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
)

// Question is a question that the interface leaves open.
type Question struct {
	ID      string // in options and files, such as metadata_cap
	Text    string // as a person would ask it
	Default any    // the fake's own answer: a bool, an int, a string, or an object
	Allowed []any  // the answers that the fake can give; nil: any value of Default's type
}

// The forms of times and the units of lengths.
const (
	TimesRFC3339, TimesOffset       = "rfc3339", "rfc3339 with an offset"
	TimesSeconds, TimesMilliseconds = "unix seconds", "unix milliseconds"

	UnitPoints, UnitUTF16, UnitBytes = "code points", "UTF-16 units", "bytes"
)

// Bounds of the fake, and of the standalone fake's control interface.
const (
	MetadataCap   = 4096     // characters of compact JSON
	MaxBody       = 1 << 20  // bytes of a request body
	KeptExchanges = 1000     // the fake keeps at least this many of a conversation's newest exchanges
	KeptBody      = 64 << 10 // bytes of a body in a record
)

// How a limit counts calls. Interface 8.1 shows maxima and lengths only.
const (
	WindowsFixed    = "fixed"        // a window starts with its first counted call
	WindowsSliding  = "sliding"      // the calls of the last length count
	WindowsAligned  = "aligned"      // windows start with the clock's minute, hour or day, in UTC
	WindowsWeighted = "weighted"     // aligned; the previous window counts in proportion to its overlap with the last length
	WindowsBucket   = "token bucket" // one more call is allowed each length/max, up to the limit's maximum
)

type object = map[string]any
type list = []any

// named returns the fake's answer to a question about names: an object in which each
// value has its own name.
func named(values ...string) object {
	all := object{}
	for _, name := range values {
		all[name] = name
	}
	return all
}

// All lists all questions.
var All = slices.Concat(Asked, unasked)

// Asked lists the questions that observe asks, in their order.
var Asked = []Question{
	// Answers and their words.
	{"status", "What does GET /v1/status say about the service?", object{"service": "agent-messaging-fake", "version": "v1", "mode": "preview"}, nil},
	{"error_names", "Which values can error have?", named(fakenames.BadRequest, fakenames.Unauthorized, fakenames.PaymentRequired, fakenames.Forbidden,
		fakenames.NotFound, fakenames.MethodNotAllowed, fakenames.BYOKNotConfigured, fakenames.BYOKUnavailable), nil},
	{"reason", "Does a 400 say in reason what is wrong?", true, nil},
	// Unknown paths, the order of checks, and times.
	{"unknown_method", "Which status answers a method that the path does not take?", 405, list{404, 405}},
	{"path_before_key", "Is an unknown path answered 404 without a key too?", true, nil},
	{"body_before_agent", "Is a wrong body answered 400 before an unknown agent 404?", true, nil},
	{"times", "What form do times have?", TimesRFC3339, list{TimesRFC3339, TimesOffset, TimesSeconds, TimesMilliseconds}},
	// Bodies and bounds.
	{"unknown_members", "Are unknown members of a message accepted?", false, nil},
	{"null_members", "Is null for a member accepted, as if it were absent?", false, nil},
	{"duplicate_members", "Is a duplicate member accepted?", false, nil},
	{"other_case_members", "Is a member whose name is in another case accepted?", false, nil},
	{"behind_body", "Is anything after the JSON document accepted?", false, nil},
	{"content_type", "Is a Content-Type other than JSON accepted?", false, nil},
	{"length_unit", "In which unit does a bound count the length of a text?", UnitPoints, list{UnitPoints, UnitUTF16, UnitBytes}},
	{"metadata_cap", "How many characters of compact JSON may metadata have?", MetadataCap, nil},
	// Agents, SMS and provider keys.
	{"agent_of_another_key", "Which status answers a call for the agent of another key?", 404, list{404, 200}},
	{"clear_nothing", "Which status answers DELETE /v1/byok if nothing is stored?", 200, list{200, 404}},
	{"sms_status", "Which SMS status does each mode lead to?", object{
		"none": "disabled", "sandbox": "active", "managed": "needs_compliance", "byo_twilio": "needs_setup",
	}, nil},
	{"creation_stores_key", "Is llm.api_key of a creation stored as PUT /v1/byok would store it?", true, nil},
	{"byok_cleared", "Which status answers a message to a byok agent after BYOK was cleared?", 400, list{400, 404, 200}},
	// Limits.
	{"warmup_limit_name", "What is the limit_key of the limit on warm-ups?", fakenames.WarmUpKeyHour, nil},
	{"refused_operations_spend", "Does a warm-up with a wrong body count against the limit on warm-ups?", false, nil},
	{"body_before_operation_limit", "Is a wrong body answered 400 even if the limit of the operation is spent?", true, nil},
	{"minute_limit_name", "What is the limit_key of the limit on requests in a minute?", fakenames.KeyMinute, nil},
	{"windows", "How does a limit count calls?", WindowsFixed, list{WindowsFixed, WindowsSliding, WindowsAligned, WindowsWeighted, WindowsBucket}},
	{"retry_after", "Does a call go through after exactly the wait that Retry-After names?", true, nil},
	{"several_limits", "If several limits are spent, does the 429 name the one that opens last?", true, nil},
	{"limit_before_body", "Is a wrong body answered 429 if the limit on requests is spent?", true, nil},
	{"refused_requests_spend", "Which refused calls spend the limit on requests?", object{"401": false, "404": true, "400": true, "409": true, "status": false}, nil},
}

// unasked lists the questions that observe cannot answer with calls. They need keys of
// other kinds, a store that is down, or the whole day of a key.
var unasked = []Question{
	{"other_limit_names", "What are the limit_keys of the other limits?",
		named(fakenames.IPMinute, fakenames.KeyDay, fakenames.AgentCreateKeyDay, fakenames.AgentCreateIPMinute, fakenames.BYOKSetKeyHour), nil},
	{"permission_before_body", "Is a wrong body of PUT /v1/byok answered 403 if the key must not use BYOK?", true, nil},
	{"limit_before_permission", "Is a call that the key must not make answered 429 if the limit on requests is spent?", true, nil},
	{"store_down_first", "Is a warm-up in byok mode answered 503 if BYOK is not available and nothing is stored?", true, nil},
}
