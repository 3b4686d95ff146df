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
	body   string // a body that is accepted; "" where none is taken
	about  string // the section that states the body's members
	reply  shape  // the members of the success body
	errors []int  // the other statuses that interface 4 lists
	takes  Spend  // what a success takes of the limits on operations
}

// providerKey is the provider key in every body of this package. It must
// never come back: every answer is searched for it. Any four characters of it
// hold one that no hash in hexadecimal or base64 has, so that a part of it in
// a fingerprint is no chance.
const providerKey = "sk-contract~7f3~a9c~2e4~not~own~Jw4"

var (
	provider  = oneOf("openai_compat", "openai", "anthropic")
	smsStatus = oneOf("disabled", "needs_compliance", "pending", "active", "needs_setup")

	// byokConfig is closed, as is the answer of status: the interface allows
	// no additional properties there, and says nothing of the others.
	byokConfig = shape{
		"provider": provider, "base_url?": orNull(isString), "model?": orNull(isString), "fingerprint": isText, "updated_at": isText,
	}
)

// The nine endpoints of interface 4, with a small body that each accepts and
// the members of its success body.
var (
	getStatus = endpoint{
		name: "status", method: "GET", path: "/v1/status",
		reply:  shape{"ok": isBool, "service": isText, "version": isText, "mode": isText, "trace_id": isText},
		errors: []int{401, 402, 404},
	}
	warmUp = endpoint{
		name: "warmup", method: "POST", path: "/v1/warmup", body: `{"mode":"hosted"}`, about: "4.2",
		reply:  shape{"ok": isBool, "warmed": isBool, "mode": oneOf("hosted", "byok"), "trace_id": isText},
		errors: []int{400, 401, 402, 403, 409, 429, 503}, takes: Spend{WarmUps: 1},
	}
	getBYOK = endpoint{
		name: "get-byok", method: "GET", path: "/v1/byok",
		reply:  shape{"ok": isBool, "byok": orNull(closed(byokConfig)), "trace_id": isText},
		errors: []int{401, 402, 403, 404},
	}
	setBYOK = endpoint{
		name: "set-byok", method: "PUT", path: "/v1/byok",
		body: `{"provider":"openai","api_key":"` + providerKey + `"}`, about: "4.4",
		reply:  shape{"ok": isBool, "byok": closed(byokConfig), "trace_id": isText},
		errors: []int{400, 401, 402, 403, 429, 503}, takes: Spend{BYOKSets: 1},
	}
	clearBYOK = endpoint{
		name: "clear-byok", method: "DELETE", path: "/v1/byok",
		reply:  shape{"ok": isBool, "trace_id": isText},
		errors: []int{401, 402, 403, 404},
	}
	createAgent = endpoint{
		name: "create-agent", method: "POST", path: "/v1/agents", body: `{}`, about: "2.3",
		reply: shape{
			"agent_id": isText, "status": oneOf("active"), "sms?": open(shape{"status": smsStatus}), "trace_id": isText,
		},
		errors: []int{400, 401, 402, 404, 429}, takes: Spend{Creations: 1},
	}
	readAgent = endpoint{
		name: "read-agent", method: "GET", path: "/v1/agents/{agent_id}",
		reply: shape{
			"agent_id": isText, "status": isText, "created_at": isText, "updated_at": isText, "trace_id": isText,
			"sms?": open(shape{"status": isText, "phone_number?": isText}),
		},
		errors: []int{401, 402, 404, 429},
	}
	sendMessage = endpoint{
		name: "send-message", method: "POST", path: "/v1/agents/{agent_id}/messages", body: `{"text":"Hello"}`, about: "2.5",
		reply:  shape{"reply_text": isString, "warnings?": listOf(isString), "trace_id": isText},
		errors: []int{400, 401, 402, 404, 429},
	}
	enableSMS = endpoint{
		name: "enable-sms", method: "POST", path: "/v1/agents/{agent_id}/channels/sms", body: `{"mode":"sandbox"}`, about: "4.9",
		reply:  shape{"status": smsStatus, "trace_id": isText},
		errors: []int{400, 401, 402, 404, 429},
	}

	endpoints = []endpoint{
		getStatus, warmUp, getBYOK, setBYOK, clearBYOK, createAgent, readAgent, sendMessage, enableSMS,
	}
)

// of is the endpoint of one agent.
func (e endpoint) of(agentID string) endpoint {
	e.path = strings.ReplaceAll(e.path, "{agent_id}", url.PathEscape(agentID))
	return e
}

// ofAgent reports whether the path names an agent.
func (e endpoint) ofAgent() bool { return strings.Contains(e.path, "{agent_id}") }

// with is the endpoint with another body.
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

// Calls that many cases make.
var (
	readNobody = readAgent.of(noAgent)
	wrongAgent = createAgent.with(`{"x":1}`)
	keyedAgent = createAgent.with(llmBody(ownKey))
	byokAgent  = createAgent.with(llmBody(`"mode":"byok"`))
	byokWarmUp = warmUp.with(`{"mode":"byok"}`)
	badWarmUp  = warmUp.with(`{"mode":"turbo"}`)
)

// at is a call of another path.
func at(method, path string) endpoint { return endpoint{name: "unknown", method: method, path: path} }
