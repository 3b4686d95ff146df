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

var (
	oneCall  = Spend{Requests: 1}
	withNew  = Spend{Requests: 2, Creations: 1} // a call, and one that creates the agent for it
	patching = at("PATCH", "/v1/agents")
)

var valueQuestions = []question{
	{
		id: "status", ask: "What does GET /v1/status say of the service?", costs: oneCall, find: statusValues,
		fake: map[string]any{"service": "agent-messaging-fake", "version": "v1", "mode": "preview"},
	},
	{
		id: "error_names", ask: "Which values has error?", costs: Spend{Requests: 12}, find: errorNames,
		fake: map[string]any{
			"bad_request": "bad_request", "unauthorized": "unauthorized", "payment_required": "payment_required",
			"forbidden": "forbidden", "not_found": "not_found", "method_not_allowed": "method_not_allowed",
			"byok_not_configured": "byok_not_configured", "byok_unavailable": "byok_unavailable",
		},
	},
	{
		id: "reason", ask: "Does a 400 say in reason what is wrong?", fake: true, costs: oneCall,
		find: func(p *probe) any { return p.want(p.call(wrongAgent), 400).at("reason") != nil },
	},
	{
		id: "unknown_method", ask: "Which status has a method that a path does not have?", fake: 405, costs: oneCall,
		find: func(p *probe) any { return p.status(p.call(patching), 404, 405) },
	},
	{
		id: "path_before_key", ask: "Is an unknown path answered 404 without a key too?", fake: true, costs: oneCall,
		find: func(p *probe) any { return p.either(p.by(p.keyless(), at("GET", "/v1/nothing")), 404, 401) },
	},
	{
		id: "body_before_agent", ask: "Is a wrong body answered 400 before an unknown agent 404?", fake: true, costs: oneCall,
		find: func(p *probe) any { return p.either(p.call(sendMessage.of(noAgent).with(`{}`)), 400, 404) },
	},
	{
		id: "times", ask: "Which form have times?", fake: "rfc3339", costs: withNew,
		find: func(p *probe) any { return timeForm(p.text(p.call(readAgent.of(p.anAgent())), "created_at")) },
	},
}

var bodyQuestions = []question{
	accepts("unknown_members", "Are unknown members of a message accepted?", `{"text":"Hello","mood":"good"}`),
	accepts("null_members", "Is null for a member accepted, as if it were absent?", `{"text":"Hello","user_ref":null}`),
	accepts("duplicate_members", "Is a member that is there twice accepted?", `{"text":"Hello","text":"Hello"}`),
	accepts("other_case_members", "Is a member in another case accepted?", `{"Text":"Hello"}`),
	accepts("behind_body", "Is anything behind the JSON document accepted?", `{"text":"Hello"} x`),
	{
		id: "content_type", ask: "Is a Content-Type other than JSON accepted?", fake: false, costs: withNew,
		find: func(p *probe) any {
			id := p.anAgent()
			return p.accepted(p.by(p.with("Content-Type", "text/plain"), sendMessage.of(id)))
		},
	},
	{
		id: "length_unit", ask: "What does a bound on a text count?", fake: "code points",
		costs: Spend{Requests: 2, Creations: 2}, find: lengthUnit,
	},
	{
		id: "metadata_cap", ask: "How many characters of compact JSON may metadata have?", fake: 4096,
		costs: Spend{Requests: 32, Creations: 12}, find: metadataCap,
	},
}

var stateQuestions = []question{
	{
		id: "agent_of_another_key", ask: "Which status has an agent for another key?", fake: 404,
		costs: withNew, needs: []need{needSecondKey},
		find: func(p *probe) any {
			id := p.anAgent()
			return p.status(p.by(p.another(), readAgent.of(id)), 404, 200)
		},
	},
	{
		id: "clear_nothing", ask: "Which status has DELETE /v1/byok with nothing stored?", fake: 200, costs: Spend{Requests: 3},
		find: func(p *probe) any {
			p.nothingStored()
			return p.status(p.call(clearBYOK), 200, 404)
		},
	},
	{
		id: "sms_status", ask: "Which SMS status does each mode lead to?", costs: Spend{Requests: 4, Creations: 4}, find: smsOfModes,
		fake: map[string]any{"none": "disabled", "sandbox": "active", "managed": "needs_compliance", "byo_twilio": "needs_setup"},
	},
	{
		id: "creation_stores_key", ask: "Is llm.api_key of a creation stored as PUT /v1/byok would store it?", fake: true,
		costs: Spend{Requests: 5, Creations: 1, BYOKSets: 1},
		find: func(p *probe) any {
			p.nothingStored()
			p.want(p.call(keyedAgent), 200)
			x := p.want(p.call(getBYOK), 200)
			p.call(clearBYOK)
			p.shown = x
			return x.at("byok") != nil
		},
	},
	{
		id: "byok_cleared", ask: "Which status has a message to a byok agent after BYOK was cleared?", fake: 400,
		costs: Spend{Requests: 5, Creations: 1, BYOKSets: 1},
		find: func(p *probe) any {
			p.want(p.call(setBYOK), 200)
			id := p.text(p.want(p.call(byokAgent), 200), "agent_id")
			p.want(p.call(clearBYOK), 200)
			return p.status(p.call(sendMessage.of(id)), 400, 200, 404)
		},
	},
}

// accepts asks whether a message with that body is accepted.
func accepts(id, ask, body string) question {
	return question{id: id, ask: ask, fake: false, costs: withNew, find: func(p *probe) any {
		return p.accepted(p.call(sendMessage.of(p.anAgent()).with(body)))
	}}
}

func (p *probe) accepted(x exchange) bool { return p.either(x, 200, 400) }

func statusValues(p *probe) any {
	x := p.want(p.call(getStatus), 200)
	return map[string]any{"service": p.name(x, "service"), "version": p.name(x, "version"), "mode": p.name(x, "mode")}
}

// errorNames provokes each error that the target lets it provoke.
func errorNames(p *probe) any {
	names := map[string]any{}
	note := func(name string, x exchange, status int) { names[name] = p.name(p.want(x, status), "error") }
	note("bad_request", p.call(wrongAgent), 400)
	note("unauthorized", p.by(p.keyless(), getStatus), 401)
	note("not_found", p.call(readNobody), 404)
	if x := p.call(patching); x.status == 405 {
		note("method_not_allowed", x, 405)
	}
	if p.want(p.call(getBYOK), 200).at("byok") == nil {
		note("byok_not_configured", p.call(byokWarmUp), 409)
	}
	if can := p.target.Abilities; can != nil {
		note("payment_required", p.by(p.issued("free", true), getStatus), 402)
		note("forbidden", p.by(p.issued("preview", false), getBYOK), 403)
		can.SetBYOKAvailable(false)
		note("byok_unavailable", p.call(setBYOK), 503)
		can.SetBYOKAvailable(true)
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

// lengthUnit sends a text that has one length in code points, and others in
// bytes and UTF-16 units.
func lengthUnit(p *probe) any {
	fits := func(one string) bool {
		return p.accepted(p.call(createAgent.with(`{"customer_ref":"` + strings.Repeat(one, 200) + `"}`)))
	}
	switch {
	case fits("😀"):
		return "code points"
	case fits("é"):
		return "UTF-16 units"
	default:
		return "bytes"
	}
}

func smsOfModes(p *probe) any {
	statuses := map[string]any{}
	for _, mode := range []string{"none", "sandbox", "managed", "byo_twilio"} {
		statuses[mode] = p.name(p.want(p.call(createAgent.with(`{"sms":{"mode":"`+mode+`"}}`)), 200), "sms.status")
	}
	return statuses
}

// metadataCap searches the largest size that is accepted. A call that is
// refused costs no creation, so it looks nearer to the upper end: at most
// eleven of the calls create an agent.
func metadataCap(p *probe) any {
	fits := func(n int) bool { return p.accepted(p.call(createAgent.with(metadataOf(n, "")))) }
	low, high := 8, 4096
	if fits(4096) { // the fake's cap, which spares the search where it is the answer
		if low, high = 4096, 1<<16; !fits(4097) {
			return low
		}
	}
	for high-low > 1 && p.unclear == nil {
		if middle := low + max(1, (high-low)*2/3); fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
