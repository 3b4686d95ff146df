package contract

import "time"

// limitQuestions fill the hour of warm-ups and the minute of a key. The minute
// begins after one without calls, so that the whole limit is there again,
// whether the window is fixed or slides.
var limitQuestions = []question{
	{
		id: "warmup_limit_name", ask: "Which limit_key has the limit on warm-ups?", fake: "warmup_key_hour",
		also: []string{
			"refused_operations_spend", "body_before_operation_limit", "minute_limit_name", "windows", "retry_after",
			"several_limits", "limit_before_body",
		},
		costs: Spend{Requests: 190, Creations: 1, WarmUps: 4, Wait: 2*minute + 30*time.Second},
		find: func(p *probe) any {
			fillWarmUps(p)
			fillMinute(p)
			return nil
		},
	},
	{id: "refused_operations_spend", ask: "Does a refused warm-up spend one?", fake: false},
	{id: "body_before_operation_limit", ask: "Is a wrong body answered 400 where the limit of the operation is spent?", fake: true},
	{id: "minute_limit_name", ask: "Which limit_key has the limit on requests in a minute?", fake: "key_minute"},
	{id: "windows", ask: "Is the window of a limit fixed, or does it slide?", fake: "fixed"},
	{id: "retry_after", ask: "Does a call go through after exactly the wait that Retry-After names?", fake: true},
	{id: "several_limits", ask: "Of several spent limits, is the one named that opens last?", fake: true},
	{id: "limit_before_body", ask: "Is a wrong body answered 429 where the limit on requests is spent?", fake: true},
	{
		id: "refused_requests_spend", ask: "Which refused calls spend the limit on requests?",
		fake:  map[string]any{"401": false, "404": true, "400": true, "409": true, "status": false},
		costs: Spend{Requests: 280, Creations: 2, Wait: 3 * minute}, find: spentByRefused,
	},
}

// fillWarmUps spends the hour's three warm-ups, after two that are refused.
func fillWarmUps(p *probe) {
	p.want(p.call(badWarmUp), 400)
	p.want(p.call(badWarmUp), 400)
	passed, refused := p.until(p.caller, 4, warmUp)
	p.answer("warmup_limit_name", p.name(refused, "limit_key"))
	if passed == 3 || passed == 1 { // another number: somebody else made warm-ups too
		p.answer("refused_operations_spend", passed == 1)
	}
	p.answer("body_before_operation_limit", p.either(p.raw(p.caller, badWarmUp), 400, 429))
}

// fillMinute makes half a minute's calls, and half a minute later the others.
// After the wait that Retry-After names a fixed window has its whole limit
// again, a sliding one as much as left it by then.
func fillMinute(p *probe) {
	const half = 30
	read := readAgent.of(p.anAgent())
	p.wait(minute)
	p.make(half, p.caller, read, 200)
	p.wait(half * time.Second)
	passed, refused := p.until(p.caller, 60, read)
	p.answer("minute_limit_name", p.name(refused, "limit_key"))
	p.whileShut(p.name(refused, "limit_key"))
	p.wait(retryAfter(refused))
	first := p.raw(p.caller, read)
	p.answer("retry_after", p.either(first, 200, 429))
	if first.status == 429 { // told too early
		p.wait(retryAfter(first))
		p.by(p.caller, read)
	}
	again, _ := p.until(p.caller, half+passed, read)
	p.answer("windows", window(again+1, half, half+passed))
	p.limit = half + passed
}

// window tells a fixed window, which has its whole limit again, from one that
// slides, which has the part that left it. Others may have made calls too.
func window(got, part, whole int) any {
	switch {
	case got > whole-5:
		return "fixed"
	case got > part-5 && got < part+5:
		return "sliding"
	}
	return nil
}

// whileShut asks what is answered while the limit on requests is spent.
func (p *probe) whileShut(name string) {
	p.answer("limit_before_body", p.either(p.raw(p.caller, wrongAgent), 429, 400))
	x := p.want(p.raw(p.caller, warmUp), 429)
	p.answer("several_limits", p.name(x, "limit_key") != name)
}

// spentByRefused makes each kind of call another number of times, so that what
// is left of the limit says which kinds were counted.
func spentByRefused(p *probe) any {
	read := readAgent.of(p.anAgent())
	stored := p.want(p.call(getBYOK), 200).at("byok") != nil
	p.wait(minute)
	if p.limit == 0 {
		p.limit, _ = p.until(p.caller, 150, read)
		p.wait(minute)
	}
	kinds := map[string]step{
		"404": readNobody.is(404).times(1), "400": wrongAgent.is(400).times(2), "status": getStatus.is(200).times(4),
	}
	if !stored {
		kinds["409"] = byokWarmUp.is(409).times(8)
	}
	for _, k := range kinds {
		p.make(k.n, p.caller, k.e, k.statuses[0])
	}
	left, _ := p.until(p.caller, 150, read)
	if p.limit-left < 0 || p.limit-left > 15 {
		p.fail("no clear answer: the key made other calls meanwhile")
	}
	spent := map[string]any{}
	for name, k := range kinds {
		spent[name] = (p.limit-left)&k.n != 0
	}
	p.answer("refused_requests_spend", spent)
	if p.target.Abilities != nil || p.target.SecondKey != "" {
		p.spentByKeyless(spent, read)
	}
	return spent
}

// spentByKeyless finds out whether calls without a key spend the limit of their
// address, which is 120 in a minute: more than a key's, so it takes two keys to
// meet it. Another number says nothing.
func (p *probe) spentByKeyless(spent map[string]any, read endpoint) {
	const keyless, ofAddress = 20, 120
	other := p.another()
	theirs := p.ownAgent(other)
	p.wait(minute)
	p.make(keyless, p.keyless(), read, 401)
	p.make(p.limit, p.caller, read, 200)
	passed := 0
	for passed <= p.limit && p.raw(other, theirs).status == 200 {
		passed++
	}
	switch {
	case passed == p.limit || p.limit+passed == ofAddress:
		spent["401"] = false
	case p.limit+passed == ofAddress-keyless:
		spent["401"] = true
	}
}
