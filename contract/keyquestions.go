package contract

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
	}, Spend{Requests: 1400, Creations: 70, BYOKSets: 5}, otherLimitNames, needAbilities),
}

func otherLimitNames(p *probe) any {
	names := map[string]any{}
	note := func(name string, x exchange) { names[name] = p.name(x, "limit_key") }
	refused := func(st step) exchange {
		_, x := p.until(80, st)
		return x
	}
	creator, reader := who{"creator", "preview", true}, who{"reader", "preview", true}
	p.wait(minute)
	note("agent_create_ip_minute", refused(createAgent.is(200).by(creator)))
	note("agent_create_key_day", p.perDay(createAgent.is(200).by(creator)))
	p.wait(minute)
	note("byok_set_key_hour", refused(setBYOK.is(200).by(third)))
	p.agent(reader)
	note("key_day", p.perDay(readAgent.is(200).by(reader)))
	p.wait(minute)
	for _, key := range []who{third, fourth} { // an address may make twice as many as a key
		p.agent(key)
		refused(readAgent.is(200).by(key))
	}
	note("ip_minute", p.raw(createAgent.is(200).by(fifth)))
	return names
}

// perDay fills a limit minute by minute, until one begins with a refusal: that
// is the day's.
func (p *probe) perDay(st step) exchange {
	for range 30 {
		p.wait(minute)
		if passed, refused := p.until(80, st); passed == 0 {
			return refused
		}
	}
	p.fail("no clear answer: no limit within a day's calls")
	return exchange{}
}
