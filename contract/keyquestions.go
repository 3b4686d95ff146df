package contract

// keyQuestions need keys of other kinds, or spend a key's whole day. A fake
// issues as many as they take.
var keyQuestions = []question{
	question{
		id: "permission_before_body", ask: "Is a wrong body of PUT /v1/byok answered 403 where the key may not?", fake: true,
		needs: []need{needAbilities}, costs: Spend{Requests: 1},
	}.found(func(p *probe) any {
		return p.of(p.by(p.issued(false), setBYOK, `{`), map[int]any{403: true, 400: false})
	}),
	question{
		id: "limit_before_permission", fake: true,
		ask:   "Is a call that the key may not make answered 429 where the limit on requests is spent?",
		needs: []need{needAbilities}, costs: Spend{Requests: 80, Creations: 1},
	}.found(func(p *probe) any {
		c := p.issued(false)
		p.wait(minute)
		p.fill(c, p.ownAgent(c), "")
		return p.of(p.raw(c, setBYOK, setBYOK.body), map[int]any{429: true, 403: false})
	}),
	question{
		id: "store_down_first", fake: true,
		ask:   "Is warm-up in byok mode answered 503 where BYOK is not available and nothing is stored?",
		needs: []need{needAbilities}, costs: Spend{Requests: 1},
	}.found(func(p *probe) any {
		p.target.Abilities.SetBYOKAvailable(false)
		defer p.target.Abilities.SetBYOKAvailable(true)
		return p.of(p.by(p.issued(true), warmUp, byokWarmUp), map[int]any{503: true, 409: false})
	}),
	question{
		id: "other_limit_names", ask: "Which limit_key have the other limits?",
		fake: map[string]any{
			"ip_minute": "ip_minute", "key_day": "key_day", "agent_create_key_day": "agent_create_key_day",
			"agent_create_ip_minute": "agent_create_ip_minute", "byok_set_key_hour": "byok_set_key_hour",
		},
		needs: []need{needAbilities}, costs: Spend{Requests: 1400, Creations: 70, BYOKSets: 5},
	}.found(otherLimitNames),
}

// issued is a caller with a key of its own.
func (p *probe) issued(dashboard bool) caller {
	return p.as(p.target.Abilities.IssueKeyOn("preview", dashboard))
}

// ownAgent is the read of an agent that the caller creates.
func (p *probe) ownAgent(c caller) endpoint {
	return readAgent.of(p.text(p.want(p.by(c, createAgent, `{}`), 200), "agent_id"))
}

// fill makes calls until one is refused, and returns how many went through.
func (p *probe) fill(c caller, e endpoint, body string) (passed int, refused exchange) {
	for passed = range 80 {
		if refused = p.raw(c, e, body); refused.status != 200 {
			return passed, p.want(refused, 429)
		}
	}
	p.fail("no clear answer: no limit within 80 calls")
	return passed, refused
}

// perDay fills a limit minute by minute, until one begins with a refusal: that
// is the day's.
func (p *probe) perDay(c caller, e endpoint) exchange {
	for range 30 {
		p.wait(minute)
		if passed, refused := p.fill(c, e, e.body); passed == 0 || p.unclear != nil {
			return refused
		}
	}
	p.fail("no clear answer: no limit within a day's calls")
	return exchange{}
}

func otherLimitNames(p *probe) any {
	name := func(x exchange) any { return p.name(x, "limit_key") }
	names := map[string]any{}
	c := p.issued(true)
	p.wait(minute)
	_, x := p.fill(c, createAgent, `{}`)
	names["agent_create_ip_minute"] = name(x)
	names["agent_create_key_day"] = name(p.perDay(c, createAgent))
	p.wait(minute)
	_, x = p.fill(p.issued(true), setBYOK, setBYOK.body)
	names["byok_set_key_hour"] = name(x)
	c = p.issued(true)
	names["key_day"] = name(p.perDay(c, p.ownAgent(c)))
	p.wait(minute)
	for range 2 { // an address may make twice as many as a key
		c = p.issued(true)
		p.fill(c, p.ownAgent(c), "")
	}
	names["ip_minute"] = name(p.raw(p.issued(true), createAgent, `{}`))
	return names
}
