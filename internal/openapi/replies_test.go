package openapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A run against a service that answers well shows only that the document is
// not too narrow. That it is not too wide these tables show, one wrong thing
// at a time: a line is a member, its type or its values, and whether null will
// do and whether it may be absent. They are read from the interface once more.
var successes = map[string]string{
	"Status": `closed
		ok boolean
		service string
		version string
		mode string
		trace_id string`,
	"WarmUp": `open
		ok boolean
		warmed boolean
		mode hosted|byok
		trace_id string`,
	"GetBYOK": `open
		ok boolean
		byok closed null
		byok.provider openai_compat|openai|anthropic
		byok.base_url string null optional
		byok.model string null optional
		byok.fingerprint string
		byok.updated_at string
		trace_id string`,
	"SetBYOK": `open
		ok boolean
		byok closed
		byok.provider openai_compat|openai|anthropic
		byok.base_url string null optional
		byok.model string null optional
		byok.fingerprint string
		byok.updated_at string
		trace_id string`,
	"ClearBYOK": `open
		ok boolean
		trace_id string`,
	"CreateAgent": `open
		agent_id string
		status active
		sms open optional
		sms.status disabled|needs_compliance|pending|active|needs_setup optional
		trace_id string`,
	"GetAgent": `open
		agent_id string
		status string
		created_at string
		updated_at string
		sms open optional
		sms.status string
		sms.phone_number string optional
		trace_id string`,
	"SendMessage": `open
		reply_text string
		warnings strings optional
		trace_id string`,
	"EnableSMS": `open
		status disabled|needs_compliance|pending|active|needs_setup
		trace_id string`,
}

const (
	failure = `open
		error string
		trace_id string optional
		limit_key string optional
		reason string optional`
	limited = `open
		error rate_limited
		trace_id string
		limit_key string
		reason string optional`
)

// TestReplies: the schema of each reply accepts what the interface lets the
// service answer, and nothing else.
func TestReplies(t *testing.T) {
	for _, op := range operations(document(t)) {
		for status, res := range op.Responses.Map() {
			table := failure
			switch status {
			case "200":
				table = successes[op.OperationID]
			case "429":
				table = limited
			}
			schema := jsonSchema(res.Value.Content)
			require.NotNil(t, schema, "%s %s", op.OperationID, status)
			t.Run(op.OperationID+"/"+status, func(t *testing.T) { wantShape(t, schema, membersOf(table)) })
		}
	}
}

// TestErrorBodyIsOpen: interface 2.1 says so, where elsewhere it only does not
// say the contrary. Generators tell the two apart.
func TestErrorBodyIsOpen(t *testing.T) {
	for _, op := range operations(document(t)) {
		for status, res := range op.Responses.Map() {
			more := jsonSchema(res.Value.Content).AdditionalProperties.Has
			assert.Equal(t, status != "200", more != nil && *more, "%s %s", op.OperationID, status)
		}
	}
}

// wantShape tries the members one by one, the others being right.
func wantShape(t *testing.T, schema *openapi3.Schema, members []member) {
	valid := func(v any) bool { return fits(t, schema, asJSON(t, v)) == nil }
	require.NoError(t, fits(t, schema, asJSON(t, whole(members))))
	for _, m := range members {
		if m.object() {
			assert.Equal(t, m.kind == "open", valid(with(members, m.path+".unknown", 1)), "a further member of %q", m.path)
		}
		if m.path == "" {
			continue
		}
		assert.Equal(t, m.optional, valid(with(members, m.path, absent)), "%s absent", m.path)
		for _, v := range append(m.probes(), memberOf(schema, m.path).Enum...) {
			assert.Equal(t, m.accepts(v), valid(with(members, m.path, v)), "%s: %#v", m.path, v)
		}
	}
}

// memberOf is the schema of the member at a path; where one of several will
// do, of the first.
func memberOf(schema *openapi3.Schema, path string) *openapi3.Schema {
	for name := range strings.SplitSeq(path, ".") {
		if len(schema.OneOf) > 0 {
			schema = schema.OneOf[0].Value
		}
		schema = schema.Properties[name].Value
	}
	return schema
}

// member is a line of a table; the first has the path "".
type member struct {
	path, kind     string
	null, optional bool
}

func membersOf(table string) []member {
	var members []member
	for i, line := range strings.Split(table, "\n") {
		words := strings.Fields(line)
		if i == 0 {
			words = append([]string{""}, words...)
		}
		m := member{path: words[0], kind: words[1]}
		m.null, m.optional = slices.Contains(words, "null"), slices.Contains(words, "optional")
		members = append(members, m)
	}
	return members
}

func (m member) object() bool { return m.kind == "open" || m.kind == "closed" }

// right is a value that the member takes; those of an object are filled in
// after it.
func (m member) right() any {
	switch {
	case m.object():
		return map[string]any{}
	case m.kind == "boolean":
		return true
	case m.kind == "strings":
		return []any{"x"}
	default:
		return strings.Split(m.kind, "|")[0]
	}
}

// probes are a value of each JSON type, and of strings the empty, a strange, a
// long one and those that are documented.
func (m member) probes() []any {
	probes := []any{nil, 1, 1.5, false, []any{}, []any{"x", ""}, []any{1}, []any{nil}, "", "x", strings.Repeat("x", 10_000)}
	for _, value := range strings.Split(m.kind, "|") {
		probes = append(probes, value, strings.ToUpper(value))
	}
	if !m.object() {
		probes = append(probes, map[string]any{})
	}
	return probes
}

func (m member) accepts(v any) bool {
	switch v := v.(type) {
	case nil:
		return m.null
	case bool:
		return m.kind == "boolean"
	case string:
		return m.kind == "string" || !m.isType() && slices.Contains(strings.Split(m.kind, "|"), v)
	case []any:
		return m.kind == "strings" && !slices.ContainsFunc(v, func(item any) bool { _, is := item.(string); return !is })
	default:
		return false
	}
}

func (m member) isType() bool {
	return m.object() || m.kind == "boolean" || m.kind == "strings" || m.kind == "string"
}

// absent, as a value, leaves the member out.
var absent = new(struct{})

// whole is a reply with every member.
func whole(members []member) map[string]any {
	all := map[string]any{}
	for _, m := range members[1:] {
		set(all, m.path, m.right())
	}
	return all
}

func with(members []member, path string, v any) map[string]any {
	reply := whole(members)
	set(reply, strings.TrimPrefix(path, "."), v)
	return reply
}

func set(object map[string]any, path string, v any) {
	for {
		name, rest, inside := strings.Cut(path, ".")
		if !inside {
			break
		}
		object, path = object[name].(map[string]any), rest
	}
	if object[path] = v; v == absent {
		delete(object, path)
	}
}
