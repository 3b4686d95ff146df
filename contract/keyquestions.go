package contract

// keyQuestions need keys of other kinds, or spend a key's whole day. A fake
// issues as many as they take.
var keyQuestions = []question{
	{
		id: "permission_before_body", ask: "Is a wrong body of PUT /v1/byok answered 403 where the key may not?", fake: true,
		needs: []need{needAbilities}, costs: oneCall,
		find: func(p *probe) any { return p.either(p.by(p.issued("preview", false), setBYOK.with(`{`)), 403, 400) },
	},
	{
		id: "limit_before_permission", fake: true,
		ask:   "Is a call that the key may not make answered 429 where the limit on requests is spent?",
		needs: []need{needAbilities}, costs: Spend{Requests: 80, Creations: 1},
		find: func(p *probe) any {
			c := p.issued("preview", false)
			p.wait(minute)
			p.until(c, 80, p.ownAgent(c))
			return p.either(p.raw(c, setBYOK), 429, 403)
		},
	},
	{
		id: "store_down_first", fake: true,
		ask:   "Is warm-up in byok mode answered 503 where BYOK is not available and nothing is stored?",
		needs: []need{needAbilities}, costs: oneCall,
		find: func(p *probe) any {
			p.target.Abilities.SetBYOKAvailable(false)
			defer p.target.Abilities.SetBYOKAvailable(true)
			return p.either(p.by(p.issued("preview", true), byokWarmUp), 503, 409)
		},
	},
	{
		id: "other_limit_names", ask: "Which limit_key have the other limits?",
		fake: map[string]any{
			"ip_minute": "ip_minute", "key_day": "key_day", "agent_create_key_day": "agent_create_key_day",
			"agent_create_ip_minute": "agent_create_ip_minute", "byok_set_key_hour": "byok_set_key_hour",
		},
		needs: []need{needAbilities}, costs: Spend{Requests: 1400, Creations: 70, BYOKSets: 5}, find: otherLimitNames,
	},
}

// issued is a caller with a key of its own.
func (p *probe) issued(plan string, dashboard bool) caller {
	c := p.caller
	c.key = p.target.Abilities.IssueKeyOn(plan, dashboard)
	return c
}

// ownAgent is the read of an agent that the caller creates.
func (p *probe) ownAgent(c caller) endpoint {
	return readAgent.of(p.text(p.want(p.by(c, createAgent), 200), "agent_id"))
}

// perDay fills a limit minute by minute, until one begins with a refusal: that
// is the day's.
func (p *probe) perDay(c caller, e endpoint) exchange {
	for range 30 {
		p.wait(minute)
		if passed, refused := p.until(c, 80, e); passed == 0 || p.unclear != nil {
			return refused
		}
	}
	p.fail("no clear answer: no limit within a day's calls")
	return exchange{}
}

func otherLimitNames(p *probe) any {
	names := map[string]any{}
	note := func(name string, x exchange) { names[name] = p.name(x, "limit_key") }
	refused := func(c caller, e endpoint) exchange {
		_, x := p.until(c, 80, e)
		return x
	}
	c := p.issued("preview", true)
	p.wait(minute)
	note("agent_create_ip_minute", refused(c, createAgent))
	note("agent_create_key_day", p.perDay(c, createAgent))
	p.wait(minute)
	note("byok_set_key_hour", refused(p.issued("preview", true), setBYOK))
	c = p.issued("preview", true)
	note("key_day", p.perDay(c, p.ownAgent(c)))
	p.wait(minute)
	for range 2 { // an address may make twice as many as a key
		c = p.issued("preview", true)
		refused(c, p.ownAgent(c))
	}
	note("ip_minute", p.raw(p.issued("preview", true), createAgent))
	return names
}
