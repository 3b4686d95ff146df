package observe

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// question is a question that the interface leaves open.
type question struct {
	id   string
	ask  string // in words
	fake any    // this project's answer
	// costs bounds what find spends on a target with the limits of a preview key.
	// If fillsMinute is set, a larger limit takes more requests.
	costs       Spend
	fillsMinute bool
	// find makes the calls of Run and returns the answer, or nil if there is no clear
	// one. It gives the probe the answers to the questions of also. A question without
	// find is in the also of another.
	find  func(p *probe) any
	needs need
	also  []string
	// read returns what one answer says by itself, whoever made the call and for what
	// reason; nil if it says nothing. The members of objects from several calls make one
	// answer. A Watcher reads every call that passes. Without read, what a call
	// means depends on the calls before it.
	read func(x rawcall.Exchange) any
}

// need is a thing that a question needs from its target besides a key.
type need int

const (
	secondKey need = 1 + iota
	abilities
)

func (q question) ids() []string { return append([]string{q.id}, q.also...) }

// has reports whether all questions that q answers have an answer.
func (o *Observation) has(q question) bool {
	return !slices.ContainsFunc(q.ids(), func(id string) bool { return o.Decisions[id].Answer == nil })
}

// questions are all that Run asks, in this order. The ids are those of the
// fake's decisions.
var questions = slices.Concat(valueQuestions, bodyQuestions, stateQuestions, limitQuestions, keyQuestions)

var (
	patching = rawcall.At("PATCH", "/v1/agents")
	one      = Spend{Requests: 1}
	oneAgent = Spend{Requests: 2, Creations: 1}
)

var valueQuestions = []question{
	{id: "status", ask: "What does GET /v1/status say of the service?", costs: one,
		find: each(200, rawcall.GetStatus), read: readStatus,
		fake: map[string]any{"service": "agent-messaging-fake", "version": "v1", "mode": "preview"}},
	{id: "error_names", ask: "Which values has error?", costs: Spend{Requests: 12}, find: errorNames, read: readErrorName, fake: map[string]any{
		"bad_request": "bad_request", "unauthorized": "unauthorized", "payment_required": "payment_required",
		"forbidden": "forbidden", "not_found": "not_found", "method_not_allowed": "method_not_allowed",
		"byok_not_configured": "byok_not_configured", "byok_unavailable": "byok_unavailable",
	}},
	{id: "reason", ask: "Does a 400 say in reason what is wrong?", fake: true, costs: one,
		find: each(400, rawcall.WrongAgent), read: readReason},
	{id: "unknown_method", ask: "Which status has a method that a path does not have?", fake: 405, costs: one,
		find: func(p *probe) any { return p.take(patching, 404, 405).Status }},
	oneCall("path_before_key", "Is an unknown path answered 404 without a key too?", true, rawcall.At("GET", "/v1/nothing").Keyless(), 404, 401),
	oneCall("body_before_agent", "Is a wrong body answered 400 before an unknown agent 404?", true,
		rawcall.SendMessage.Of(rawcall.NoAgent).With(`{}`), 400, 404),
	{id: "times", ask: "Which form have times?", fake: "rfc3339", costs: oneAgent,
		find: each(200, rawcall.ReadAgent), read: readTimes},
}

var bodyQuestions = []question{
	accepts("unknown_members", "Are unknown members of a message accepted?", `{"text":"Hello","mood":"good"}`),
	accepts("null_members", "Is null for a member accepted, as if it were absent?", `{"text":"Hello","user_ref":null}`),
	accepts("duplicate_members", "Is a member that is there twice accepted?", `{"text":"Hello","text":"Hello"}`),
	accepts("other_case_members", "Is a member in another case accepted?", `{"Text":"Hello"}`),
	accepts("behind_body", "Is anything behind the JSON document accepted?", `{"text":"Hello"} x`),
	oneCall("content_type", "Is a Content-Type other than JSON accepted?", false,
		rawcall.SendMessage.WithHeader("Content-Type", rawcall.Always("text/plain")), 200, 400),
	{id: "length_unit", ask: "What does a bound on a text count?", fake: "code points", costs: Spend{Requests: 2, Creations: 2}, find: lengthUnit},
	{id: "metadata_cap", ask: "How many characters of compact JSON may metadata have?", fake: 4096,
		costs: Spend{Requests: 32, Creations: 12}, find: metadataCap},
}

var stateQuestions = []question{
	{id: "agent_of_another_key", ask: "Which status has an agent for another key?", fake: 404, costs: oneAgent, needs: secondKey,
		find: func(p *probe) any {
			p.agent(rawcall.Key{})
			p.Last = p.Agents[rawcall.Key{}]
			return p.take(rawcall.ReadAgent.By(rawcall.Another), 404, 200).Status
		}},
	{id: "clear_nothing", ask: "Which status has DELETE /v1/byok with nothing stored?", fake: 200, costs: Spend{Requests: 3},
		find: func(p *probe) any {
			p.nothingStored()
			return p.take(rawcall.ClearBYOK, 200, 404).Status
		}},
	{id: "sms_status", ask: "Which SMS status does each mode lead to?", costs: Spend{Requests: 4, Creations: 4}, read: readSMS,
		find: each(200, smsAgent("none"), smsAgent("sandbox"), smsAgent("managed"), smsAgent("byo_twilio")),
		fake: map[string]any{"none": "disabled", "sandbox": "active", "managed": "needs_compliance", "byo_twilio": "needs_setup"}},
	{id: "creation_stores_key", ask: "Is llm.api_key of a creation stored as PUT /v1/byok would store it?", fake: true,
		costs: Spend{Requests: 5, Creations: 1, BYOKSets: 1},
		find: func(p *probe) any {
			p.nothingStored()
			p.take(rawcall.KeyedAgent, 200)
			x := p.take(rawcall.GetBYOK, 200)
			p.patient(rawcall.ClearBYOK, 200)
			p.shown = x
			return x.At("byok") != nil
		}},
	{id: "byok_cleared", ask: "Which status has a message to a byok agent after BYOK was cleared?", fake: 400,
		costs: Spend{Requests: 4, Creations: 1, BYOKSets: 1},
		find: func(p *probe) any {
			p.take(rawcall.SetBYOK, 200)
			p.take(rawcall.BYOKAgent, 200)
			p.take(rawcall.ClearBYOK, 200)
			answer := p.take(rawcall.SendMessage, 400, 200, 404).Status
			p.Agents = map[rawcall.Key]string{} // the others want an agent that answers
			return answer
		}},
}

// keyQuestions need keys of other kinds, or spend a key's whole day. Abilities
// issue these keys.
var keyQuestions = []question{
	{id: "permission_before_body", ask: "Is a wrong body of PUT /v1/byok answered 403 where the key may not?", fake: true, costs: one, needs: abilities,
		find: func(p *probe) any { return p.yes(rawcall.SetBYOK.With(`{`).By(rawcall.Undashboard), 403, 400) }},
	{id: "limit_before_permission", ask: "Is a call that the key may not make answered 429 where the limit on requests is spent?", fake: true,
		costs: Spend{Requests: 150, Creations: 1}, needs: abilities,
		find: func(p *probe) any {
			p.agent(rawcall.Undashboard)
			p.wait(minute)
			p.until(140, rawcall.ReadAgent.By(rawcall.Undashboard))
			return p.yes(rawcall.SetBYOK.By(rawcall.Undashboard), 429, 403)
		}},
	{id: "store_down_first", ask: "Is warm-up in byok mode answered 503 where BYOK is not available and nothing is stored?", fake: true,
		costs: one, needs: abilities,
		find: func(p *probe) any {
			p.target.Abilities.SetBYOKAvailable(false)
			defer p.target.Abilities.SetBYOKAvailable(true)
			return p.yes(rawcall.BYOKWarmUp.By(rawcall.Third), 503, 409)
		}},
	{id: "other_limit_names", ask: "Which limit_key have the other limits?", costs: Spend{Requests: 1300, Creations: 70, BYOKSets: 6}, needs: abilities,
		find: otherLimitNames, fake: map[string]any{
			"ip_minute": "ip_minute", "key_day": "key_day", "agent_create_key_day": "agent_create_key_day",
			"agent_create_ip_minute": "agent_create_ip_minute", "byok_set_key_hour": "byok_set_key_hour",
		}},
}

// oneCall makes a question that the status of one call answers: yes or no.
func oneCall(id, words string, fake bool, c rawcall.Call, yes, no int) question {
	q := question{id: id, ask: words, fake: fake, costs: one, find: func(p *probe) any { return p.yes(c, yes, no) }}
	if c.OfAgent() {
		q.costs = oneAgent
	}
	return q
}

// accepts makes a question whether a message with that body is accepted, which
// the fake does not.
func accepts(id, words, body string) question {
	return oneCall(id, words, false, rawcall.SendMessage.With(body), 200, 400)
}

// each makes calls that are answered with status, and joins what the question reads
// in their answers.
func each(status int, calls ...rawcall.Call) func(p *probe) any {
	return func(p *probe) (answer any) {
		for _, c := range calls {
			answer = join(answer, p.asked.read(p.take(c, status)))
		}
		return answer
	}
}

// join adds the members of an object to an object that it may change. Any other
// answer replaces the one before.
func join(answer, more any) any {
	members, isObject := answer.(map[string]any)
	others, areObject := more.(map[string]any)
	switch {
	case more == nil:
		return answer
	case !isObject || !areObject:
		return more
	}
	maps.Copy(members, others)
	return members
}

// errorNames provokes each error that the target lets it provoke.
func errorNames(p *probe) (names any) {
	note := func(c rawcall.Call, statuses ...int) { names = join(names, readErrorName(p.take(c, statuses...))) }
	note(rawcall.WrongAgent, 400)
	note(rawcall.GetStatus.Keyless(), 401)
	note(rawcall.ReadNobody, 404)
	note(patching, 405, 404)
	if p.take(rawcall.GetBYOK, 200).At("byok") == nil {
		note(rawcall.BYOKWarmUp, 409)
	}
	if p.target.Abilities != nil {
		note(rawcall.GetStatus.By(rawcall.Unpaid), 402)
		note(rawcall.GetBYOK.By(rawcall.Undashboard), 403)
		p.target.Abilities.SetBYOKAvailable(false)
		defer p.target.Abilities.SetBYOKAvailable(true)
		note(rawcall.SetBYOK, 503)
	}
	return names
}

// labelAt returns a member that is a short name, and nil for any other.
func labelAt(x rawcall.Exchange, path string) any {
	if text, _ := x.At(path).(string); label.MatchString(text) {
		return text
	}
	return nil
}

// object is an answer with the members that are known, and nil without any.
func object(members map[string]any) any {
	maps.DeleteFunc(members, func(name string, v any) bool { return name == "" || v == nil })
	if len(members) == 0 {
		return nil
	}
	return members
}

func readStatus(x rawcall.Exchange) any {
	if x.Name != rawcall.GetStatus.Name || x.Status != http.StatusOK {
		return nil
	}
	return object(map[string]any{"service": labelAt(x, "service"), "version": labelAt(x, "version"), "mode": labelAt(x, "mode")})
}

// causes are the statuses that have one cause only.
var causes = map[int]string{
	401: "unauthorized", 402: "payment_required", 403: "forbidden", 405: "method_not_allowed", 409: "byok_not_configured", 503: "byok_unavailable",
}

// readErrorName names the errors that have one cause only.
func readErrorName(x rawcall.Exchange) any {
	name := causes[x.Status]
	switch {
	case x.Status == http.StatusOK:
		return nil
	case x.Status == http.StatusNotFound && x.Name == rawcall.ReadAgent.Name:
		name = "not_found"
	case refusesBody(x):
		name = "bad_request"
	}
	return object(map[string]any{name: labelAt(x, "error")})
}

// refusesBody reports whether a 400 can only mean that the body is wrong: it neither
// lacks a provider key nor offers a wrong one.
func refusesBody(x rawcall.Exchange) bool {
	sent := x.Call.Body
	return x.Status == http.StatusBadRequest && x.Name != rawcall.SendMessage.Name && !strings.Contains(sent, `"byok"`) && !strings.Contains(sent, `"api_key"`)
}

func readReason(x rawcall.Exchange) any {
	if !refusesBody(x) {
		return nil
	}
	return x.At("reason") != nil
}

// readTimes names the form of a time. A number from 100,000,000,000 on is
// milliseconds: as seconds it would be after the year 5000.
func readTimes(x rawcall.Exchange) any {
	text, _ := x.At("created_at").(string)
	if text == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	_, offset := at.Zone()
	number, notNumber := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && offset == 0:
		return "rfc3339"
	case err == nil:
		return "rfc3339 with an offset"
	case notNumber == nil && number >= 1e11:
		return "unix milliseconds"
	case notNumber == nil:
		return "unix seconds"
	default:
		return "unknown"
	}
}

func smsAgent(mode string) rawcall.Call {
	return rawcall.CreateAgent.With(`{"sms":{"mode":"` + mode + `"}}`)
}

func readSMS(x rawcall.Exchange) any {
	status := map[string]string{rawcall.CreateAgent.Name: "sms.status", rawcall.EnableSMS.Name: "status"}[x.Name]
	if status == "" || x.Status != http.StatusOK {
		return nil
	}
	var sent struct {
		Mode string
		SMS  struct{ Mode string }
	}
	_ = json.Unmarshal([]byte(x.Call.Body), &sent) // a body that is not JSON asks for no mode
	return object(map[string]any{cmp.Or(sent.SMS.Mode, sent.Mode): labelAt(x, status)})
}

func (p *probe) fits(body string) bool { return p.yes(rawcall.CreateAgent.With(body), 200, 400) }

// lengthUnit sends texts that have one length in code points, and others in
// UTF-16 units and bytes, or in bytes alone.
func lengthUnit(p *probe) any {
	for _, t := range []struct{ char, unit string }{{"😀", "code points"}, {"é", "UTF-16 units"}} {
		if p.fits(`{"customer_ref":"` + strings.Repeat(t.char, 200) + `"}`) {
			return t.unit
		}
	}
	return "bytes"
}

// metadataCap searches the largest size that is accepted, from 7 characters,
// {"a":1}, to 65,536. A call that is refused costs no creation, so it looks nearer
// to the upper end: at most eleven of the calls create an agent.
func metadataCap(p *probe) any {
	const least, most = 7, 1 << 16
	fits := func(n int) bool { return p.fits(rawcall.Metadata(n, "")) }
	low, high := least-1, 4096
	if fits(4096) { // the fake's cap, which spares the search where it is the answer
		if low, high = 4096, most+1; !fits(4097) {
			return low
		}
		if fits(most) {
			p.bound("metadata_cap", most, 0)
			p.fail("the cap is larger than the search goes")
		}
	}
	for high-low > 1 {
		if middle := low + max(1, (high-low)*2/3); fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	if low < least {
		p.bound("metadata_cap", 0, low)
		p.fail("the cap is smaller than the search goes")
	}
	return low
}
