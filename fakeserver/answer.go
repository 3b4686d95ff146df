package fakeserver

import (
	"net/http"
	"strconv"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// answer is a complete answer.
type answer struct {
	memnet.Response
	foreign bool // the body is one that the test wrote
}

func (f *failure) answer(by *choices, date, traceID string) answer {
	e := errorReply{Error: by.errorName(f.code), TraceID: traceID, LimitKey: by.limitName(f.limit), Reason: f.reason}
	if !by.reason {
		e.Reason = ""
	}
	a := newAnswer(f.status, date, encode(e))
	switch f.status {
	case http.StatusUnauthorized:
		a.Header["Www-Authenticate"] = []string{"Bearer"}
	case http.StatusMethodNotAllowed:
		a.Header["Allow"] = []string{f.allow}
	case http.StatusTooManyRequests:
		a.Header["Retry-After"] = []string{strconv.Itoa(f.wait)}
	}
	return a
}

func newAnswer(status int, date string, body []byte) answer {
	values := []string{"application/json", date, strconv.Itoa(len(body))} // in one slice, which saves allocations
	return answer{Response: memnet.Response{Status: status, Body: body, Header: http.Header{
		"Content-Type":   values[0:1:1],
		"Date":           values[1:2:2],
		"Content-Length": values[2:3:3],
	}}}
}

// failure describes an answer other than 200: interface 7.
type failure struct {
	status int
	code   string // the error member of the body
	reason string
	member string        // that a 400 is about
	limit  spec.LimitKey // 429 only
	wait   int           // seconds for Retry-After, 429 only
	allow  string        // the Allow header, 405 only
}

// badRequest names the field and its bound. Neither may quote a value, which
// may be a key or a message.
func badRequest(field, bound string) *failure {
	return &failure{status: http.StatusBadRequest, code: codeBadRequest, reason: field + ": " + bound, member: field}
}

func (f *failure) isBadRequest() bool { return f != nil && f.status == http.StatusBadRequest }

func unauthorized(reason string) *failure {
	return &failure{status: http.StatusUnauthorized, code: codeUnauthorized, reason: reason}
}

// The failures that are always the same.
var (
	noToken         = unauthorized("the Authorization header must be: Bearer, a space, and an API key")
	unknownKey      = unauthorized("the API key is unknown or revoked")
	paymentRequired = &failure{status: http.StatusPaymentRequired, code: codePaymentRequired, reason: "the plan of this API key is not active"}
	forbidden       = &failure{status: http.StatusForbidden, code: codeForbidden, reason: "BYOK requires a dashboard-issued API key"}
	noSuchAgent     = notFound("no agent of this API key has this identifier")
	noSuchPath      = notFound("no endpoint has this path")
	nothingStored   = notFound("no provider key is stored for this API key")
)

func notFound(reason string) *failure {
	return &failure{status: http.StatusNotFound, code: codeNotFound, reason: reason}
}

func methodNotAllowed(allow string) *failure {
	return &failure{status: http.StatusMethodNotAllowed, code: codeMethodNotAllowed,
		reason: "this path takes " + allow, allow: allow}
}

func rateLimited(limit spec.LimitKey, wait int) *failure {
	return &failure{status: http.StatusTooManyRequests, code: codeRateLimited, limit: limit, wait: wait}
}

// byokNotConfigured is a 409 where the endpoint lists it, and a 400 elsewhere.
// field is the member that needs the missing configuration.
func byokNotConfigured(e *spec.Endpoint, field *spec.Field) *failure {
	return &failure{status: ifListed(e, http.StatusConflict), code: codeBYOKNotConfigured, member: field.Path,
		reason: field.Path + ": byok needs a BYOK configuration, and none is set for this API key"}
}

// byokUnavailable is a 503 where the endpoint lists it, and a 400 elsewhere.
// field is the member that needs the store.
func byokUnavailable(e *spec.Endpoint, field *spec.Field) *failure {
	return &failure{status: ifListed(e, http.StatusServiceUnavailable), code: codeBYOKUnavailable, member: field.Path,
		reason: field.Path + ": BYOK is not available, so no provider key can be used or stored"}
}

func ifListed(e *spec.Endpoint, status int) int {
	if e.Lists(status) {
		return status
	}
	return http.StatusBadRequest
}

// The bodies of answers, as interface section 4 shows them. Client and fake
// each declare their own wire structs, so that a wrong tag on one side shows.

// reply is the body of a success. Every body carries the call's trace
// identifier.
type reply interface{ trace(id string) }

type traced struct {
	TraceID string `json:"trace_id"`
}

func (t *traced) trace(id string) { t.TraceID = id }

type errorReply struct {
	Error    string `json:"error"`
	TraceID  string `json:"trace_id"`
	LimitKey string `json:"limit_key,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

type statusReply struct {
	OK bool `json:"ok"`
	statusValues
	traced
}

type warmUpReply struct {
	OK     bool   `json:"ok"`
	Warmed bool   `json:"warmed"`
	Mode   string `json:"mode"`
	traced
}

type byokReply struct {
	OK   bool      `json:"ok"`
	BYOK *byokWire `json:"byok"` // null when none is set
	traced
}

type byokWire struct {
	Provider    string  `json:"provider"`
	BaseURL     *string `json:"base_url"` // null when not given
	Model       *string `json:"model"`    // null when not given
	Fingerprint string  `json:"fingerprint"`
	UpdatedAt   string  `json:"updated_at"`
}

type okReply struct {
	OK bool `json:"ok"`
	traced
}

type createdReply struct {
	AgentID string   `json:"agent_id"`
	Status  string   `json:"status"`
	SMS     *smsWire `json:"sms,omitempty"`
	traced
}

type agentReply struct {
	AgentID   string   `json:"agent_id"`
	Status    string   `json:"status"`
	CreatedAt string   `json:"created_at"`
	UpdatedAt string   `json:"updated_at"`
	SMS       *smsWire `json:"sms,omitempty"`
	traced
}

type smsWire struct {
	Status      string `json:"status"`
	PhoneNumber string `json:"phone_number,omitempty"` // the read response only
}

type channelReply struct {
	Status string `json:"status"`
	traced
}

type messageReply struct {
	ReplyText string   `json:"reply_text"`
	Warnings  []string `json:"warnings,omitempty"`
	traced
}
