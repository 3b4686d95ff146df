package apitest

// testCase is one call. Where the answer is a success the call itself must be
// as documented too.
type testCase struct {
	operation string // operationId
	path      string // below /_fake/v1
	body      string
	want      int
}

const (
	d = "/worlds/default"
	// agent has everything that an agent can have.
	agent = `{"key":"key_000001","agent_id":"whole","status":"paused","created_at":"2020-01-01T00:00:00Z","updated_at":"2021-01-01T00:00:00.5+02:00",
		"system_prompt":"p","customer_ref":"c","metadata":{"k":[1,{"n":null}]},"sms":{"mode":"managed","status":"pending","phone_number":"+1"},
		"llm":{"mode":"byok","tier":"smart","model":"m","provider":"openai","base_url":"https://x","label":"l"}}`
)

// cases are made in this order, on one server.
var cases = []testCase{
	{"getOpenAPI", "/openapi.yaml", "", 200},
	{"getOpenAPI", "/openapi.yaml?x=1", "", 400},
	{"getInfo", "/info", "", 200},
	{"getInfo", "/info?x=1", "", 400},

	{"createWorld", "/worlds", `{}`, 201},
	{"createWorld", "/worlds", `{"name":"suite","plan":"pro","limits":"off","windows":"sliding"}`, 201},
	{"createWorld", "/worlds", `{"name":"suite"}`, 409},
	{"createWorld", "/worlds", `{"name":"a_b"}`, 400},
	{"createWorld", "/worlds", `{"plan":"gold"}`, 400},
	{"listWorlds", "/worlds", "", 200},
	{"listWorlds", "/worlds?x=1", "", 400},
	{"getLimits", "/worlds/suite/keys/key_000001/limits", "", 200}, // without limits
	{"deleteWorld", "/worlds/world-1", "", 204},
	{"deleteWorld", "/worlds/world-1", "", 404},
	{"deleteWorld", d, "", 409},

	{"issueKey", d + "/keys", `{}`, 201},
	{"issueKey", d + "/keys", `{"plan":"byok","dashboard":false}`, 201},
	{"issueKey", d + "/keys", `{"plan":1}`, 400},
	{"changeKey", d + "/keys/key_000002", `{"plan":"free"}`, 200},
	{"changeKey", d + "/keys/key_000002", `{}`, 400},
	{"changeKey", d + "/keys/key_000009", `{"plan":"free"}`, 404},
	{"revokeKey", d + "/keys/key_000003", "", 204},
	{"revokeKey", d + "/keys/key_000009", "", 404},
	{"listKeys", d + "/keys", "", 200},
	{"listKeys", "/worlds/none/keys", "", 404},
	{"exhaustLimit", d + "/keys/key_000001/limits/warmup_key_hour/exhaust", "", 204},
	{"exhaustLimit", d + "/keys/key_000001/limits/none/exhaust", "", 404},
	{"getLimits", d + "/keys/key_000001/limits?address=203.0.113.7", "", 200},
	{"getLimits", d + "/keys/key_000001/limits?address=here", "", 400},
	{"getKeyBYOK", d + "/keys/key_000001/byok", "", 200},
	{"storeKeyBYOK", d + "/keys/key_000001/byok", `{"provider":"openai","api_key":"sk-1"}`, 200},
	{"storeKeyBYOK", d + "/keys/key_000001/byok", `{"provider":"openai","api_key":"sk-1","base_url":"https://x","model":"m","label":"l"}`, 200},
	{"storeKeyBYOK", d + "/keys/key_000001/byok", `{"provider":"openai","api_key":""}`, 400},
	{"getKeyBYOK", d + "/keys/key_000001/byok", "", 200},
	{"getKeyBYOK", d + "/keys/key_000009/byok", "", 404},
	{"setBYOKAvailable", d + "/byok", `{"available":true}`, 200},
	{"setBYOKAvailable", d + "/byok", `{"available":1}`, 400},
	{"getBYOKAvailable", d + "/byok", "", 200},
	{"getBYOKAvailable", "/worlds/none/byok", "", 404},

	{"addAgent", d + "/agents", `{"key":"key_000001"}`, 201},
	{"addAgent", d + "/agents", agent, 201},
	{"addAgent", d + "/agents", agent, 409},
	{"addAgent", d + "/agents", `{"key":"key_000001","llm":{"mode":"x"}}`, 400},
	{"listAgents", d + "/agents", "", 200},
	{"listAgents", d + "/agents?key=key_000001", "", 200},
	{"listAgents", d + "/agents?key=key_000009", "", 400},
	{"getAgent", d + "/agents/whole", "", 200},
	{"getAgent", d + "/agents/agent_000001", "", 200},
	{"getAgent", d + "/agents/none", "", 404},
	{"addExchanges", d + "/agents/whole/conversation", `{"exchanges":[{"text":"a","reply_text":"b"},
		{"text":"a","reply_text":"b","user_ref":"u","warnings":["w"],"time":"2020-01-01T00:00:00Z","trace_id":"t"}]}`, 201},
	{"addExchanges", d + "/agents/whole/conversation", `{"exchanges":[]}`, 400},
	{"getConversation", d + "/agents/whole/conversation", "", 200},
	{"getConversation", d + "/agents/none/conversation", "", 404},
	{"setSMS", d + "/agents/agent_000001/sms", `{"status":"active"}`, 200},
	{"setSMS", d + "/agents/agent_000001/sms", `{"status":"needs_setup","phone_number":"+1"}`, 200},
	{"setSMS", d + "/agents/agent_000001/sms", `{"status":"on"}`, 400},
	{"sendMessage", d + "/agents/agent_000001/messages", `{"text":"hello","user_ref":"u"}`, 200},
	{"sendMessage", d + "/agents/agent_000001/messages", `{}`, 400},

	{"injectFault", d + "/faults", `{"fault":{"kind":"close_early"},"match":{"endpoint":"POST /v1/agents/{agent_id}/messages"},"times":1}`, 201},
	{"sendMessage", d + "/agents/agent_000001/messages", `{"text":"lost"}`, 502},
	{"injectFault", d + "/faults", `{"fault":{"kind":"raw_answer","status":502,"content_type":"text/html","body":"<h1>"},"match":{"text":"html"},"nth":1}`, 201},
	{"sendMessage", d + "/agents/agent_000001/messages", `{"text":"html"}`, 200},
	{"injectFault", d + "/faults", `{"fault":{"kind":"latency","ms":1},"match":{"agent_id":"none","key":"key_000001","text_containing":"x"},"chance":0.5,"seed":3}`, 201},
	{"injectFault", d + "/faults", `{"fault":{"kind":"answer","status":503,"body":"{}"},"match":{"agent_id":"none"}}`, 201},
	{"injectFault", d + "/faults", `{"fault":{"kind":"rate_limited","retry_after":"9"},"match":{"agent_id":"none"}}`, 201},
	{"injectFault", d + "/faults", `{"fault":{"kind":"hang"},"match":{"agent_id":"none"}}`, 201},
	{"injectFault", d + "/faults", `{"fault":{"kind":"reset_connection"},"match":{"agent_id":"none"}}`, 201},
	{"injectFault", d + "/faults", `{"fault":{"kind":"lose_reply","how":{"kind":"hang"}},"match":{"agent_id":"none"}}`, 201},
	{"injectFault", d + "/faults", `{"fault":{"kind":"truncate_reply","bytes":9},"match":{"agent_id":"none"}}`, 201},
	{"injectFault", d + "/faults", `{"fault":{"kind":"reset_reply","bytes":9},"match":{"agent_id":"none"}}`, 201},
	{"injectFault", d + "/faults", `{"fault":{"kind":"drip_reply","bytes":9,"ms":1},"match":{"agent_id":"none"}}`, 201},
	{"injectFault", d + "/faults", `{"fault":{"kind":"flood"}}`, 400},
	{"listFaults", d + "/faults", "", 200},
	{"listFaults", d + "/faults?x=1", "", 400},
	{"removeFault", d + "/faults/fault_000001", "", 204},
	{"removeFault", d + "/faults/fault_000001", "", 404},
	{"scriptReplies", d + "/replies", `{"replies":[{"text":"a","warnings":["w"]},{"status":429,"code":"c","reason":"r"}],
		"match":{"agent_id":"a","key":"key_000001","text":"t","text_containing":"t"},"times":2,"nth":1,"chance":1,"seed":0}`, 201},
	{"scriptReplies", d + "/replies", `{"replies":[{}]}`, 400},
	{"listReplies", d + "/replies", "", 200},
	{"listReplies", d + "/replies?x=1", "", 400},
	{"removeReplies", d + "/replies/reply_000001", "", 204},
	{"removeReplies", d + "/replies/reply_000001", "", 404},

	{"listCalls", d + "/calls", "", 200},
	{"listCalls", d + "/calls?endpoint=GET%20%2Fv1%2Fstatus&status=4xx&key=missing&agent_id=a&text=t&text_containing=t&after=1&limit=1", "", 200},
	{"listCalls", d + "/calls?status=x", "", 400},
	{"awaitCalls", d + "/calls/await?timeout_ms=0", "", 200},
	{"awaitCalls", d + "/calls/await?n=9999&timeout_ms=0", "", 504},
	{"awaitCalls", d + "/calls/await?n=0", "", 400},
	{"streamCalls", d + "/calls/stream?after=0", "", 200},
	{"streamCalls", d + "/calls/stream?after=x", "", 400},
	{"getHAR", d + "/calls.har", "", 200},
	{"getHAR", d + "/calls.har?x=1", "", 400},

	{"advanceClock", d + "/clock/advance", `{"seconds":0.5}`, 200},
	{"advanceClock", d + "/clock/advance", `{"duration":"1h30m"}`, 200},
	{"advanceClock", d + "/clock/advance", `{"seconds":1,"duration":"1h"}`, 400},
	{"getClock", d + "/clock", "", 200},
	{"getClock", d + "/clock?x=1", "", 400},
	{"takeSnapshot", d + "/snapshots", "", 201},
	{"takeSnapshot", d + "/snapshots?x=1", "", 400},
	{"listSnapshots", d + "/snapshots", "", 200},
	{"listSnapshots", d + "/snapshots?x=1", "", 400},
	{"restoreSnapshot", d + "/snapshots/snapshot_000001/restore", "", 204},
	{"restoreSnapshot", d + "/snapshots/none/restore", "", 404},
	{"deleteSnapshot", d + "/snapshots/snapshot_000001", "", 204},
	{"deleteSnapshot", d + "/snapshots/snapshot_000001", "", 404},
	{"resetWorld", d + "/reset", "", 204},
	{"resetWorld", "/worlds/none/reset", "", 404},
}
