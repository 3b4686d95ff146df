package contract

import (
	"slices"
	"time"
)

// spendingCases tell the calls that a limit counts from those it does not.
func spendingCases() []testCase {
	return slices.Concat(countedCases(), uncountedCases(), operationCases())
}

const requestsSpent = "request limits: every call that got past 402, on an endpoint that lists 429, unless itself refused with 429"

// countedCases: refused calls count as any other.
func countedCases() []testCase {
	refused := createAgent.limited("key_minute")
	return []testCase{
		rule("fake/counted/400-404-409", requestsSpent,
			wrongAgent.is(400).times(20), readNobody.is(404).times(20), byokWarmUp.is(409).times(20), refused),
		rule("fake/counted/403", requestsSpent, setBYOK.is(403).times(60).by(undashboard), refused.by(undashboard)),
		rule("fake/counted/503", requestsSpent, storeOff, setBYOK.is(503).times(60), storeOn, refused),
		rule("fake/counted/operation-429", requestsSpent, // what the limit on creations refuses spends no request
			createAgent.is(200).times(10), createAgent.is(429), readNobody.is(404).times(50), wrongAgent.limited("key_minute")),
		rule("fake/counted/every-limited-endpoint", requestsSpent,
			createAgent.is(200), warmUp.is(200), setBYOK.is(200),
			readAgent.is(200).times(19), sendMessage.is(200).times(19), enableSMS.is(200).times(19),
			warmUp.limited("key_minute"), setBYOK.limited("key_minute"), refused,
			readAgent.limited("key_minute"), sendMessage.limited("key_minute"), enableSMS.limited("key_minute")),
	}
}

// uncountedCases make more calls than a limit has, and then one that it would
// refuse.
func uncountedCases() []testCase {
	const unlimited = "GET /v1/status, GET and DELETE /v1/byok are never limited and spend nothing"
	return []testCase{
		rule("fake/uncounted/401", requestsSpent, createAgent.is(401).times(130).keyless(), createAgent.is(200)),
		rule("fake/uncounted/402", requestsSpent, createAgent.is(402).times(130).by(unpaid), createAgent.is(200)),
		rule("fake/uncounted/404-405-of-routes", requestsSpent,
			at("GET", "/v1/nothing").is(404).times(65), at("PATCH", "/v1/agents").is(405).times(65), createAgent.is(200)),
		rule("fake/uncounted/endpoints-without-429", unlimited,
			getStatus.is(200).times(130), getBYOK.is(200).times(130), clearBYOK.is(200).times(130),
			createAgent.is(200), readNobody.is(404).times(59), createAgent.limited("key_minute")),
		rule("fake/uncounted/429", requestsSpent,
			requests(60, 60), createAgent.is(429).times(60),
			requests(60, 60).by(another), // the address has its other half
			readAgent.limited("key_minute").by(another), untilOpen(time.Minute), readNobody.is(404).times(59)),
		rule("fake/uncounted/429-by-day", requestsSpent,
			requests(60, 60), createAgent.is(429).times(1000),
			repeat(15, wait(time.Minute), readNobody.is(404).times(60)),
			wait(time.Minute), readNobody.is(404).times(40), readAgent.limited("key_day")),
	}
}

// operationCases: a refused operation takes nothing of its limits.
func operationCases() []testCase {
	operation := func(id string, steps ...step) testCase {
		return rule("fake/operation/"+id,
			"operation limits: only an operation that goes through; all its limits are checked before any is taken", steps...)
	}
	created, set := createAgent.is(200).times(10), setBYOK.is(200).times(5)
	noCreation, noSet := createAgent.limited("agent_create_ip_minute"), setBYOK.limited("byok_set_key_hour")
	return []testCase{
		operation("refused-creation", wrongAgent.is(400).times(10), byokAgent.is(400).times(10), created, noCreation),
		operation("refused-set", setBYOK.with(`{}`).is(400).times(6), storeOff, setBYOK.is(503).times(6), storeOn, set, noSet),
		operation("refused-warmup",
			badWarmUp.is(400).times(4), byokWarmUp.is(409).times(4), warmUp.is(200).times(3), warmUp.limited("warmup_key_hour")),
		operation("clear-is-no-set", setBYOK.is(200).times(4), clearBYOK.is(200), setBYOK.is(200), clearBYOK.is(200), noSet),
		operation("set-refused-takes-no-creation", set, keyedAgent.is(429).times(10), created, noCreation),
		operation("creation-refused-takes-no-set", created, keyedAgent.is(429).times(10), set, noSet),
		operation("creation-refused-takes-no-day", // refused by the address, the key's day is not touched
			repeat(5, createAgent.is(200).times(10), createAgent.is(429).times(2), wait(time.Minute)),
			createAgent.limited("agent_create_key_day")),
	}
}
