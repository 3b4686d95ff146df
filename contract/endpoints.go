package contract

import (
	"net/url"
	"strings"
)

// endpoint is one row of interface 4.
type endpoint struct {
	name   string // in case ids
	method string
	path   string
	body   string // one that is accepted; "" where none is taken
	reply  shape  // the members of the success body
	errors []int  // the other statuses that interface 4 lists
}

func at(method, path string) endpoint { return endpoint{name: "unknown", method: method, path: path} }

// called makes one of the nine: call is the method and the path.
func called(name, call, body string, reply shape, errors ...int) endpoint {
	method, path, _ := strings.Cut(call, " ")
	return endpoint{name, method, path, body, reply, errors}
}

// providerKey is the provider key in every body of this package. It must
// never come back: every answer is searched for it. Any four characters of it
// hold one that no hash in hexadecimal or base64 has, so that a part of it in
// a fingerprint is no chance.
const providerKey = "sk-contract~7f3~a9c~2e4~not~own~Jw4"

const (
	smsStatus = "disabled|needs_compliance|pending|active|needs_setup"
	// byokConfig is closed, as is the answer of status: the interface allows
	// no additional properties there, and says nothing of the others.
	byokConfig = "byok.provider openai_compat|openai|anthropic, byok.base_url string null optional, byok.model string null optional, " +
		"byok.fingerprint text, byok.updated_at text"
)

// The nine endpoints of interface 4, with a small body that each accepts and
// the members of its success body.
var (
	getStatus = called("status", "GET /v1/status", "", "ok bool, service text, version text, mode text, trace_id text", 401, 402, 404)
	warmUp    = called("warmup", "POST /v1/warmup", `{"mode":"hosted"}`, "ok bool, warmed bool, mode hosted|byok, trace_id text",
		400, 401, 402, 403, 409, 429, 503)
	getBYOK = called("get-byok", "GET /v1/byok", "", "ok bool, byok closed null, "+byokConfig+", trace_id text", 401, 402, 403, 404)
	setBYOK = called("set-byok", "PUT /v1/byok", `{"provider":"openai","api_key":"`+providerKey+`"}`,
		"ok bool, byok closed, "+byokConfig+", trace_id text", 400, 401, 402, 403, 429, 503)
	clearBYOK   = called("clear-byok", "DELETE /v1/byok", "", "ok bool, trace_id text", 401, 402, 403, 404)
	createAgent = called("create-agent", "POST /v1/agents", `{}`, "agent_id text, status active, sms object optional, "+
		"sms.status "+smsStatus+", sms.phone_number nothing null optional, trace_id text", 400, 401, 402, 404, 429) // 2.2: only on the read response
	readAgent = called("read-agent", "GET /v1/agents/{agent_id}", "", "agent_id text, status text, created_at text, updated_at text, "+
		"sms object optional, sms.status text, sms.phone_number text optional, trace_id text", 401, 402, 404, 429)
	sendMessage = called("send-message", "POST /v1/agents/{agent_id}/messages", `{"text":"Hello"}`,
		"reply_text string, warnings strings optional, trace_id text", 400, 401, 402, 404, 429)
	enableSMS = called("enable-sms", "POST /v1/agents/{agent_id}/channels/sms", `{"mode":"sandbox"}`,
		"status "+smsStatus+", trace_id text", 400, 401, 402, 404, 429)

	endpoints = []endpoint{
		getStatus, warmUp, getBYOK, setBYOK, clearBYOK, createAgent, readAgent, sendMessage, enableSMS,
	}
)

func (e endpoint) of(agentID string) endpoint {
	e.path = strings.ReplaceAll(e.path, "{agent_id}", url.PathEscape(agentID))
	return e
}

func (e endpoint) ofAgent() bool { return strings.Contains(e.path, "{agent_id}") }

func (e endpoint) with(body string) endpoint {
	e.body = body
	return e
}

// llmBody is a creation body with those members of llm, byokBody a PUT
// /v1/byok body with further members.
func llmBody(members string) string { return `{"llm":{` + members + `}}` }

func byokBody(members string) string {
	return `{"provider":"anthropic","api_key":"` + providerKey + `",` + members + `}`
}

const (
	ownKey  = `"provider":"openai","api_key":"` + providerKey + `"`
	noAgent = "agent-of-nobody"
)

var (
	readNobody = readAgent.of(noAgent)
	wrongAgent = createAgent.with(`{"x":1}`)
	keyedAgent = createAgent.with(llmBody(ownKey))
	byokAgent  = createAgent.with(llmBody(`"mode":"byok"`))
	byokWarmUp = warmUp.with(`{"mode":"byok"}`)
	badWarmUp  = warmUp.with(`{"mode":"turbo"}`)
)
