package contract

import "slices"

// refusalCases: a refused call changes nothing, and no endpoint refuses with a
// status that section 4 does not list for it.
func refusalCases() []testCase { return slices.Concat(unchangedCases(), unlistedCases()) }

func unchangedCases() []testCase {
	const invalid, limited = "400 | Bad request (invalid body)", "429 | Rate limited"
	otherKey := setBYOK.with(`{"provider":"anthropic","api_key":"` + providerKey + `"}`)
	still := getBYOK.is(200).holds("byok", same)
	return []testCase{
		rule("7/400-changes-no-byok", invalid,
			setBYOK.is(200),
			setBYOK.with(`{"provider":"anthropic"}`).is(400), setBYOK.with(byokBody(`"tier":"fast"`)).is(400),
			createAgent.with(llmBody(`"provider":"anthropic","api_key":"`+providerKey+`","tier":"slow"`)).is(400),
			still),
		rule("7/400-changes-no-sms", invalid,
			createAgent.is(200), readAgent.is(200), enableSMS.with(`{"mode":"sandbox","x":1}`).is(400),
			readAgent.is(200).holds("sms", same)),
		rule("7/429-changes-no-byok", limited,
			setBYOK.is(200).times(5), getBYOK.is(200), otherKey.limited("byok_set_key_hour"), still),
		rule("7/429-creation-stores-no-byok", limited,
			noBYOK, createAgent.is(200).times(10), keyedAgent.limited("agent_create_ip_minute"), getBYOK.is(200).holds("byok", nil)),
	}
}

func unlistedCases() []testCase {
	const listed = "Which endpoints can return which status: see section 4."
	cases := []testCase{
		rule("7/endpoints-without-429", listed,
			requests(60, 60), readAgent.limited("key_minute"), getStatus.is(200), getBYOK.is(200), noBYOK),
		rule("7/endpoints-without-503", listed,
			createAgent.is(200), setBYOK.is(200), storeOff, sendMessage.listed(),
			storeOn, byokAgent.is(200), storeOff, sendMessage.listed(), enableSMS.listed(), readAgent.listed(),
			getBYOK.listed(), clearBYOK.listed()),
		rule("7/creation-without-503", listed, storeOff, keyedAgent.listed()),
	}
	for _, e := range []endpoint{readAgent, sendMessage, enableSMS} {
		cases = append(cases, rule("7/agent-of-another-key/"+e.name, listed, createAgent.is(200).by(another), e.listed().by(third)))
	}
	return cases
}
