package observe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

var (
	patching    = rawcall.At("PATCH", "/v1/agents")
	oneRequest  = Spend{Requests: 1}
	oneCreation = Spend{Requests: 2, Creations: 1}
)

// questions lists the questions in the order in which Run asks them. The ids come from
// decisions.Asked, which has the words. A question that is not listed here is in the
// alsoAnswers of another question.
var questions = []question{
	eachCall("status", readStatus, oneRequest, 200, rawcall.GetStatus),
	{id: "error_names", costs: Spend{Requests: 12}, find: errorNames, read: readErrorName},
	eachCall("reason", readReason, oneRequest, 400, rawcall.BadCreation),
	{id: "unknown_method", costs: oneRequest, find: func(p *probe) { p.answerStatus("unknown_method", patching, 404, 405) }},
	oneCall("path_before_key", rawcall.At("GET", "/v1/nothing").Keyless(), 404, 401),
	oneCall("body_before_agent", rawcall.SendMessage.Of(rawcall.UnknownAgentID).With(`{}`), 400, 404),
	eachCall("times", readTimes, oneCreation, 200, rawcall.ReadAgent),

	accepts("unknown_members", `{"text":"Hello","mood":"good"}`),
	accepts("null_members", `{"text":"Hello","user_ref":null}`),
	accepts("duplicate_members", `{"text":"Hello","text":"Hello"}`),
	accepts("other_case_members", `{"Text":"Hello"}`),
	accepts("behind_body", `{"text":"Hello"} x`),
	oneCall("content_type", rawcall.SendMessage.WithHeader("Content-Type", rawcall.Always("text/plain")), 200, 400),
	{id: "length_unit", costs: Spend{Requests: 2, Creations: 2}, find: lengthUnit},
	{id: "metadata_cap", costs: Spend{Requests: 32, Creations: 12}, find: metadataCap},

	{id: "agent_of_another_key", costs: oneCreation, secondKey: true,
		find: func(p *probe) {
			p.agent() // the second key has none, so its call is about this one
			p.answerStatus("agent_of_another_key", rawcall.ReadAgent.By(rawcall.Another), 404, 200)
		}},
	{id: "clear_nothing", costs: Spend{Requests: 3},
		find: func(p *probe) {
			p.nothingStored()
			p.answerStatus("clear_nothing", rawcall.ClearBYOK, 200, 404)
		}},
	eachCall("sms_status", readSMS, Spend{Requests: 4, Creations: 4}, 200,
		smsAgent("none"), smsAgent("sandbox"), smsAgent("managed"), smsAgent("byo_twilio")),
	{id: "creation_stores_key", costs: Spend{Requests: 5, Creations: 1, BYOKSets: 1},
		find: func(p *probe) {
			p.nothingStored()
			p.mustCall(rawcall.CreationWithKey, 200)
			x := p.mustCall(rawcall.GetBYOK, 200)
			p.callWithRetry(rawcall.ClearBYOK, 200)
			p.answer("creation_stores_key", x.At("byok") != nil, x)
		}},
	{id: "byok_cleared", costs: Spend{Requests: 4, Creations: 1, BYOKSets: 1},
		find: func(p *probe) {
			p.mustCall(rawcall.SetBYOK, 200)
			p.mustCall(rawcall.BYOKCreation, 200)
			p.mustCall(rawcall.ClearBYOK, 200)
			p.answerStatus("byok_cleared", rawcall.SendMessage, 400, 200, 404)
			p.forgetAgent() // later questions need an agent that replies
		}},

	// These questions use up the limit on warm-ups per hour and the key's limit per minute.
	// They start after a time without calls, so that the whole limit is free, however the
	// service counts.
	{id: "warmup_limit_name", find: fillWarmUps,
		alsoAnswers: []string{"refused_operations_spend", "body_before_operation_limit"}, costs: Spend{Requests: 34, Creations: 1, WarmUps: 8}},
	{id: "minute_limit_name", find: fillMinute,
		alsoAnswers: []string{"windows", "retry_after", "several_limits", "limit_before_body"},
		fillsMinute: true, costs: Spend{Requests: 210, Creations: 1, Wait: 4 * time.Minute}},
	{id: "refused_requests_spend", find: spentByRefused,
		fillsMinute: true, costs: Spend{Requests: 124, Creations: 1, Wait: 2 * time.Minute}},
}

// oneCall makes a question that the status of one call answers: yes or no.
func oneCall(id string, c rawcall.Call, yes, no int) question {
	q := question{id: id, costs: oneRequest, find: func(p *probe) {
		x := p.mustCall(c, yes, no)
		p.answer(id, x.Status == yes, x)
	}}
	if c.OfAgent() {
		q.costs = oneCreation
	}
	return q
}

// accepts makes the question whether the service accepts a message with this body.
func accepts(id, body string) question {
	return oneCall(id, rawcall.SendMessage.With(body), 200, 400)
}

// eachCall makes a question that read answers, from calls that must be answered with status.
func eachCall(id string, read func(rawcall.Exchange) any, costs Spend, status int, calls ...rawcall.Call) question {
	return question{id: id, costs: costs, read: read, find: func(p *probe) {
		var answer any
		for _, c := range calls {
			answer = merge(answer, read(p.mustCall(c, status)))
		}
		p.answer(id, answer, p.latest)
	}}
}

// merge adds the members of more to answer if both are objects; it may change answer.
// Otherwise more replaces answer.
func merge(answer, more any) any {
	members, _ := answer.(map[string]any)
	others, _ := more.(map[string]any)
	switch {
	case more == nil:
		return answer
	case members == nil || others == nil:
		return more
	}
	maps.Copy(members, others)
	return members
}

// errorNames provokes each error that it can provoke on the target. If a call gets an
// unexpected answer, which ends the question, errorNames keeps the names that it has
// found.
func errorNames(p *probe) {
	var found any
	defer func() { p.answer("error_names", found, p.latest) }()
	note := func(c rawcall.Call, statuses ...int) { found = merge(found, readErrorName(p.mustCall(c, statuses...))) }
	note(rawcall.BadCreation, 400)
	note(rawcall.GetStatus.Keyless(), 401)
	note(rawcall.ReadUnknownAgent, 404)
	if p.mustCall(rawcall.GetBYOK, 200).At("byok") == nil {
		note(rawcall.BYOKWarmUp, 409, 503)
	}
	note(patching, 405, 404) // last, since no section of the interface documents it, so the answer may end the question
}

// labelAt returns a member that is an identifier; nil for any other text. Names of a
// service and of a limit may have several words. In the member error, several words would
// be free text.
func labelAt(x rawcall.Exchange, path string) any {
	text, _ := x.At(path).(string)
	if identifier.MatchString(text) || (path == "service" || path == "limit_key") && label.MatchString(text) {
		return text
	}
	return nil
}

// object returns an answer with the known members; nil if there are none.
func object(members map[string]any) any {
	maps.DeleteFunc(members, func(name string, v any) bool { return name == "" || v == nil })
	if len(members) == 0 {
		return nil
	}
	return members
}

// readStatus reads the names in an answer of GET /v1/status.
func readStatus(x rawcall.Exchange) any {
	if x.Name != rawcall.GetStatus.Name || x.Status != http.StatusOK {
		return nil
	}
	return object(map[string]any{"service": labelAt(x, "service"), "version": labelAt(x, "version"), "mode": labelAt(x, "mode")})
}

// nameByStatus has the fake's error name for each status with a single cause.
var nameByStatus = map[int]string{
	401: fakenames.Unauthorized, 402: fakenames.PaymentRequired, 403: fakenames.Forbidden,
	405: fakenames.MethodNotAllowed, 409: fakenames.BYOKNotConfigured, 503: fakenames.BYOKUnavailable,
}

// readErrorName reads the name of an error with a single cause.
func readErrorName(x rawcall.Exchange) any {
	name := nameByStatus[x.Status]
	switch {
	case x.Status == http.StatusOK:
		return nil
	case x.Status == http.StatusNotFound && x.Name == rawcall.ReadAgent.Name:
		name = fakenames.NotFound
	case refusesBody(x):
		name = fakenames.BadRequest
	}
	return object(map[string]any{name: labelAt(x, "error")})
}

// refusesBody reports whether a 400 can only mean that the body is wrong, and not that a
// provider key is missing or wrong.
func refusesBody(x rawcall.Exchange) bool {
	sent := x.Call.Body
	needsKey := x.Name == rawcall.SendMessage.Name || strings.Contains(sent, `"byok"`) || strings.Contains(sent, `"api_key"`)
	return x.Status == http.StatusBadRequest && !needsKey
}

// readReason reports whether a 400 for a wrong body has a reason.
func readReason(x rawcall.Exchange) any {
	if !refusesBody(x) {
		return nil
	}
	return x.At("reason") != nil
}

// readTimes names the form of a time. A number of 100,000,000,000 or more is in
// milliseconds, because in seconds it would be after the year 5000.
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
		return decisions.TimesRFC3339
	case err == nil:
		return decisions.TimesOffset
	case notNumber == nil && number >= 1e11:
		return decisions.TimesMilliseconds
	case notNumber == nil:
		return decisions.TimesSeconds
	}
	return "unknown"
}

// smsAgent creates an agent with an SMS mode.
func smsAgent(mode string) rawcall.Call {
	return rawcall.CreateAgent.With(`{"sms":{"mode":"` + mode + `"}}`)
}

// readSMS reads the SMS status after a mode.
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

// fits reports whether a creation with this body is accepted.
func (p *probe) fits(body string) bool {
	return p.mustCall(rawcall.CreateAgent.With(body), 200, 400).Status == 200
}

// lengthUnit sends 200 characters of two kinds to a field that may have 200. An emoji has two
// UTF-16 units and four bytes: if it fits, the service counts code points. An é has one UTF-16
// unit and two bytes: if it fits, the service counts UTF-16 units.
func lengthUnit(p *probe) {
	fits := func(char string) bool { return p.fits(`{"customer_ref":"` + strings.Repeat(char, 200) + `"}`) }
	unit := decisions.UnitBytes
	if fits("😀") {
		unit = decisions.UnitPoints
	} else if fits("é") {
		unit = decisions.UnitUTF16
	}
	p.answer("length_unit", unit, p.latest)
}

// metadataCap searches for the largest accepted size, from 8 characters, {"a":""}, to 65,536. A
// refused call costs no creation, so it searches closer to the upper end: at most twelve of the
// calls create an agent.
func metadataCap(p *probe) {
	const least, likely, most = 8, decisions.MetadataCap, 1 << 16
	fits := func(n int) bool { return p.fits(rawcall.Metadata(n, "")) }
	low, high := least-1, likely
	switch {
	case !fits(likely):
	case !fits(likely + 1): // the service has the fake's cap, so two calls are enough
		low, high = likely, likely+1
	case fits(most):
		p.giveUpWithBounds("metadata_cap", most, 0, "the cap is above the largest size that was tried")
	default:
		low, high = likely, most+1
	}
	low = largest(low, high, fits)
	if low < least {
		p.giveUpWithBounds("metadata_cap", 0, low, "the cap is below the smallest size that was tried")
	}
	p.answer("metadata_cap", low, p.latest)
}

// largest returns the largest number that fits. low fits, and high does not.
func largest(low, high int, fits func(int) bool) int {
	for high-low > 1 {
		if middle := low + max(1, (high-low)*2/3); fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// fillWarmUps makes a valid warm-up, nine with a wrong body, and then valid ones until
// the limit refuses one. If a second valid warm-up passes, the wrong ones spent nothing.
// If none passes, either the wrong ones spent the limit, or the key had only one warm-up
// left. The same test with creations then decides, because their limit is free again
// after a minute.
func fillWarmUps(p *probe) {
	const wrong, maxCalls = 9, 8
	passed := 0
	if x := p.callWithRetry(rawcall.WarmUp, 200, 429); x.Status == 200 {
		passed++
		for range wrong {
			p.mustCall(rawcall.BadWarmUp, 400, 429)
		}
	}
	more, refused := p.fillLimit(maxCalls-passed, rawcall.WarmUp)
	waited := namedWait(refused) <= 2*time.Minute
	if waited {
		// The refusal came from a limit on requests, or the hour of warm-ups is about to end.
		// After the wait the whole limit per hour can be used up. In this case wrong creations
		// decide nothing.
		p.wait(2 * time.Minute)
		_, refused = p.fillLimit(maxCalls-passed-more, rawcall.WarmUp)
	}
	p.answerRefusedWarmUp(refused)
	switch {
	case more > 0 && passed > 0:
		p.answer("refused_operations_spend", false, refused)
	case passed > 0 && !waited && p.wrongCreationsSpend():
		p.answer("refused_operations_spend", true, p.latest)
	default:
		p.reasons["refused_operations_spend"] = "no clear answer: some of the limit on warm-ups was spent before"
	}
	if p.warmUpsName == nil {
		p.giveUp("no clear answer: the 429 names no limit")
	}
}

// answerRefusedWarmUp answers the questions about the refusal of a warm-up, and about a
// wrong body while the limit on warm-ups is used up.
func (p *probe) answerRefusedWarmUp(refused rawcall.Exchange) {
	wrongBody := p.mustCall(rawcall.BadWarmUp, 400, 429)
	if wait, _ := refused.RetryAfter(); p.callOnce(rawcall.ReadUnknownAgent).Status == http.StatusTooManyRequests || 0 < wait && wait <= 2*time.Minute {
		p.giveUp("no clear answer: a limit on requests refused the warm-ups") // a limit per day, or one of few calls a minute
	}
	p.warmUpsName, p.warmUpsOpen = labelAt(refused, "limit_key"), p.now().Add(namedWait(refused))
	p.answer("warmup_limit_name", p.warmUpsName, refused)
	p.answer("body_before_operation_limit", wrongBody.Status == 400, wrongBody)
	// A 409 shows that no provider key is stored, and that the spent limit is checked later.
	p.conflicts = p.callOnce(rawcall.BYOKWarmUp).Status == http.StatusConflict
}

// wrongCreationsSpend reports whether ten creations with a wrong body use up the limit of
// ten a minute.
func (p *probe) wrongCreationsSpend() bool {
	p.emptyMinute()
	for range 10 {
		p.mustCall(rawcall.BadCreation, 400, 429)
	}
	refused := p.callOnce(rawcall.CreateAgent)
	return refused.Status == http.StatusTooManyRequests && namedWait(refused) <= time.Minute
}

// fillMinute uses up the key's limit per minute three times: at once; then one half and
// 25 s later the rest; and again after the wait that Retry-After names. No two ways of
// counting give the same answers to all three. A key with more calls a minute than the
// preview plans needs a larger budget.
func fillMinute(p *probe) {
	read, maxCalls := rawcall.ReadAgent, 130       // more than a preview key, or its address, may make in a minute (interface 8.1)
	if p.budget.Requests-p.spent.Requests > 2200 { // enough for three times 700
		maxCalls = 700 // more than a key of any plan may make (interface 8.2)
	}
	p.agent()
	p.emptyMinute()
	limit, refused := p.fillLimit(maxCalls, read)
	p.maxRequests = max(p.maxRequests, p.spent.Requests+3*limit+26) // 26 for the calls in between
	name := labelAt(refused, "limit_key")
	x, limited := p.atLimit(rawcall.BadCreation, func(x rawcall.Exchange) bool { return x.Status == http.StatusTooManyRequests }, 429, 400)
	p.answer("limit_before_body", limited, x)
	p.answerSeveral(refused)

	p.wait(80 * time.Second)
	half, _ := p.fill(limit/2, read) // a service that weighs the previous minute lets fewer calls pass
	p.wait(25 * time.Second)
	rest, refused := p.fillLimit(maxCalls, read)
	p.answerRetryAfter(read, namedWait(refused))

	_, refused = p.fillLimit(maxCalls, read)
	p.answerWindows(limit, half+rest, refused)
	// A limit per day whose window ends within minutes refuses only the first calls.
	if name == nil || labelAt(refused, "limit_key") != name {
		p.giveUp("no clear answer: the 429 names no limit, or it may be the limit of a day")
	}
	p.answer("minute_limit_name", name, refused)
}

// answerWindows finds out how the key's limit per minute counts calls, and how many it allows.
// first is how many calls passed at once, second how many passed in the next minute.
func (p *probe) answerWindows(first, second int, refused rawcall.Exchange) {
	p.reasons["windows"] = "no clear answer: none of the ways of counting explains the calls, or more than one does"
	if p.meter = fitMeter(p.counted, first); p.meter != nil {
		p.answer("windows", p.meter.counting, refused)
	}
	if !p.isLimitOfKey(first) {
		p.giveUp("no clear answer: the limit that refused calls may be the address's limit")
	}
	switch {
	case p.meter != nil:
		p.o.Limits[fakenames.KeyMinute] = int(p.meter.limit)
	case second == first && p.counted[first].at.Sub(p.counted[0].at) < 10*time.Second:
		// Two full minutes agree on the limit, though Retry-After does not show how it counts. A
		// slow burst could have met two windows.
		p.o.Limits[fakenames.KeyMinute] = first
	}
}

// answerRetryAfter waits for the wait that a refusal named, and then makes the call. A
// wait of one or two seconds proves nothing, because it may be right by chance.
func (p *probe) answerRetryAfter(c rawcall.Call, named time.Duration) {
	p.wait(named)
	x := p.mustCall(c, 200, 429)
	if x.Status != http.StatusOK || named > 2*time.Second {
		p.answer("retry_after", x.Status == http.StatusOK, x)
	} else {
		p.reasons["retry_after"] = fmt.Sprintf("no clear answer: a wait of %v may be right by chance", named)
	}
	if x.Status != http.StatusOK {
		p.wait(namedWait(x))
		p.mustCall(c, 200)
	}
}

// atLimit makes a call while the limit on requests is used up, and reports whether the
// limit refused it. If a token bucket has just gained one call, another check may answer
// instead. So atLimit uses up the limit again and repeats the call. Three such answers in
// a row are not chance.
func (p *probe) atLimit(c rawcall.Call, fromLimit func(rawcall.Exchange) bool, statuses ...int) (x rawcall.Exchange, limited bool) {
	x = p.mustCall(c, statuses...)
	for i := 0; i < 2 && !fromLimit(x); i++ {
		p.fillLimit(20, rawcall.ReadAgent)
		x = p.mustCall(c, statuses...)
	}
	return x, fromLimit(x)
}

// isLimitOfKey reports whether the limit on requests that refused a call is the key's, and
// not the address's. With a second key it tests whether the second key is refused too. With
// one key it decides by the number.
func (p *probe) isLimitOfKey(limit int) bool {
	const about = 5
	if !p.hasTwoKeys() {
		return limit < ofAddress-about || limit > ofAddress+about
	}
	return p.mustCall(rawcall.ReadUnknownAgent.By(rawcall.Another), 404, 429).Status == 404
}

// answerSeveral makes a warm-up while both the limit on warm-ups and the key's limit per minute
// are used up. The name in the refusal shows which limit it means. If both limits have the same
// name or none, the length of the wait shows which limit it means.
func (p *probe) answerSeveral(minuteRefused rawcall.Exchange) {
	const maxMinuteWait = 2 * time.Minute // a limit per minute that weighs the previous minute may name a wait of two minutes
	if p.warmUpsOpen.Sub(p.now()) < maxMinuteWait+time.Minute {
		p.reasons["several_limits"] = "no clear answer: the limit on warm-ups was not spent for longer than three minutes"
		return
	}
	first := labelAt(minuteRefused, "limit_key")
	x, ofMinute := p.atLimit(rawcall.WarmUp, func(x rawcall.Exchange) bool {
		if named := labelAt(x, "limit_key"); named != nil && first != p.warmUpsName {
			return named == first
		}
		return namedWait(x) <= maxMinuteWait
	}, 429)
	p.answer("several_limits", !ofMinute, x)
}

// spentByRefused makes each kind of call a different number of times, so that the rest of
// the limit shows which kinds were counted. It makes few calls of the kinds that probably
// do not count, because other calls of the key make their result less certain.
func spentByRefused(p *probe) {
	read := rawcall.ReadAgent
	if p.meter == nil {
		p.giveUp("no clear answer: it is not known how the limit per minute counts")
	}
	p.emptyMinute()
	unit := max(1, min(3, int(p.meter.limit)/20)) // 3: a smaller difference may be chance if a limit opens step by step
	kinds := []callKind{
		{"status", rawcall.GetStatus, 200, unit},
		{"400", rawcall.SendMessage.With(`{}`), 400, 2 * unit},
		{"404", rawcall.ReadUnknownAgent, 404, 4 * unit},
	}
	if p.conflicts {
		kinds = append(kinds, callKind{"409", rawcall.BYOKWarmUp, 409, 8 * unit})
	}
	for _, k := range kinds {
		for range k.calls {
			p.mustCall(k.call, k.status)
		}
	}
	p.fillLimit(int(p.meter.limit)+10, read)
	spent := p.meter.fitSpent(p.counted, kinds)
	if spent == nil {
		p.giveUp("no clear answer: the calls that went through do not show it, or the key made other calls meanwhile")
	}
	p.answer("refused_requests_spend", spent, p.latest)
}
