package agentmessaging

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// encode writes value as JSON, with <, > and & as they are: nothing here is
// embedded in HTML, and texts stay short. json.Marshal, which would escape them,
// is the cheaper way where there are none.
func encode(value any) ([]byte, error) {
	body, err := json.Marshal(value)
	if err == nil && bytes.Contains(body, []byte(`\u00`)) {
		return encodeUnescaped(value)
	}
	return body, err
}

func encodeUnescaped(value any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// addMember adds a member that is JSON already to an object.
func addMember(object []byte, name string, value json.RawMessage) []byte {
	begin := object[:len(object)-1]
	if len(begin) > 1 {
		begin = append(begin, ',')
	}
	return slices.Concat(begin, []byte(`"`+name+`":`), value, []byte("}"))
}

// answer is an A, the wire form of a success body, which becomes a T.
type answer[T, A any] interface {
	*A
	// result converts the body. A member that is missing fails it where the
	// result would say what the service did not: that a text is empty, that
	// nothing was warmed. Others come empty: no reply is lost for want of a
	// trace_id.
	result() (T, error)
	traceID() string
}

// envelope is the member that every success body has (interface 4).
type envelope struct {
	TraceID string `json:"trace_id"`
}

func (e *envelope) traceID() string { return e.TraceID }

// nullable is a member for which null says something else than its absence.
type nullable[T any] struct {
	present bool
	value   *T    // nil: null
	err     error // it is of the wrong type
}

// UnmarshalJSON implements json.Unmarshaler, which is asked for null too. It keeps
// its error: one that it returns would leave the members behind it unread.
func (n *nullable[T]) UnmarshalJSON(raw []byte) error {
	n.present, n.err = true, json.Unmarshal(raw, &n.value)
	return nil
}

// A decoder reads the success body of an endpoint.
type decoder interface {
	decode(body []byte) (result any, traceID string, err error)
}

// decoderOf reads an A into a T. It is no function, for which every call would
// need memory.
type decoderOf[T, A any, P answer[T, A]] struct{}

// decode fails where a member is of the wrong type, unless the result can do without
// it: what the interface requires is then not there. encoding/json leaves such a
// member out, reads the others and tells of the first one only.
func (decoderOf[T, A, P]) decode(body []byte) (result any, traceID string, err error) {
	a := P(new(A))
	if err = json.Unmarshal(body, a); err != nil {
		err = json.Unmarshal(indispensable(body), P(new(A)))
	}
	if err == nil {
		result, err = a.result()
	}
	if err != nil {
		return nil, a.traceID(), err
	}
	return result, a.traceID(), nil
}

// indispensable is an object without the members that the interface calls optional
// (4.6 to 4.8) and the trace_id, in any case of their names, as encoding/json reads
// them.
func indispensable(object json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return object
	}
	for name, member := range members {
		switch strings.ToLower(name) {
		case "sms":
			if members[name] = indispensable(member); member[0] != '{' {
				delete(members, name)
			}
		case "phone_number", "warnings", "trace_id":
			delete(members, name)
		}
	}
	rest, _ := json.Marshal(members)
	return rest
}

// errorBody is ErrorResponse (interface 2.1).
type errorBody struct {
	Code     string `json:"error"`
	TraceID  string `json:"trace_id"`
	LimitKey string `json:"limit_key"`
	Reason   string `json:"reason"`
}

// read also returns the members that the interface does not list, and those of
// another type than it says. Few bodies have any: the others are read at once.
func (b *errorBody) read(body []byte) (extra map[string]json.RawMessage, err error) {
	if json.Unmarshal(body, b) == nil && b.isAllOf(body) {
		return nil, nil
	}
	*b = errorBody{}
	if err := json.Unmarshal(body, &extra); err != nil {
		return nil, err
	}
	if extra == nil {
		return nil, errors.New("not an object")
	}
	for name, into := range map[string]*string{"error": &b.Code, "trace_id": &b.TraceID, "limit_key": &b.LimitKey, "reason": &b.Reason} {
		if raw, has := extra[name]; has && json.Unmarshal(raw, into) == nil {
			delete(extra, name)
		} else if name == "trace_id" {
			b.TraceID = numeral(raw) // there to be quoted
		}
	}
	return extra, nil
}

// numeral is a JSON number as it was written; "" if it is none.
func numeral(raw json.RawMessage) string {
	var number json.Number
	_ = json.Unmarshal(raw, &number)
	return number.String()
}

// isAllOf reports that body has no other members: then it has no other colons.
func (b *errorBody) isAllOf(body []byte) bool {
	members := 0
	for _, member := range []string{b.Code, b.TraceID, b.LimitKey, b.Reason} {
		if member != "" {
			members++
		}
	}
	return members > 0 && members == bytes.Count(body, []byte(":"))
}
