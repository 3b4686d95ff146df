package contract

const checkOrder = "order of checks: route 404, method 405 -> 401 -> 402 -> request limits 429 -> 403 -> body 400 -> " +
	"agent 404 -> state 409/503 -> operation limits 429 -> act"

var (
	toNobody   = sendMessage.of("agent-of-nobody")
	byokWarmUp = `{"mode":"byok"}`
)

// orders make calls that break two rules and see which one is answered.
var orders = []sequence{
	{id: "fake/order/401-before-all", by: unissued, steps: []step{{1, toNobody, `{`, 401}, {1, setBYOK, `[]`, 401}}},
	{id: "fake/order/402-before-403-400-404", by: unpaid, steps: []step{{1, setBYOK, `{`, 402}, {1, toNobody, `{`, 402}}},
	{id: "fake/order/402-before-429", by: unpaid, steps: []step{{130, createAgent, `{}`, 402}, {1, createAgent, `{}`, 402}}},
	{id: "fake/order/403-before-400", by: undashboard, steps: []step{{1, setBYOK, `{`, 403}}},
	{id: "fake/order/403-before-503", by: undashboard, steps: []step{storeOff, {1, setBYOK, setBYOK.body, 403}, {1, warmUp, byokWarmUp, 403}}},
	{id: "fake/order/503-before-409", steps: []step{storeOff, {1, warmUp, byokWarmUp, 503}}},
	{id: "fake/order/400-before-503", steps: []step{storeOff, {1, setBYOK, `{}`, 400}}},
	{
		id:    "fake/order/400-before-404",
		steps: []step{{1, toNobody, `{}`, 400}, {1, enableSMS.of("agent-of-nobody"), `{"mode":"none"}`, 400}},
	},
	{
		id: "fake/order/request-429-before-403-400-404", by: undashboard, next: step{1, nobody, "", 429}, meets: "key_minute",
		steps: []step{{60, nobody, "", 404}, {1, setBYOK, setBYOK.body, 429}, {1, createAgent, `{`, 429}},
	},
	{
		id: "fake/order/400-before-operation-429", next: step{1, createAgent, keyedAgent, 429}, meets: "byok_set_key_hour",
		steps: []step{
			{3, warmUp, "", 200}, {1, warmUp, `{"mode":"turbo"}`, 400},
			{5, setBYOK, setBYOK.body, 200}, {1, setBYOK, `{}`, 400},
			{8, createAgent, `{}`, 200}, {1, createAgent, llmBody(ownKey + `,"tier":"slow"`), 400},
		},
	},
	{
		id: "fake/order/409-before-operation-429", next: step{1, warmUp, "", 429}, meets: "warmup_key_hour",
		steps: []step{{3, warmUp, "", 200}, {1, warmUp, byokWarmUp, 409}},
	},
	{
		id:    "fake/order/503-before-operation-429",
		steps: []step{{5, setBYOK, setBYOK.body, 200}, storeOff, {1, setBYOK, setBYOK.body, 503}},
	},
}

func orderCases() []testCase {
	cases := sequences(orders)
	for i := range cases {
		cases[i].Rule = checkOrder
	}
	return cases
}
