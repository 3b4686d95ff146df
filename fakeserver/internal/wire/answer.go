package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Answer is a complete answer of the service or of a test, ready to be sent.
type Answer struct {
	memnet.Response
	FromTest bool // a test wrote the body, so any of its strings may be a key
}

// errorReply is the ErrorResponse of interface 2.1. Client and fake each declare their
// own structs of the interface, so that a wrong tag on one side shows.
type errorReply struct {
	Error    string `json:"error"`
	TraceID  string `json:"trace_id"`
	LimitKey string `json:"limit_key,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// The bodies of a success, by section of interface 4. Encode adds trace_id to each.
type (
	okReply struct { // 4.5
		OK bool `json:"ok"`
	}
	statusReply struct { // 4.1
		okReply
		service.StatusValues
	}
	warmUpReply struct { // 4.2
		okReply
		Warmed bool   `json:"warmed"`
		Mode   string `json:"mode"`
	}
	byokReply struct { // 4.3 and 4.4
		okReply
		BYOK *byokConfig `json:"byok"` // null when no configuration is set
	}
	byokConfig struct { // 2.4
		Provider    string  `json:"provider"`
		BaseURL     *string `json:"base_url"` // null when not given
		Model       *string `json:"model"`    // null when not given
		Fingerprint string  `json:"fingerprint"`
		UpdatedAt   string  `json:"updated_at"`
	}
	agentReply struct { // 4.6 and 4.7
		ID        string    `json:"agent_id"`
		Status    string    `json:"status"`
		CreatedAt string    `json:"created_at,omitempty"` // of 4.7 alone
		UpdatedAt string    `json:"updated_at,omitempty"` // of 4.7 alone
		SMS       *smsReply `json:"sms,omitempty"`
	}
	smsReply struct { // 4.9
		Status      string `json:"status"`
		PhoneNumber string `json:"phone_number,omitempty"` // of 4.7 alone
	}
	messageReply struct { // 4.8
		Text     string   `json:"reply_text"`
		Warnings []string `json:"warnings,omitempty"`
	}
)

// replies makes the body for a successful call of each endpoint. times is Behavior.Times. No
// reply has the prompt, the metadata or the model of an agent.
var replies = map[*spec.Endpoint]func(a *service.Result, times string) any{
	spec.Status:      func(a *service.Result, _ string) any { return statusReply{okReply{true}, a.Status} },
	spec.WarmUp:      func(a *service.Result, _ string) any { return warmUpReply{okReply{true}, true, a.Mode} },
	spec.GetBYOK:     storedBYOK,
	spec.SetBYOK:     storedBYOK,
	spec.ClearBYOK:   func(*service.Result, string) any { return okReply{true} },
	spec.CreateAgent: func(a *service.Result, _ string) any { return createdAgent(a) },
	spec.GetAgent:    wholeAgent,
	spec.SendMessage: func(a *service.Result, _ string) any {
		return messageReply{a.Message.Exchange.ReplyText, a.Message.Exchange.Warnings}
	},
	spec.EnableSMS: func(a *service.Result, _ string) any { return smsReply{Status: a.Agent.SMS.Status} },
}

// createdAgent returns the body for the creation of an agent.
func createdAgent(a *service.Result) agentReply {
	reply := agentReply{ID: a.Agent.ID, Status: a.Agent.Status}
	if sms := a.Agent.SMS; sms != nil {
		reply.SMS = &smsReply{Status: sms.Status}
	}
	return reply
}

// wholeAgent returns the body for a read: the body of a creation, plus the times and the phone
// number.
func wholeAgent(a *service.Result, times string) any {
	reply := createdAgent(a)
	reply.CreatedAt, reply.UpdatedAt = formatTime(a.Agent.CreatedAt, times), formatTime(a.Agent.UpdatedAt, times)
	if reply.SMS != nil {
		reply.SMS.PhoneNumber = a.Agent.SMS.PhoneNumber
	}
	return reply
}

// storedBYOK returns the body with the stored BYOK configuration, without its label
// (interface 2.4), or with null.
func storedBYOK(a *service.Result, times string) any {
	stored := a.BYOK
	if stored == nil {
		return byokReply{okReply{true}, nil}
	}
	c := &byokConfig{Provider: stored.Provider, Fingerprint: stored.Fingerprint, UpdatedAt: formatTime(stored.UpdatedAt, times)}
	if stored.BaseURL != "" {
		c.BaseURL = &stored.BaseURL
	}
	if stored.Model != "" {
		c.Model = &stored.Model
	}
	return byokReply{okReply{true}, c}
}

// formatTime writes a time in one of the forms of Behavior.Times. The interface shows
// only that it is a string, so numbers are written as strings too.
func formatTime(t time.Time, form string) string {
	switch form {
	case decisions.TimesOffset:
		return t.In(time.FixedZone("", 3600)).Format(time.RFC3339Nano)
	case decisions.TimesSeconds:
		return strconv.FormatInt(t.Unix(), 10)
	case decisions.TimesMilliseconds:
		return strconv.FormatInt(t.UnixMilli(), 10)
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Encode turns the service's decision on a call into status, header and JSON. date is the
// Date header. A success is 200 (interface 4), and every body has the trace identifier.
// It sets the Content-Length, because net/http would otherwise send a long body in
// chunks.
func Encode(req *Request, a *service.Result, behavior *service.Behavior, date string) Answer {
	status, body := http.StatusOK, []byte(nil)
	if a.Refusal == nil {
		body = successBody(req, a, behavior)
	} else {
		status, body = a.Refusal.Status, refusalBody(req, a.Refusal, behavior)
	}
	values := []string{"application/json", date, strconv.Itoa(len(body))} // in one slice, which saves allocations
	h := http.Header{"Content-Type": values[0:1:1], "Date": values[1:2:2], "Content-Length": values[2:3:3]}
	switch status {
	// Three statuses have one more header: RFC 9110 requires it for 401 and 405, interface 7
	// for 429.
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = []string{"Bearer"}
	case http.StatusMethodNotAllowed:
		h["Allow"] = headerValue(a.Refusal.Allow) // none in an injected 405, since no route says what is allowed
	case http.StatusTooManyRequests:
		h["Retry-After"] = []string{strconv.Itoa(a.Refusal.Wait)}
	}
	return Answer{Response: memnet.Response{Status: status, Header: h, Body: body}}
}

// successBody appends the trace identifier as text, so that no reply struct needs a field for it.
// It needs no escapes.
func successBody(req *Request, a *service.Result, behavior *service.Behavior) []byte {
	body, _ := json.Marshal(replies[req.Endpoint](a, behavior.Times)) // never fails for these structs
	return append(body[:len(body)-1], `,"trace_id":"`+req.TraceID+`"}`...)
}

// refusalBody returns the body of an error (interface 2.1).
func refusalBody(req *Request, r *service.Refusal, behavior *service.Behavior) []byte {
	e := errorReply{behavior.ErrorName(r.Code), req.TraceID, behavior.LimitName(r.Limit), ""}
	if behavior.Reason {
		e.Reason = Reason(r)
	}
	body, _ := json.Marshal(e)
	return body
}

// InjectedAnswer is an answer that a test gives in place of the service's answer. It may
// break every rule of the interface.
type InjectedAnswer struct {
	Status int
	// Body is the body; "" means the service's own error body, unless Raw is set or Status
	// is a success. 204 and 304 have no body.
	Body string
	// Raw leaves out every header but ContentType, Content-Length and Date.
	Raw bool
	// ContentType is the Content-Type of a raw answer; "" sends none.
	ContentType string
	// RetryAfter replaces the service's own Retry-After; "" sends none, and nil keeps the
	// service's.
	RetryAfter *string
}

// Encode makes the answer to a request. It starts from the answer that the service
// itself would give with this status, and replaces what the test has named.
func (i *InjectedAnswer) Encode(req *Request, behavior *service.Behavior, now time.Time) Answer {
	a := Encode(req, &service.Result{Refusal: i.refusal(req.Endpoint, now)}, behavior, now.Format(http.TimeFormat))
	// A raw answer has only the parts that the test gave, and a date.
	if i.Raw {
		a.Header = http.Header{"Content-Type": headerValue(i.ContentType), "Date": a.Header["Date"]}
	}
	if i.RetryAfter != nil {
		a.Header["Retry-After"] = headerValue(*i.RetryAfter)
	}
	// An error status without a body keeps the service's own error body.
	if i.Raw || i.Body != "" || i.Status < http.StatusMultipleChoices {
		a.Body, a.FromTest = []byte(i.Body), true
	}
	a.Header["Content-Length"] = headerValue(strconv.Itoa(len(a.Body)))
	if i.Status == http.StatusNoContent || i.Status == http.StatusNotModified { // no body: RFC 9110, 6.4.1
		a.Body, a.Header["Content-Type"], a.Header["Content-Length"] = nil, nil, nil
	}
	return a
}

// refusal returns the refusal that the service itself would make with this status, if
// interface 4 lists it for the endpoint. So a client that switches on error identifiers
// sees the service's own identifiers. For any other status the identifier is its name, such
// as bad_gateway.
func (i *InjectedAnswer) refusal(e *spec.Endpoint, now time.Time) *service.Refusal {
	name := cmp.Or(http.StatusText(i.Status), "status "+strconv.Itoa(i.Status))
	r := &service.Refusal{Status: i.Status, Code: strings.ReplaceAll(strings.ToLower(name), " ", "_"), Broken: "injected by the test"}
	if e != nil && e.Lists(i.Status) {
		r.Code = service.CodeOf(i.Status)
	}
	if i.Status == http.StatusTooManyRequests {
		r.Code, r.Limit, r.Wait, r.Broken = spec.RateLimited, fakenames.KeyMinute, 1, ""
		// A wait of more than a minute belongs to the limit per day.
		if i.RetryAfter != nil && retryafter.Read(http.Header{"Retry-After": {*i.RetryAfter}}, now) > time.Minute {
			r.Limit = fakenames.KeyDay
		}
	}
	return r
}

// headerValue returns the values of a header: one, or none for "". A header without a
// value is not sent, and keeps net/http from guessing a Content-Type.
func headerValue(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// Show returns the first n bytes of the answer's body as a record may show them, at most
// 64 KiB. A body that a test wrote may hold words and keys in any string, so it is hidden
// unless texts are shown.
func (a *Answer) Show(n int, secrets mask.Secrets, showTexts bool) string {
	body := mask.Body{Texts: showTexts, Secrets: secrets, Unchecked: a.FromTest}
	return printable.Clip(body.Show(a.Body, n), decisions.KeptBody)
}

// Reason returns the reason member of an error's body: the field and its bound, if the
// error is about a field. It quotes no value.
func Reason(r *service.Refusal) string {
	reason := cmp.Or(r.Broken, service.Kinds[r.Kind].Reason)
	if r.Field != "" {
		return r.Field + ": " + reason
	}
	return reason
}

// Why says in one sentence why a call was refused, with the numbers that the author of
// a test needs. A client never sees it. It quotes no value of the call.
func Why(r *service.Refusal, now time.Time) string {
	return fmt.Sprintf("%d: %s.", r.Status, why(r, now))
}

// why chooses the sentence by the facts of the Refusal, the most specific fact first.
// Without such a fact it uses the sentence of the kind, or else the reason.
func why(r *service.Refusal, now time.Time) string {
	ago := " " + wholeSeconds(now.Sub(r.Since)) + " ago"
	switch {
	// A text that is too long: both lengths help more than the bound alone.
	case r.Max > 0:
		return fmt.Sprintf("%s has %d characters, %d are allowed", r.Field, r.Length, r.Max)
	case r.Owner != "":
		return "the agent belongs to " + r.Owner
	case r.Kind == service.RevokedKey:
		return r.Key + " was revoked" + ago
	case r.Kind == service.BYOKNotConfigured && !r.Since.IsZero():
		return "the BYOK configuration of " + r.Key + " was cleared" + ago
	case r.Kind == service.RateLimited:
		return whyLimited(r, now)
	}
	return cmp.Or(strings.ReplaceAll(service.Kinds[r.Kind].Why, "KEY", r.Key), Reason(r))
}

// whyLimited explains a 429: whose limit it is, how much of it is used, and when it opens.
// For a limit that Exhaust closed, the number of used calls explains nothing.
func whyLimited(r *service.Refusal, now time.Time) string {
	who := r.Key
	if r.IP.IsValid() {
		who = r.IP.String()
	}
	// In whole seconds, rounded up as in Retry-After, so that a golden file may hold the
	// sentence.
	opens := "it opens in " + (r.State.Opens.Sub(now) + time.Second - 1).Truncate(time.Second).String()
	if r.State.Exhausted {
		return fmt.Sprintf("Exhaust closed %s for %s; %s", r.Limit, r.Key, opens)
	}
	l, what := spec.Limits[spec.LimitIndex(r.Limit)], ""
	window := map[time.Duration]string{time.Minute: "minute", time.Hour: "hour", spec.Day: "day"}[l.Window]
	if l.Counts != spec.Requests {
		what = " " + string(l.Counts)
	}
	return fmt.Sprintf("%s has spent %d of %d%s in this %s; %s", who, r.State.Used, r.State.Max, what, window, opens)
}

// WhyLeft says when the client left, and whether the service had the call by then. So it
// shows whether a timeout came before or after the effect, which a client cannot see.
func WhyLeft(after time.Duration, reached bool) string {
	if !reached {
		return "The client left after " + wholeSeconds(after) + ", before the call reached the service: it had no effect."
	}
	return "The client left after " + wholeSeconds(after) + ", before it had the answer."
}

// wholeSeconds prints a duration in whole seconds, so that a golden file may hold it although
// real time adds some milliseconds to each wait.
func wholeSeconds(d time.Duration) string {
	if d < time.Second {
		return "less than 1s"
	}
	return d.Truncate(time.Second).String()
}
