package contract

import (
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

func (s *suite) agents() {
	s.rule("4.6/empty-object", "The body may be an empty object because all members are optional.",
		createAgent.with(`{}`).is(200).holds("status", "active"))
	s.rule("2.3/every-member", "Every top-level field is optional.",
		createAgent.with(`{
			"system_prompt": "Be brief.", "customer_ref": "customer-1", "metadata": {"team": "a", "n": [1, null]},
			"sms": {"mode": "none"}, "llm": {"mode": "hosted", "tier": "smart", "model": "m-1", "label": "work"}
		}`).is(200))
	s.rows("2.3/llm-optional", "llm members (all optional, no additional properties)", createAgent, 200, row{"empty", rawcall.LLM("")})
	s.rule("4.7/read", "Response: agent_id, status, created_at, updated_at, trace_id (all required)",
		readAgent.is(200).check(func(a answer) string { return a.holds("agent_id", a.s.Agents[own]) }))
	s.rule("4.7/created-at-stays", "Response: agent_id, status, created_at, updated_at, trace_id (all required)",
		createAgent.is(200), readAgent.is(200), wait(time.Second), sendMessage.is(200), enableSMS.is(200), readAgent.is(200).holds("created_at", same))
	s.rule("1/ids-differ", "The service creates an agent for the caller and returns its identifier.",
		createAgent.is(200), createAgent.is(200).holds("agent_id", differs))
	s.rule("5/agents-of-any-key", dashboardNeeded, repeat(1,
		createAgent.is(200), readAgent.is(200), sendMessage.is(200), enableSMS.is(200)).by(undashboard))
	for _, e := range []step{readAgent, sendMessage, enableSMS} {
		s.rule("7/agent-unknown/"+e.Name, "404 | Not found", e.of(noAgent).is(404))
		s.rule("fake/agent-of-another-key/"+e.Name, "who sees an agent: the key that created it; any other key gets 404",
			createAgent.is(200).by(another), e.is(404).by(third), e.is(200).by(another))
	}

	s.rule("fake/read-after-creation", "an agent stays active; ids, times: RFC 3339 UTC",
		createAgent.is(200),
		readAgent.is(200).holds("status", "active").holds("created_at", isUTC).holds("updated_at", isUTC).check(
			func(a answer) string {
				return unless(!timeOf(a.At("updated_at")).Before(timeOf(a.At("created_at"))), "updated before it was created")
			}))
	s.rule("fake/updated-at", "enabling SMS moves updated_at, a message does not; nothing moves created_at; all go by the clock of the limits",
		createAgent.is(200), readAgent.is(200), wait(time.Hour),
		sendMessage.is(200), readAgent.is(200).holds("updated_at", same), enableSMS.is(200),
		readAgent.is(200).holds("created_at", same).holds("updated_at", later(time.Hour)),
		createAgent.is(200), readAgent.is(200).holds("created_at", later(time.Hour)))
	s.rule("fake/ids-in-order", "ids: agent_000001, trace_000001 in order",
		createAgent.is(200).holds("agent_id", like(`^agent_\d{6}$`)).holds("trace_id", like(`^trace_\d{6}$`)),
		createAgent.is(200).holds("agent_id", follows).holds("trace_id", follows))
}

// sms: which status each mode leads to is decided by this project. An active
// channel has a phone number, and no other has.
func (s *suite) sms() {
	const (
		creation = "SMS at creation: none: disabled; sandbox: active; managed: needs_compliance; byo_twilio: needs_setup; absent: no sms member"
		enabling = "enabling uses the same table; phone number once active"
	)
	s.rows("4.9/mode", "The value none is not accepted here.", enableSMS, 400, row{"none-refused", `{"mode":"none"}`})
	s.rule("fake/sms-absent", creation, createAgent.is(200).holds("sms", nil), readAgent.is(200).holds("sms", nil))
	for _, c := range []struct {
		mode, status string
		phone        any
	}{
		{"none", "disabled", nil}, // at creation only
		{"sandbox", "active", like(`.`)},
		{"managed", "needs_compliance", nil},
		{"byo_twilio", "needs_setup", nil},
	} {
		mode := `{"mode":"` + c.mode + `"}`
		read := readAgent.is(200).holds("sms.status", c.status).holds("sms.phone_number", c.phone)
		s.rule("fake/sms-created/"+c.mode, creation,
			createAgent.with(`{"sms":`+mode+`}`).is(200).holds("sms.status", c.status), read)
		if c.mode != "none" {
			s.rule("fake/sms-enabled/"+c.mode, enabling,
				createAgent.with(`{"sms":{"mode":"sandbox"}}`).is(200), enableSMS.with(mode).is(200).holds("status", c.status), read)
		}
	}
}

// metadata: the cap that the interface does not show is 4096 characters of
// compact JSON on a target that claims the decisions.
func (s *suite) metadata() {
	const capped = "metadata cap: 4096 characters of compact JSON"
	s.rows("2.3/metadata", "metadata | object | any properties", createAgent, 200,
		row{"empty", `{"metadata":{}}`},
		row{"null-member", `{"metadata":{"a":null}}`},
		row{"nested", `{"metadata":{"a":{"b":[1,2.5,true,null,"x",{"c":{}}]},"":"empty name"}}`},
		row{"names-of-other-members", `{"metadata":{"llm":1,"sms":2,"api_key_hint":"x"}}`})
	s.rows("fake/metadata-cap", capped, createAgent, 200,
		row{"at", strings.ReplaceAll(rawcall.Metadata(4096, ""), "x", "é")},
		row{"at-with-space", rawcall.Metadata(4096, strings.Repeat(" ", 500))})
	s.rows("fake/metadata-cap", capped, createAgent, 400, row{"over", rawcall.Metadata(4097, "")})
}

func (s *suite) messages() {
	one, two := sendMessage.with(`{"text":"one"}`), sendMessage.with(`{"text":"two"}`)
	s.rule("4.8/reply", "Response: reply_text (required), warnings (optional array of strings), trace_id (required).", sendMessage.is(200))
	s.rows("2.5/accepted", "user_ref (string, optional, reserved for future multi-user routing)", sendMessage, 200,
		row{"user_ref", `{"text":"Hello","user_ref":"user-1"}`},
		row{"any-script", `{"text":"Grüße 你好 😀 \u00e9 \ud83d\ude00 \n\t\""}`})
	s.rule("fake/reply-fixed", "default reply: a fixed function of the text",
		one.is(200), one.is(200).holds("reply_text", same), two.is(200).holds("reply_text", differs))
}
