package contract

// unchanged: a refused call changes nothing.
func (s *suite) unchanged() {
	const limited = "429 | Rate limited"
	full, still := setBYOK.with(byokBody(fullMembers)), getBYOK.is(200).holds("byok", same)
	s.rule("7/400-changes-no-byok", invalidBody,
		setBYOK.is(200),
		setBYOK.with(`{"provider":"anthropic"}`).is(400), setBYOK.with(byokBody(`"tier":"fast"`)).is(400),
		createAgent.with(llmBody(`"provider":"anthropic","api_key":"`+providerKey+`","tier":"slow"`)).is(400),
		still)
	s.rule("7/400-changes-no-sms", invalidBody,
		createAgent.is(200), readAgent.is(200), enableSMS.with(`{"mode":"sandbox","x":1}`).is(400),
		readAgent.is(200).holds("sms", same))
	s.rule("7/429-changes-no-byok", limited, setBYOK.is(200).times(5), getBYOK.is(200), full.limited("byok_set_key_hour"), still)
	s.rule("7/429-creation-stores-no-byok", limited,
		noBYOK, createAgent.is(200).times(10), keyedAgent.limited("agent_create_ip_minute"), none)
}

// unlisted: no endpoint refuses with a status that section 4 does not list for
// it.
func (s *suite) unlisted() {
	const listed = "Which endpoints can return which status: see section 4."
	s.rule("7/endpoints-without-429", listed,
		requests(60, 60), readAgent.limited("key_minute"), getStatus.is(200), getBYOK.is(200), noBYOK)
	s.rule("7/endpoints-without-503", listed,
		createAgent.is(200), setBYOK.is(200), storeOff, sendMessage.listed(),
		storeOn, byokAgent.is(200), storeOff, sendMessage.listed(), enableSMS.listed(), readAgent.listed(),
		getBYOK.listed(), clearBYOK.listed())
	s.rule("7/creation-without-503", listed, storeOff, keyedAgent.listed())
	for _, e := range []endpoint{readAgent, sendMessage, enableSMS} {
		s.rule("7/agent-of-another-key/"+e.name, listed, createAgent.is(200).by(another), e.listed().by(third))
	}
}
