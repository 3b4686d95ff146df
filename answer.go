package agentmessaging

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// This file reads answers: the body of a success, and the body of an error.

// answerBody is the JSON object in an answer's body. A reader takes the members that it knows
// by name and ignores the others, which the interface may add one day.
//
// A member that is missing or of another type sets err if its zero value would say
// something false, such as that a reply is empty or that no warm-up happened. Other such
// members read as empty: a call does not fail because its trace_id is missing.
type answerBody struct {
	members strictjson.Object
	traceID string
	agentID string // set by readAgent
	err     error  // the first error: the body is not an object, or a needed member is wrong
}

// parseBody reads a body and its trace_id. It accepts a number as the trace_id, because
// people only quote it.
func parseBody(text []byte) *answerBody {
	members, err := strictjson.ReadObject(text)
	b := &answerBody{members: members, err: err}
	id, _ := members.Get(memberTraceID)
	b.traceID, _ = strictjson.String(id)
	if len(id) > 0 && strings.IndexByte("-0123456789", id[0]) >= 0 {
		b.traceID = string(id)
	}
	return b
}

// fail keeps the first error.
func (b *answerBody) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// text reads an optional string: "" if it is missing, duplicated or of another type.
func (b *answerBody) text(name string) string {
	value, _ := b.members.Get(name)
	s, _ := strictjson.String(value)
	return s
}

// needText reads a string that must be there, but may be empty.
func (b *answerBody) needText(name string) string {
	value, duplicate := b.members.Get(name)
	s, ok := strictjson.String(value)
	if !ok {
		b.fail(cmp.Or(duplicate, errors.New(name+" is missing or not a string")))
	}
	return s
}

// needNonEmpty reads a string that must be there and not empty.
func (b *answerBody) needNonEmpty(name string) string {
	s := b.needText(name)
	if s == "" {
		b.fail(errors.New(name + " is empty"))
	}
	return s
}

// needBool reads a boolean that must be there.
func (b *answerBody) needBool(name string) bool {
	value, duplicate := b.members.Get(name)
	isTrue := string(value) == "true"
	if !isTrue && string(value) != "false" {
		b.fail(cmp.Or(duplicate, errors.New(name+" is missing or not a boolean")))
	}
	return isTrue
}

// object reads a member that is an object. It reports false if the member is missing,
// duplicated or of another type.
func (b *answerBody) object(name string) (answerBody, bool) {
	value, _ := b.members.Get(name)
	members, err := strictjson.ReadObject(value)
	return answerBody{members: members}, err == nil
}

// texts reads the strings of an optional array. It drops entries of another type.
func (b *answerBody) texts(name string) (texts []string) {
	value, _ := b.members.Get(name)
	if value == nil {
		return nil
	}
	var entries []any
	_ = json.Unmarshal(value, &entries)
	for _, entry := range entries {
		if s, ok := entry.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// readError reads the body of an error (interface 2.1). If the body has another shape, it
// quotes a proxy's message, but no text that may echo the request.
func readError(a exchange.Answer, secrets *redact.Redactor) *Error {
	body := parseBody(a.Body)
	e := &Error{
		Code: body.text(memberError), TraceID: body.traceID, LimitKey: body.text(memberLimitKey), Reason: body.text(memberReason),
		Extra: unlisted(body.members, secrets),
	}
	e.redact(secrets)
	switch location := a.Header.Get("Location"); {
	case a.Status/100 == 3 && location != "":
		e.cause = fmt.Errorf("redirect to %s was not followed", secrets.Hide(hostOf(location), redact.InAnswer))
	case body.err != nil:
		e.cause = bodyError(a, body.err, secrets)
	case e.Code == "": // gateways and other services write {"message": ...} or {"error": {"message": ...}}
		inner, _ := body.object(memberError)
		if words := secrets.Quote(cmp.Or(body.text("message"), inner.text("message"))); words != "" {
			e.cause = errors.New(words)
		}
	}
	return e
}

// redact takes the secrets out of the members that the interface lists, and bounds the
// length of the names.
func (e *Error) redact(secrets *redact.Redactor) {
	e.Code, e.Reason = secrets.Hide(e.Code, redact.InName), secrets.Hide(e.Reason, redact.InAnswer)
	e.TraceID = printable.Line(secrets.Hide(e.TraceID, redact.InName), maxTraceID)
	e.LimitKey = printable.Line(secrets.Hide(e.LimitKey, redact.InName), printable.MaxName)
}

// unlisted returns the members that the interface does not list, and listed members that are
// not a string or appear twice; nil if there are none.
func unlisted(members strictjson.Object, secrets *redact.Redactor) (kept map[string]json.RawMessage) {
	for _, m := range members {
		isText := m.Value[0] == '"' || m.Value[0] == 'n' // null counts as missing
		if i := slices.Index(errorMembers, string(m.Name)); isText && i >= 0 {
			if _, duplicate := members.Get(errorMembers[i]); duplicate == nil {
				continue
			}
		}
		if kept == nil {
			kept = make(map[string]json.RawMessage)
		}
		kept[secrets.Hide(strings.ToValidUTF8(string(m.Name), "\ufffd"), redact.InName)] = secrets.JSON(m.Value)
	}
	return kept
}

// The members of ErrorResponse (interface 2.1).
const memberError, memberTraceID, memberLimitKey, memberReason = "error", "trace_id", "limit_key", "reason"

var errorMembers = []string{memberError, memberTraceID, memberLimitKey, memberReason}

// bodyError describes a body that is not the documented one. It quotes a proxy's message
// unless the message may repeat the request. Otherwise it says why the body was cut, or
// else quotes err, the reason why the body could not be read.
func bodyError(a exchange.Answer, err error, secrets *redact.Redactor) error {
	found := "the body is not the documented JSON"
	if strings.HasPrefix(http.DetectContentType(a.Body), "text/html") {
		found = "the body is HTML, probably a page of a proxy"
	}
	words := secrets.Quote(string(a.Body))
	switch {
	case errors.As(err, new(unconfirmed)): // its text needs no addition
		return err
	case words != "":
		return fmt.Errorf("%s: %q", found, words)
	case a.BodyErr != nil: // not wrapped, because it is not why the call failed
		return fmt.Errorf("%s: %s", found, secrets.Error(isOwn, a.BodyErr))
	case len(a.Body) == 0:
		return errors.New("the body is empty")
	}
	return fmt.Errorf("%s: %w", found, err)
}

// unconfirmed is the error of a success whose JSON object does not confirm that the
// service did what was asked. For classify the answer is not lost, so the call is not retried: a
// retry could store a key again, which spends another BYOK set.
type unconfirmed string

func (u unconfirmed) Error() string { return "the service answered " + string(u) }

// hostOf returns the host of a redirect. It drops path and query, which may hold a
// credential.
func hostOf(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return "an address that cannot be read"
	}
	return cmp.Or(u.Host, "the same host")
}
