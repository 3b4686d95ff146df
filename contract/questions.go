package contract

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// questions are all that Observe asks, in this order. The ids are those of the
// fake's decisions.
var questions = slices.Concat(valueQuestions, bodyQuestions, stateQuestions, limitQuestions, keyQuestions)

var patching = at("PATCH", "/v1/agents")

var valueQuestions = []question{
	finds("status", "What does GET /v1/status say of the service?",
		map[string]any{"service": "agent-messaging-fake", "version": "v1", "mode": "preview"}, Spend{Requests: 1},
		func(p *probe) any {
			x := p.take(getStatus.is(200))
			return map[string]any{"service": p.name(x, "service"), "version": p.name(x, "version"), "mode": p.name(x, "mode")}
		}),
	finds("error_names", "Which values has error?", map[string]any{
		"bad_request": "bad_request", "unauthorized": "unauthorized", "payment_required": "payment_required",
		"forbidden": "forbidden", "not_found": "not_found", "method_not_allowed": "method_not_allowed",
		"byok_not_configured": "byok_not_configured", "byok_unavailable": "byok_unavailable",
	}, Spend{Requests: 12}, errorNames),
	finds("reason", "Does a 400 say in reason what is wrong?", true, Spend{Requests: 1},
		func(p *probe) any { return p.take(wrongAgent.is(400)).at("reason") != nil }),
	asks("unknown_method", "Which status has a method that a path does not have?", 405, patching.is(404, 405)),
	asks("path_before_key", "Is an unknown path answered 404 without a key too?", true, at("GET", "/v1/nothing").is(404, 401).keyless()),
	asks("body_before_agent", "Is a wrong body answered 400 before an unknown agent 404?", true,
		sendMessage.of(noAgent).with(`{}`).is(400, 404)),
	finds("times", "Which form have times?", "rfc3339", Spend{Requests: 2, Creations: 1},
		func(p *probe) any { return timeForm(p.text(p.take(readAgent.is(200)), "created_at")) }),
}

var bodyQuestions = []question{
	asks("unknown_members", "Are unknown members of a message accepted?", false, accepted(`{"text":"Hello","mood":"good"}`)),
	asks("null_members", "Is null for a member accepted, as if it were absent?", false, accepted(`{"text":"Hello","user_ref":null}`)),
	asks("duplicate_members", "Is a member that is there twice accepted?", false, accepted(`{"text":"Hello","text":"Hello"}`)),
	asks("other_case_members", "Is a member in another case accepted?", false, accepted(`{"Text":"Hello"}`)),
	asks("behind_body", "Is anything behind the JSON document accepted?", false, accepted(`{"text":"Hello"} x`)),
	asks("content_type", "Is a Content-Type other than JSON accepted?", false,
		accepted(`{"text":"Hello"}`).header("Content-Type", always("text/plain"))),
	finds("length_unit", "What does a bound on a text count?", "code points", Spend{Requests: 2, Creations: 2}, lengthUnit),
	finds("metadata_cap", "How many characters of compact JSON may metadata have?", 4096, Spend{Requests: 32, Creations: 12}, metadataCap),
}

var stateQuestions = []question{
	finds("agent_of_another_key", "Which status has an agent for another key?", 404, Spend{Requests: 2, Creations: 1},
		func(p *probe) any {
			p.agent(who{})
			return p.take(readAgent.is(404, 200).by(another)).status
		}, needSecondKey),
	finds("clear_nothing", "Which status has DELETE /v1/byok with nothing stored?", 200, Spend{Requests: 3},
		func(p *probe) any {
			p.nothingStored()
			return p.take(clearBYOK.is(200, 404)).status
		}),
	finds("sms_status", "Which SMS status does each mode lead to?",
		map[string]any{"none": "disabled", "sandbox": "active", "managed": "needs_compliance", "byo_twilio": "needs_setup"},
		Spend{Requests: 4, Creations: 4}, smsOfModes),
	finds("creation_stores_key", "Is llm.api_key of a creation stored as PUT /v1/byok would store it?", true,
		Spend{Requests: 5, Creations: 1, BYOKSets: 1},
		func(p *probe) any {
			p.nothingStored()
			p.take(keyedAgent.is(200))
			x := p.take(getBYOK.is(200))
			p.call(clearBYOK.is(200))
			p.shown = x
			return x.at("byok") != nil
		}),
	asks("byok_cleared", "Which status has a message to a byok agent after BYOK was cleared?", 400,
		setBYOK.is(200), byokAgent.is(200), clearBYOK.is(200), sendMessage.is(400, 200, 404)),
}

func accepted(body string) step { return sendMessage.with(body).is(200, 400) }

func (p *probe) fits(body string) bool { return p.yes(createAgent.with(body).is(200, 400)) }

// errorNames provokes each error that the target lets it provoke.
func errorNames(p *probe) any {
	names := map[string]any{}
	note := func(name string, st step) { names[name] = p.name(p.take(st), "error") }
	note("bad_request", wrongAgent.is(400))
	note("unauthorized", getStatus.is(401).keyless())
	note("not_found", readNobody.is(404))
	if p.call(patching.is(405)).status == 405 {
		names["method_not_allowed"] = p.name(p.shown, "error")
	}
	if p.take(getBYOK.is(200)).at("byok") == nil {
		note("byok_not_configured", byokWarmUp.is(409))
	}
	if p.target.Abilities != nil {
		note("payment_required", getStatus.is(402).by(unpaid))
		note("forbidden", getBYOK.is(403).by(undashboard))
		p.take(storeOff)
		note("byok_unavailable", setBYOK.is(503))
		p.take(storeOn)
	}
	return names
}

// timeForm names the form of a time; a form of its own is unknown.
func timeForm(text string) string {
	at, err := time.Parse(time.RFC3339Nano, text)
	_, offset := at.Zone()
	switch _, number := strconv.ParseFloat(text, 64); {
	case err == nil && offset == 0:
		return "rfc3339"
	case err == nil:
		return "rfc3339 with an offset"
	case number == nil && len(text) > 11:
		return "unix milliseconds"
	case number == nil:
		return "unix seconds"
	default:
		return "unknown"
	}
}

// lengthUnit sends texts that have one length in code points, and others in
// UTF-16 units and bytes, or in bytes alone.
func lengthUnit(p *probe) any {
	for _, t := range []struct{ one, unit string }{{"😀", "code points"}, {"é", "UTF-16 units"}} {
		if p.fits(`{"customer_ref":"` + strings.Repeat(t.one, 200) + `"}`) {
			return t.unit
		}
	}
	return "bytes"
}

func smsOfModes(p *probe) any {
	statuses := map[string]any{}
	for _, mode := range []string{"none", "sandbox", "managed", "byo_twilio"} {
		statuses[mode] = p.name(p.take(createAgent.with(`{"sms":{"mode":"`+mode+`"}}`).is(200)), "sms.status")
	}
	return statuses
}

// metadataCap searches the largest size that is accepted. A call that is
// refused costs no creation, so it looks nearer to the upper end: at most
// eleven of the calls create an agent.
func metadataCap(p *probe) any {
	fits := func(n int) bool { return p.fits(metadataOf(n, "")) }
	low, high := 8, 4096
	if fits(4096) { // the fake's cap, which spares the search where it is the answer
		if low, high = 4096, 1<<16; !fits(4097) {
			return low
		}
	}
	for high-low > 1 {
		if middle := low + max(1, (high-low)*2/3); fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
