package agentmessaging

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// encode writes a value as JSON, with <, > and & as they are: nothing here is
// embedded in HTML, and texts stay short.
func encode(value any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// A decoder makes the result of a call of a success body. What it cannot read, it notes
// in reply.err.
type decoder interface{ decode(*reply) (result any) }

// A reader makes a result of a success body, by the names of its members. A missing
// member, or one of another type, fails the reply if its zero value would claim
// something: an empty text, a warm-up that did not happen. Others stay empty: no reply is
// lost for want of a trace_id.
type reader[T any] func(*reply) T

// decode implements decoder.
func (read reader[T]) decode(r *reply) (result any) { return read(r) }

// reply is a JSON object of the service. What the interface may add to it one day
// is passed over.
type reply struct {
	members strictjson.Object
	traceID string
	agentID string // of an agent that was made or read
	err     error  // why it is no object, or what is wrong with the first wrong member
}

func newReply(body []byte) *reply {
	members, err := strictjson.ReadObject(body)
	return &reply{members: members, traceID: traceIDOf(members), err: err}
}

// fail keeps the first error.
func (r *reply) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// need returns the value of a member without which the result would say nothing, or
// claim something. null is as good as missing.
func (r *reply) need(name string) []byte {
	value, err := r.members.Get(name)
	switch {
	case err != nil:
		r.fail(err)
	case value == nil || string(value) == "null":
		r.fail(errors.New(name + " is missing"))
	default:
		return value
	}
	return nil
}

// text reads a string; "" if it is missing, there twice or of another type: no reply is
// lost for that.
func (r *reply) text(name string) string {
	value, _ := r.members.Get(name)
	s, _ := strictjson.String(value)
	return s
}

// needText reads a string that may be empty.
func (r *reply) needText(name string) string {
	value := r.need(name)
	s, ok := strictjson.String(value)
	if value != nil && !ok {
		r.fail(errors.New(name + " is not a string"))
	}
	return s
}

// needName reads a string that is not empty.
func (r *reply) needName(name string) string {
	s := r.needText(name)
	if s == "" {
		r.fail(errors.New(name + " is missing"))
	}
	return s
}

// needFlag reads a boolean.
func (r *reply) needFlag(name string) bool {
	value := string(r.need(name))
	if value != "" && value != "true" && value != "false" {
		r.fail(errors.New(name + " is not a boolean"))
	}
	return value == "true"
}

// object reads an object inside; false if there is none, or there are two.
func (r *reply) object(name string) (*reply, bool) {
	value, _ := r.members.Get(name)
	members, err := strictjson.ReadObject(value)
	return &reply{members: members}, err == nil
}

// texts reads the strings of an optional array, without the empty ones.
func (r *reply) texts(name string) (texts []string) {
	value, _ := r.members.Get(name)
	if value == nil {
		return nil
	}
	var entries []any
	_ = json.Unmarshal(value, &entries)
	for _, entry := range entries {
		if s, _ := entry.(string); s != "" {
			texts = append(texts, s)
		}
	}
	return texts
}

// memberTraceID is in every body, of a success and of an error.
const memberTraceID = "trace_id"

// traceIDOf reads the trace_id, which every success body has (interface 4). A
// number will do: it is there to be quoted.
func traceIDOf(members strictjson.Object) string {
	value, _ := members.Get(memberTraceID)
	if len(value) > 0 && strings.IndexByte("-0123456789", value[0]) >= 0 {
		return string(value)
	}
	id, _ := strictjson.String(value)
	return id
}
