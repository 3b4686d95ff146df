package observe

import (
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// limitQuestions fill the hour of warm-ups and the minute of a key, after a time
// without calls, so that the whole limit is free, however the service counts.
var limitQuestions = []question{
	{id: "warmup_limit_name", ask: "Which limit_key has the limit on warm-ups?", fake: "warmup_key_hour", find: fillWarmUps,
		also: []string{"refused_operations_spend", "body_before_operation_limit"}, costs: Spend{Requests: 32, Creations: 1, WarmUps: 8}},
	{id: "refused_operations_spend", ask: "Does a warm-up with a wrong body spend one?", fake: false},
	{id: "body_before_operation_limit", ask: "Is a wrong body answered 400 where the limit of the operation is spent?", fake: true},
	{id: "minute_limit_name", ask: "Which limit_key has the limit on requests in a minute?", fake: "key_minute", find: fillMinute,
		also:        []string{"windows", "retry_after", "several_limits", "limit_before_body"},
		fillsMinute: true, costs: Spend{Requests: 210, Creations: 1, Wait: 4 * minute}},
	{id: "windows", ask: "How does a limit count calls?", fake: "fixed"},
	{id: "retry_after", ask: "Does a call go through after exactly the wait that Retry-After names?", fake: true},
	{id: "several_limits", ask: "Of several spent limits, is the one named that opens last?", fake: true},
	{id: "limit_before_body", ask: "Is a wrong body answered 429 where the limit on requests is spent?", fake: true},
	{id: "refused_requests_spend", ask: "Which refused calls spend the limit on requests?", find: spentByRefused,
		fake:        map[string]any{"401": false, "404": true, "400": true, "409": true, "status": false},
		fillsMinute: true, costs: Spend{Requests: 125, Creations: 1, Wait: minute}},
}

// fillWarmUps makes a warm-up that goes through, nine that are refused for their
// body, and others until one is refused by the limit. If one of the last goes
// through, the refused ones did not spend the three of an hour. If none does, either
// they did, or the key had only one left. Then the same test with creations decides:
// their window is only a minute.
func fillWarmUps(p *probe) any {
	const wrong, most = 9, 8
	passed := 0
	if x := p.patient(rawcall.WarmUp, 200, 429); x.Status == 200 {
		passed++
		for range wrong {
			p.take(rawcall.BadWarmUp, 400, 429)
		}
	}
	more, refused := p.until(most-passed, rawcall.WarmUp)
	waited := retryAfter(refused) <= 2*minute
	if waited { // a limit on requests refused it, or the hour of warm-ups is about to end
		p.wait(2 * minute)
		_, refused = p.until(most-passed-more, rawcall.WarmUp)
	}
	name := labelAt(refused, "limit_key")
	p.answer("warmup_limit_name", name)
	p.warmUpsOpen = p.now().Add(retryAfter(refused))
	wrongBody := p.take(rawcall.BadWarmUp, 400, 429)
	p.answer("body_before_operation_limit", wrongBody.Status == 400)
	switch {
	case more > 0 && passed > 0:
		p.shown = refused
		p.answer("refused_operations_spend", false)
	case passed > 0 && !waited && p.wrongCreationsSpend():
		p.answer("refused_operations_spend", true)
	}
	if name == nil {
		p.fail("no clear answer: the 429 names no limit")
	}
	return nil
}

// wrongCreationsSpend reports whether ten creations with a wrong body use up the
// ten of a minute.
func (p *probe) wrongCreationsSpend() bool {
	p.quiet()
	for range 10 {
		p.take(rawcall.WrongAgent, 400, 429)
	}
	refused := p.raw(rawcall.CreateAgent)
	return refused.Status == http.StatusTooManyRequests && retryAfter(refused) <= minute
}

// fillMinute spends the minute of the key three times: at once; then half of it
// and 25 s later the rest; and after the wait that Retry-After names again. No two
// ways of counting answer all of that alike. A key with more calls a minute than
// the plans of the preview takes a larger budget.
func fillMinute(p *probe) any {
	read, most := rawcall.ReadAgent, 130
	if p.budget.Requests-p.spent.Requests > 2200 {
		most = 700
	}
	p.agent(rawcall.Key{})
	p.quiet()
	limit, refused := p.until(most, read)
	p.allowed = max(p.allowed, p.spent.Requests+3*limit+20)
	if p.ofKey(limit) {
		p.shown = refused
		p.answer("minute_limit_name", labelAt(refused, "limit_key"))
	}
	p.answer("limit_before_body", p.limitBeforeBody(read))
	p.answerSeveral(refused)

	p.wait(80 * time.Second)
	p.fill(limit/2, read) // a counter that weighs the minute before lets fewer through
	p.wait(25 * time.Second)
	_, refused = p.until(most, read)
	p.answerRetryAfter(read, retryAfter(refused))

	_, refused = p.until(most, read)
	if retryAfter(refused) <= 5*time.Second { // the end of a clock's minute, or a counter that opens bit by bit
		p.wait(retryAfter(refused))
		p.fill(5, read)
	}
	p.shown = refused
	if p.meter = fitMeter(p.own, limit); p.meter != nil {
		p.answer("windows", p.meter.kind)
		p.o.Limits["key_minute"] = int(p.meter.limit)
	}
	if p.o.Decisions["minute_limit_name"].Answer == nil {
		p.fail("no clear answer: the 429 names no limit, or it may be the limit of the address")
	}
	return nil
}

// answerRetryAfter waits as long as a refusal named, and calls. A wait of a second or
// two is right by chance.
func (p *probe) answerRetryAfter(c rawcall.Call, named time.Duration) {
	p.wait(named)
	x := p.take(c, 200, 429)
	if x.Status != http.StatusOK || named > 2*time.Second {
		p.answer("retry_after", x.Status == http.StatusOK)
	}
	if x.Status != http.StatusOK {
		p.wait(retryAfter(x))
		p.take(c, 200)
	}
}

// limitBeforeBody makes calls with a wrong body while the limit is spent. One 400
// is not enough: a bucket may have filled by one call in between.
func (p *probe) limitBeforeBody(read rawcall.Call) any {
	for range 3 {
		if p.yes(rawcall.WrongAgent, 429, 400) {
			return true
		}
		x := p.shown
		p.until(20, read)
		p.shown = x
	}
	return false
}

// ofKey reports whether the limit on requests that was just met is the key's, and
// not the address's 120 in a minute. With a second key it tests whether that key is
// refused too. Without one it decides by the number.
func (p *probe) ofKey(limit int) bool {
	if !p.hasTwoKeys() {
		return limit < 115 || limit > 125
	}
	return p.take(rawcall.ReadNobody.By(rawcall.Another), 404, 429).Status == 404
}

// answerSeveral makes a warm-up while the hour of warm-ups and the minute of the
// key are spent. Where both limits have one name, or none, the wait shows which is meant.
func (p *probe) answerSeveral(minuteRefused rawcall.Exchange) {
	if p.warmUpsOpen.Sub(p.now()) < 2*minute {
		return // nothing shows that the warm-ups are spent, and for longer than the minute
	}
	x := p.take(rawcall.WarmUp, 429)
	named, first := labelAt(x, "limit_key"), labelAt(minuteRefused, "limit_key")
	if named != nil && first != nil && named != first {
		p.answer("several_limits", true)
	} else {
		p.answer("several_limits", retryAfter(x) > minute)
	}
}

// spentByRefused makes each kind of call a different number of times, so that the
// calls that are left of the limit show which kinds were counted.
func spentByRefused(p *probe) any {
	read := rawcall.ReadAgent
	if p.meter == nil {
		p.fail("no clear answer: it is not known how the minute counts")
	}
	p.agent(rawcall.Key{})
	conflicts := p.patient(rawcall.BYOKWarmUp, 409, 429, 200).Status == 409 // not where a key is stored or the limit comes first
	p.quiet()
	unit := 1
	if p.meter.limit >= 40 {
		unit = 2
	}
	kinds := []kind{{"404", rawcall.ReadNobody, 404, unit}, {"400", rawcall.WrongAgent, 400, 2 * unit}, {"status", rawcall.GetStatus, 200, 4 * unit}}
	if conflicts {
		kinds = append(kinds, kind{"409", rawcall.BYOKWarmUp, 409, 8 * unit})
	}
	for _, k := range kinds {
		for range k.calls {
			p.take(k.call, k.status)
		}
	}
	p.until(int(p.meter.limit)+10, read)
	spent := p.meter.fitSpent(p.own, kinds)
	if spent == nil {
		p.fail("no clear answer: the key made other calls meanwhile")
	}
	return spent
}

// kind is a kind of call that may count, and how often it is made.
type kind struct {
	name   string
	call   rawcall.Call
	status int
	calls  int
}

func (k kind) made(x rawcall.Exchange) bool {
	return x.Name == k.call.Name && x.Status == k.status && x.Call.Body == k.call.Body && x.Path == k.call.Path
}

// otherLimitNames fills each limit and reads the name of its refusal. Minute and
// warm-ups are other questions.
func otherLimitNames(p *probe) any {
	key := func(name string) rawcall.Key { return rawcall.Key{Name: name, Plan: "preview", Dashboard: true} }
	create, read := rawcall.CreateAgent.By(key("four")), rawcall.ReadAgent
	return object(map[string]any{
		"ip_minute":              p.nameOfLimit(0, 130, read.By(key("one")), read.By(key("two")), read.By(key("three"))),
		"agent_create_ip_minute": p.nameOfLimit(0, 11, create),
		"agent_create_key_day":   p.nameOfLimit(2*minute, 60, create),
		"byok_set_key_hour":      p.nameOfLimit(2*minute, 6, rawcall.SetBYOK.By(key("five"))),
		"key_day":                p.nameOfLimit(2*minute, 1030, read.By(key("six"))),
	})
}

// nameOfLimit makes the calls in turn, at most so many, until one is refused for more
// than a time. What refuses a call for less is another limit, and open after two minutes.
func (p *probe) nameOfLimit(least time.Duration, most int, calls ...rawcall.Call) any {
	p.wait(2 * minute)
	for i := range most {
		c := calls[i%len(calls)]
		if c.OfAgent() {
			p.agent(c.Key)
		}
		switch x := p.raw(c); {
		case x.Status != http.StatusTooManyRequests:
			p.want(x, 200)
		case retryAfter(x) > least:
			return labelAt(x, "limit_key")
		default:
			p.wait(2 * minute)
		}
	}
	p.fail("no clear answer: no limit within %d calls", most)
	return nil
}
