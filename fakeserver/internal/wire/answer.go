package wire

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Answer is a complete answer.
type Answer struct {
	memnet.Response
	Foreign bool // the body is one that the test wrote
}

// Encode words what the service decided. date is the Date header.
func Encode(a service.Answer, by *service.Behavior, traceID, date string) Answer {
	status, body := http.StatusOK, any(nil)
	if a.Refusal != nil {
		e := errorReply{by.ErrorName(a.Refusal.Code), traceID, by.LimitName(a.Refusal.Limit), ""}
		if by.Reason {
			e.Reason = Reason(a.Refusal)
		}
		status, body = a.Refusal.Status, e
	} else {
		body = replyBody(a.Reply, by, traced{traceID})
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // these structs can all be written
	}
	values := []string{"application/json", date, strconv.Itoa(len(raw))} // in one slice, which saves allocations
	h := http.Header{"Content-Type": values[0:1:1], "Date": values[1:2:2], "Content-Length": values[2:3:3]}
	switch status {
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = []string{"Bearer"}
	case http.StatusMethodNotAllowed:
		h["Allow"] = []string{a.Refusal.Allow}
	case http.StatusTooManyRequests:
		h["Retry-After"] = []string{strconv.Itoa(a.Refusal.Wait)}
	}
	return Answer{Response: memnet.Response{Status: status, Header: h, Body: raw}}
}

// Show masks the first n bytes of the answer's body.
func (a *Answer) Show(n int, secrets mask.Secrets, texts bool) string {
	body := mask.Body{Texts: texts, Secrets: secrets, Foreign: a.Foreign}
	return mask.Clip(body.Of(a.Body, n), spec.KeptBody)
}

// Reason is the reason of an error's body: the field and its bound, if it is about
// one. It quotes no value.
func Reason(r *service.Refusal) string {
	reason := cmp.Or(r.Broken, service.Kinds[r.Kind].Reason)
	if r.Field != "" {
		return r.Field + ": " + reason
	}
	return reason
}

// The bodies of answers, as interface section 4 shows them. Client and fake
// each declare their own wire structs, so that a wrong tag on one side shows.

type traced struct {
	TraceID string `json:"trace_id"`
}

type errorReply struct {
	Error    string `json:"error"`
	TraceID  string `json:"trace_id"`
	LimitKey string `json:"limit_key,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

type statusReply struct {
	OK bool `json:"ok"`
	service.StatusValues
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

func replyBody(reply any, by *service.Behavior, id traced) any {
	switch r := reply.(type) {
	case service.StatusValues:
		return statusReply{true, r, id}
	case service.Warmed:
		return warmUpReply{true, true, r.Mode, id}
	case service.Config:
		return byokReply{true, byokBody(r.BYOK, by), id}
	case service.OK:
		return okReply{true, id}
	case service.Created:
		created := createdReply{r.ID, r.Status, nil, id}
		if r.SMS != nil {
			created.SMS = &smsWire{Status: r.SMS.Status}
		}
		return created
	case service.Read:
		a := agentReply{r.Agent.ID, r.Agent.Status, by.Time(r.Agent.CreatedAt), by.Time(r.Agent.UpdatedAt), nil, id}
		if sms := r.Agent.SMS; sms != nil {
			a.SMS = &smsWire{sms.Status, sms.PhoneNumber}
		}
		return a
	case service.Channel:
		return channelReply{r.Status, id}
	case service.Message:
		return messageReply{r.Text, r.Warnings, id}
	}
	panic("no such reply")
}

func byokBody(c *service.BYOK, by *service.Behavior) *byokWire {
	if c == nil {
		return nil
	}
	given := func(s string) *string { // null for a text that is not given
		if s == "" {
			return nil
		}
		return &s
	}
	return &byokWire{c.Provider, given(c.BaseURL), given(c.Model), c.Fingerprint, by.Time(c.UpdatedAt)}
}
