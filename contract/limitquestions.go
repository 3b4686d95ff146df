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
	{id: "refused_operations_spend", ask: "Does a warm-up with a wrong body spend one?", fake: false},
	{id: "body_before_operation_limit", ask: "Is a wrong body answered 400 where the limit of the operation is spent?", fake: true},
	{id: "minute_limit_name", ask: "Which limit_key has the limit on requests in a minute?", fake: "key_minute"},
	{id: "windows", ask: "Is the window of a limit fixed, or does it slide?", fake: "fixed"},
	{id: "retry_after", ask: "Does a call go through after exactly the wait that Retry-After names?", fake: true},
	{id: "several_limits", ask: "Of several spent limits, is the one named that opens last?", fake: true},
	{id: "limit_before_body", ask: "Is a wrong body answered 429 where the limit on requests is spent?", fake: true},
	finds("refused_requests_spend", "Which refused calls spend the limit on requests?",
		map[string]any{"401": false, "404": true, "400": true, "409": true, "status": false},
		Spend{Requests: 280, Creations: 2, Wait: 3 * minute}, spentByRefused),
}

// fillWarmUps spends the hour's three warm-ups, after two that are refused.
func fillWarmUps(p *probe) {
	p.take(badWarmUp.is(400).times(2))
	passed, refused := p.until(4, warmUp.is(200))
	p.answer("warmup_limit_name", p.name(refused, "limit_key"))
	if passed == 3 || passed == 1 { // another number: somebody else made warm-ups too
		p.answer("refused_operations_spend", passed == 1)
	}
	p.answer("body_before_operation_limit", p.yes(badWarmUp.is(400, 429)))
}

// fillMinute makes half a minute's calls, and half a minute later the others.
// After the wait that Retry-After names a fixed window has its whole limit
// again, a sliding one as much as left it by then.
func fillMinute(p *probe) {
	const half = 30
	read := readAgent.is(200)
	p.agent(who{})
	p.wait(minute)
	p.take(read.times(half))
	p.wait(half * time.Second)
	passed, refused := p.until(60, read)
	name := p.name(refused, "limit_key")
	p.answer("minute_limit_name", name)
	p.answer("limit_before_body", p.yes(wrongAgent.is(429, 400)))
	p.answer("several_limits", p.name(p.take(warmUp.is(429)), "limit_key") != name)
	p.wait(retryAfter(refused))
	first := p.take(readAgent.is(200, 429))
	p.answer("retry_after", first.status == 200)
	if first.status == 429 { // told too early
		p.wait(retryAfter(first))
		p.take(read)
	}
	again, _ := p.until(half+passed, read)
	switch again++; { // others may have made calls too
	case again > half+passed-5:
		p.answer("windows", "fixed")
	case again > half-5 && again < half+5:
		p.answer("windows", "sliding")
	}
	p.limit = half + passed
}

// spentByRefused makes each kind of call another number of times, so that what
// is left of the limit says which kinds were counted.
func spentByRefused(p *probe) any {
	read := readAgent.is(200)
	p.agent(who{})
	stored := p.take(getBYOK.is(200)).at("byok") != nil
	p.wait(minute)
	if p.limit == 0 {
		p.limit, _ = p.until(150, read)
		p.wait(minute)
	}
	kinds := map[string]step{ // 1, 2, 4 and 8 calls: their sum names the kinds that were counted
		"404": readNobody.is(404).times(1), "400": wrongAgent.is(400).times(2), "status": getStatus.is(200).times(4),
	}
	if !stored {
		kinds["409"] = byokWarmUp.is(409).times(8)
	}
	for _, k := range kinds {
		p.take(k)
	}
	left, refused := p.until(150, read)
	if p.limit-left < 0 || p.limit-left > 15 || retryAfter(refused) < 5*time.Second { // a bucket has filled meanwhile
		p.fail("no clear answer: the key made other calls meanwhile, or the limit opens bit by bit")
	}
	spent := map[string]any{}
	for name, k := range kinds {
		spent[name] = (p.limit-left)&k.n != 0
	}
	if p.target.Abilities != nil || p.target.SecondKey != "" {
		defer p.answer("refused_requests_spend", spent) // the others also where this ends without an answer
		p.spentByKeyless(spent)
	}
	return spent
}

// spentByKeyless finds out whether calls without a key spend the limit of their
// address, which is 120 in a minute: more than a key's, so it takes two keys to
// meet it. Another number says nothing.
func (p *probe) spentByKeyless(spent map[string]any) {
	const keyless, ofAddress = 20, 120
	p.agent(another)
	p.wait(minute)
	p.take(readAgent.is(401).keyless().times(keyless))
	p.take(readAgent.is(200).times(p.limit))
	passed := 0
	for passed <= p.limit && p.raw(readAgent.is(200).by(another)).status == 200 {
		passed++
	}
	switch {
	case passed == p.limit || p.limit+passed == ofAddress:
		spent["401"] = false
	case p.limit+passed == ofAddress-keyless:
		spent["401"] = true
	}
}

// keyQuestions need keys of other kinds, or spend a key's whole day. A fake
// issues as many as they take.
var keyQuestions = []question{
	asks("permission_before_body", "Is a wrong body of PUT /v1/byok answered 403 where the key may not?", true,
		setBYOK.with(`{`).is(403, 400).by(undashboard)),
	finds("limit_before_permission", "Is a call that the key may not make answered 429 where the limit on requests is spent?", true,
		Spend{Requests: 80, Creations: 1},
		func(p *probe) any {
			p.agent(undashboard)
			p.wait(minute)
			p.until(80, readAgent.is(200).by(undashboard))
			return p.yes(setBYOK.is(429, 403).by(undashboard))
		}, needAbilities),
	asks("store_down_first", "Is warm-up in byok mode answered 503 where BYOK is not available and nothing is stored?", true,
		storeOff, byokWarmUp.is(503, 409).by(third), storeOn),
	finds("other_limit_names", "Which limit_key have the other limits?", map[string]any{
		"ip_minute": "ip_minute", "key_day": "key_day", "agent_create_key_day": "agent_create_key_day",
		"agent_create_ip_minute": "agent_create_ip_minute", "byok_set_key_hour": "byok_set_key_hour",
	}, Spend{Requests: 1200, Creations: 70, BYOKSets: 5}, otherLimitNames, needAbilities),
}

func otherLimitNames(p *probe) any {
	names := map[string]any{}
	for _, l := range limits {
		if l.key == "key_minute" || l.key == "warmup_key_hour" { // other questions ask for these
			continue
		}
		if !l.perIP {
			l.by = who{l.key, "preview", true}
			l.fill = l.fill.by(l.by)
		}
		var last exchange
		walk([]step{wait(minute), l.fill, l.next.is(429).by(l.by)}, func(st step) { last = p.take(st) })
		names[l.key] = p.name(last, "limit_key")
	}
	return names
}
