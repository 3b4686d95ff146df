package contract

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// agents checks the creation and the reading of agents.
func (s *suite) agents() {
	ofCustomer := createAgent.with(`{"customer_ref":"customer-1"}`)
	s.add("4.6/empty-object", "The body may be an empty object because all members are optional.",
		createAgent.with(`{}`).is(200).holds("status", "active"))
	s.add("2.3/every-member", "Every top-level field is optional.",
		createAgent.with(`{
			"system_prompt": "Be brief.", "customer_ref": "crm: 42/anna@host.example", "metadata": {"team": "a", "n": [1, null]},
			"sms": {"mode": "none"}, "llm": {"mode": "hosted", "tier": "smart", "model": "m-1", "label": "work"}
		}`).is(200))
	s.addRows("2.3/llm-optional", "llm members (all optional, no additional properties)", createAgent, 200, row{"empty", rawcall.LLM("")})
	s.add("4.7/read", readAgent.Rule.Sentence,
		readAgent.is(200).check(ownAgent))
	s.add("4.7/created-at-stays", readAgent.Rule.Sentence,
		createAgent.given(200), readAgent.is(200), wait(time.Second), repeat(2, sendMessage.given(200)), enableSMS.given(200), sendMessage.given(200),
		readAgent.is(200).holds("created_at", same))
	s.add("1/ids-differ", "The service creates an agent for the caller and returns its identifier.",
		ofCustomer.is(200), ofCustomer.is(200).holds("agent_id", differs), readAgent.is(200).check(ownAgent))
	s.add("5/agents-of-any-key", dashboardNeeded, group(
		createAgent.is(200), readAgent.is(200), sendMessage.is(200), enableSMS.is(200)).by(notDashboard))
	s.add("7/unknown-among-agents", condition(404).Sentence,
		createAgent.given(200), readUnknownAgent.is(404), sendMessage.ofUnknownAgent().is(404), enableSMS.ofUnknownAgent().is(404))
	for _, e := range []step{readAgent, sendMessage, enableSMS} {
		s.add("7/agent-unknown/"+e.Name, condition(404).Sentence, e.ofUnknownAgent().is(404))
	}
}

// agentDecisions checks what the fake decides about agents.
func (s *suite) agentDecisions() {
	for _, e := range []step{readAgent, sendMessage, enableSMS} {
		s.add("fake/agent-of-another-key/"+e.Name, "who sees an agent: the key that created it; any other key gets 404",
			createAgent.given(200).by(another), e.is(404).by(third), e.is(200).by(another))
	}
	s.add("fake/read-after-creation", "an agent stays active; ids, times: RFC 3339 UTC",
		createAgent.given(200),
		readAgent.is(200).holds("status", "active").holds("created_at", isUTC).holds("updated_at", isUTC).check(
			func(a answer) string {
				return problemUnless(!timeOf(a.At("updated_at")).Before(timeOf(a.At("created_at"))), "updated before it was created")
			}))
	s.add("fake/updated-at", "enabling SMS moves updated_at, a message does not; nothing moves created_at; all go by the clock of the limits",
		createAgent.given(200), readAgent.given(200), wait(time.Hour),
		sendMessage.given(200), readAgent.is(200).holds("updated_at", same), enableSMS.given(200),
		readAgent.is(200).holds("created_at", same).holds("updated_at", later(time.Hour)),
		createAgent.given(200), readAgent.is(200).holds("created_at", later(time.Hour)))
	s.add("fake/ids-in-order", "ids: agent_000001, trace_000001 in order",
		createAgent.is(200).holds("agent_id", matches(`^agent_\d{6}$`)).holds("trace_id", matches(`^trace_\d{6}$`)),
		createAgent.is(200).holds("agent_id", follows).holds("trace_id", follows))
}

// ownAgent wants the agent that the calls are about.
func ownAgent(a answer) string { return a.holds("agent_id", a.agent) }

// sms checks the status of an SMS channel after each mode, which this project has
// decided. Only an active channel has a phone number.
func (s *suite) sms() {
	const (
		creation = "SMS at creation: none: disabled; sandbox: active; managed: needs_compliance; byo_twilio: needs_setup; absent: no sms member"
		enabling = "enabling uses the same table; phone number once active"
	)
	s.addRows("4.9/mode", "The value none is not accepted here.", enableSMS, 400, row{"none-refused", `{"mode":"none"}`})
	s.add("4.9/one-agent", "Enables SMS for the agent (a scaffold).",
		readAgent.given(200), createAgent.given(200).by(another), enableSMS.given(200).by(another), readAgent.is(200).holds("sms.status", same))
	s.add("fake/sms-absent", creation, createAgent.is(200).holds("sms", nil), readAgent.is(200).holds("sms", nil))
	for _, c := range []struct {
		mode, status string
		phone        any
	}{
		{mode: "none", status: "disabled"}, // accepted only at creation
		{mode: "sandbox", status: "active", phone: matches(`.`)},
		{mode: "managed", status: "needs_compliance"},
		{mode: "byo_twilio", status: "needs_setup"},
	} {
		mode := `{"mode":"` + c.mode + `"}`
		read := readAgent.is(200).holds("sms.status", c.status).holds("sms.phone_number", c.phone)
		s.add("fake/sms-created/"+c.mode, creation,
			createAgent.with(`{"sms":`+mode+`}`).is(200).holds("sms.status", c.status), read)
		if c.mode != "none" {
			s.add("fake/sms-enabled/"+c.mode, enabling,
				createAgent.with(`{"sms":{"mode":"sandbox"}}`).given(200), enableSMS.with(mode).is(200).holds("status", c.status), read)
		}
	}
}

// metadataCap is this project's cap on metadata, which the interface does not show.
const metadataCap = 4096

// metadata checks metadata and, with Target.Decisions, its cap.
func (s *suite) metadata() {
	capped := fmt.Sprintf("metadata cap: %d characters of compact JSON", metadataCap)
	s.addRows("2.3/metadata", "metadata | object | any properties", createAgent, 200,
		row{"empty", `{"metadata":{}}`},
		row{"null-member", `{"metadata":{"a":null}}`},
		row{"nested", `{"metadata":{"a":{"b":[1,2.5,true,null,"x",{"c":{}}]},"":"empty name"}}`},
		row{"names-of-other-members", `{"metadata":{"llm":1,"sms":2,"api_key_hint":"x"}}`})
	s.addRows("fake/metadata-cap", capped, createAgent, 200,
		row{"at", strings.ReplaceAll(rawcall.Metadata(metadataCap, ""), "x", "é")},
		row{"at-with-space", rawcall.Metadata(metadataCap, strings.Repeat(" ", 500))})
	s.addRows("fake/metadata-cap", capped, createAgent, 400, row{"over", rawcall.Metadata(metadataCap+1, "")})
}

// messages checks which messages are accepted, and the replies to them.
func (s *suite) messages() {
	one, two := sendMessage.with(`{"text":"one"}`), sendMessage.with(`{"text":"two"}`)
	s.add("4.8/reply", sendMessage.Rule.Sentence, sendMessage.is(200))
	s.addRows("2.5/accepted", "user_ref (string, optional, reserved for future multi-user routing)", sendMessage, 200,
		row{"user_ref", `{"text":"Hello","user_ref":"user 1` + strings.Repeat("x", 201) + `"}`},
		row{"any-script", `{"text":"Grüße 你好 😀 \u00e9 \ud83d\ude00 \n\t\""}`})
	s.add("fake/reply-fixed", "default reply: a fixed function of the text",
		one.is(200), one.is(200).holds("reply_text", same), two.is(200).holds("reply_text", differs))
}

// byok checks that a configuration is stored, read and cleared.
func (s *suite) byok() {
	const sets = "Sets BYOK for the calling API key."
	full := setBYOK.with(byokBody(fullMembers))
	s.add("4.4/set-read-clear", sets,
		full.is(200).holdsBYOK("anthropic", "https://gateway.example/v1", "m-1"),
		getBYOK.is(200).holdsBYOK("anthropic", "https://gateway.example/v1", "m-1").holds("byok.fingerprint", same), clearBYOK.given(200), byokIsNull)
	s.add("4.4/set-again", sets, setBYOK.given(200), full.is(200), getBYOK.is(200).holds("byok.provider", "anthropic"))
	// The bounds of llm.model and llm.label (interface 8.4) do not hold here.
	s.addRows("4.4/accepted", "model (string, optional), label (string, optional)", setBYOK, 200,
		row{"longer-than-in-llm", byokBody(`"model":"` + strings.Repeat("x", 201) + `","label":"` + strings.Repeat("x", 61) + `"`)})
	s.add("4.3/null", "byok (a BYOK configuration per 2.4, or null when none is set)", clearStored, byokIsNull)
	s.add("fake/clear-with-none-set", "DELETE with none set: 200", clearBYOK.is(200), clearBYOK.is(200), byokIsNull)
	s.add("fake/set-replaces-all", "PUT /v1/byok replaces the configuration: what the new body leaves out is gone",
		full.given(200), setBYOK.is(200).holdsBYOK("openai", nil, nil), getBYOK.is(200).holdsBYOK("openai", nil, nil))

	// The cases switch the store of provider keys off and on.
	s.add("4.4/unavailable", "503 (BYOK not available)", clearStored, storeOff, setBYOK.is(503), storeOn, byokIsNull, setBYOK.is(200))
	s.add("fake/stored-key-while-unavailable", "No endpoint ever answers a status that section 4 does not list for it",
		setBYOK.given(200), storeOff, byokCreation.is(200), sendMessage.is(200), getBYOK.is(200), clearBYOK.is(200))
	s.add("fake/creation-while-unavailable", "llm.api_key at creation, BYOK store unavailable: 400",
		storeOff, creationWithKey.is(400), createAgent.is(200))
}

// byokOfAnotherKey checks that a key does not see, change or use the configuration of
// another key.
func (s *suite) byokOfAnotherKey() {
	const bound = "BYOK is bound to the API key that set it."
	mine, still := setBYOK.given(200).by(another), getBYOK.is(200).holds("byok.provider", "openai").by(another)
	s.add("4.6/byok-of-another-key", bound, mine, clearStored, byokCreation.is(400))
	s.add("5/byok-read-of-another-key", bound, mine, byokIsNull.by(third), still)
	s.add("5/byok-cleared-by-another-key", bound, mine, clearStored.by(third), still)
	s.add("5/byok-set-by-another-key", bound, mine, setBYOK.with(byokBody(`"label":"b"`)).is(200).by(third), still)
}

// byokOfCreations checks creations that use the stored provider key, and creations with
// llm.api_key, which this project's decision stores.
func (s *suite) byokOfCreations() {
	const (
		earlier = "With llm.mode byok, the caller either has set BYOK earlier with PUT /v1/byok, or supplies llm.api_key (with llm.provider) in the request."
		stored  = "llm.api_key at creation is stored as PUT /v1/byok would store it, for dashboard-issued and other keys alike"
	)
	s.add("4.6/byok-set-earlier", earlier, setBYOK.given(200), byokCreation.is(200), sendMessage.is(200))
	s.add("4.6/byok-with-key", earlier, clearStored, createAgent.with(rawcall.LLM(`"mode":"byok",`+rawcall.KeyMembers)).is(200), sendMessage.is(200))
	s.add("4.6/byok-neither", earlier, clearStored, byokCreation.is(400))
	s.addRows("2.3/llm.provider-required", "BYOK provider; required when llm.api_key is given", createAgent, 400,
		row{"hosted", rawcall.LLM(`"api_key":"k"`)},
		row{"byok", rawcall.LLM(`"mode":"byok","api_key":"k"`)})

	s.add("fake/creation-stores-key", stored, setBYOK.given(200),
		createAgent.with(rawcall.LLM(`"provider":"anthropic","api_key":"`+rawcall.ProviderKey+`",`+fullMembers)).is(200),
		getBYOK.is(200).holdsBYOK("anthropic", "https://gateway.example/v1", "m-1"), byokWarmUp.is(200))
	s.add("fake/creation-stores-key-of-any-key", stored, creationWithKey.is(200).by(notDashboard), byokCreation.is(200).by(notDashboard))
	s.add("fake/byok-warmup-forbidden-though-configured", stored, creationWithKey.is(200).by(notDashboard), byokWarmUp.is(403).by(notDashboard))
	s.add("7/400-creation-stores-no-byok", invalidBody, clearStored, createAgent.with(rawcall.LLM(rawcall.KeyMembers+`,"tier":"slow"`)).is(400), byokIsNull)
	s.add("fake/byok-agent-after-clear", "byok agent after the config was cleared: message answers 400 byok_not_configured",
		setBYOK.given(200), byokCreation.given(200), clearBYOK.given(200),
		sendMessage.is(400).holds("error", "byok_not_configured"), enableSMS.is(200),
		setBYOK.given(200), sendMessage.is(200))
	s.add("fake/hosted-agent-after-clear", "a hosted agent does not need BYOK", createAgent.given(200), clearBYOK.given(200), sendMessage.is(200))
}

// warmUps checks warm-ups, and the answer of GET /v1/status.
func (s *suite) warmUps() {
	const (
		modes       = "When present: `mode` (string, hosted or byok; default hosted)."
		conflict    = "409 (byok mode, BYOK not configured)"
		unavailable = "503 (BYOK not available)"
		forbidden   = "403 (byok mode with a key that is not dashboard-issued)"
	)
	without := warmUp.with("")
	s.add("4.1/shape", getStatus.Rule.Sentence, getStatus.is(200))
	s.add("4.2/body-absent", "Body is optional.", without.is(200).holds("mode", "hosted"))
	s.add("4.2/mode-absent", modes, warmUp.with(`{}`).is(200).holds("mode", "hosted"))
	s.add("4.2/mode-hosted", modes, warmUp.is(200).holds("mode", "hosted"))
	s.add("4.2/byok-mode", "The byok mode requires BYOK to be configured and a dashboard-issued key.",
		setBYOK.given(200), byokWarmUp.is(200).holds("mode", "byok"))
	s.add("4.2/byok-not-configured", conflict, clearStored, byokWarmUp.is(409))
	s.add("4.2/byok-cleared", conflict, setBYOK.given(200), clearBYOK.given(200), byokWarmUp.is(409))
	s.add("4.2/byok-of-another-key", conflict, setBYOK.given(200).by(another), clearStored, byokWarmUp.is(409))
	s.add("4.2/byok-unavailable", unavailable, setBYOK.given(200), storeOff, byokWarmUp.is(503))
	s.add("4.2/hosted-without-byok", unavailable, storeOff, warmUp.is(200))
	s.add("4.2/byok-forbidden", forbidden, byokWarmUp.is(403).by(notDashboard)) // 403 comes before 409
	s.add("4.2/hosted-allowed", forbidden, without.is(200).by(notDashboard), warmUp.is(200).by(notDashboard))
}

// secrets checks the fingerprint, and the answers that are most likely to show the stored key.
// Beyond that, each answer of every case is checked for the key: see problems.
func (s *suite) secrets() {
	const never = "The plaintext provider key is never returned."
	second := setBYOK.with(strings.Replace(setBYOK.Body, rawcall.ProviderKey, rawcall.ProviderKey+"2", 1))
	s.add("2.4/key-never-returned", never,
		setBYOK.with(byokBody(`"label":"work"`)).given(200), getBYOK.given(200), byokWarmUp.given(200),
		createAgent.with(rawcall.LLM(`"mode":"byok",`+rawcall.KeyMembers)).given(200), readAgent.given(200))
	s.add("2.4/key-not-in-errors", never,
		setBYOK.with(`{"provider":"`+rawcall.ProviderKey+`","api_key":"`+rawcall.ProviderKey+`"}`).given(400),
		setBYOK.with(`{"provider":"openai","api_key":["`+rawcall.ProviderKey+`"]}`).given(400),
		setBYOK.with(`{"provider":"openai","api_key":"`+rawcall.ProviderKey+`"`).given(400),
		createAgent.with(rawcall.LLM(`"api_key":"`+rawcall.ProviderKey+`"`)).given(400),
		createAgent.with(rawcall.LLM(`"provider":"openai","api_key":{"`+rawcall.ProviderKey+`":1}`)).given(400))
	s.add("2.4/fingerprint", "Non-reversible value for debugging or display", setBYOK.is(200).holds("byok.fingerprint", irreversible))
	s.add("fake/fingerprint-tells-keys-apart", "fingerprint is a keyed hash",
		setBYOK.given(200), setBYOK.is(200).holds("byok.fingerprint", same), second.is(200).holds("byok.fingerprint", differs))
	s.add("fake/byok-updated-at", "ids, times: RFC 3339 UTC",
		setBYOK.given(200), wait(time.Hour), setBYOK.is(200).holds("byok.updated_at", later(time.Hour)))
}

// irreversible reports a fingerprint from which a reader could get the provider key or a part
// of it; "" if it finds no way. It looks for parts of the key, for the usual encodings, and for
// a SHA-256 hash without a secret, which a list of known keys reverses. It cannot prove that a
// fingerprint is safe.
func irreversible(fingerprint, _ any) string {
	shown, _ := fingerprint.(string)
	hash := sha256.Sum256([]byte(rawcall.ProviderKey))
	found := shareSubstring(shown, strings.TrimPrefix(rawcall.ProviderKey, "sk-contract"), 4)
	for _, form := range [][]byte{[]byte(rawcall.ProviderKey), hash[:]} {
		found = found || shareSubstring(shown, hex.EncodeToString(form), 8) || shareSubstring(shown, base64.StdEncoding.EncodeToString(form), 8)
	}
	return problemUnless(!found, "it shows a part of the key, or of a form of it that a reader can turn back")
}

// shareSubstring reports whether both texts have some n characters in a row.
func shareSubstring(text, other string, n int) bool {
	for i := range len(other) - n + 1 {
		if strings.Contains(text, other[i:i+n]) {
			return true
		}
	}
	return false
}
