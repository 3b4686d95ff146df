package openapi_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

const (
	documentFile = "../../openapi/openapi.yaml"
	controlFile  = "../../cmd/agentmessaging-fake/internal/control/openapi.yaml"
)

// load reads a document, which is valid, its examples included.
func load(t testing.TB, file string) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(file)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	return doc
}

// operation is one of the document, and its place there.
type operation struct {
	*openapi3.Operation
	call string // "GET /v1/status"
}

func operations(doc *openapi3.T) []operation {
	var all []operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, operation{op, method + " " + path})
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.OperationID, b.OperationID) })
	return all
}

// jsonSchema is the schema of the only media type there is.
func jsonSchema(content openapi3.Content) *openapi3.Schema {
	media := content["application/json"]
	if len(content) != 1 || media == nil || media.Schema == nil {
		return nil
	}
	return media.Schema.Value
}

// TestEveryCall: the endpoints and statuses of interface 4, a bearer credential for
// each (5), and Retry-After for 429 and no other header (7).
func TestEveryCall(t *testing.T) {
	doc := load(t, documentFile)
	assert.Equal(t, openapi3.SecurityRequirements{{"bearer": {}}}, doc.Security)
	scheme := doc.Components.SecuritySchemes["bearer"].Value
	assert.Equal(t, []string{"http", "bearer"}, []string{scheme.Type, scheme.Scheme})
	want := map[string][]int{}
	for _, e := range spec.Endpoints {
		want[e.Name+" is "+e.Call] = slices.Sorted(slices.Values(append([]int{200}, e.Errors...)))
	}
	got := map[string][]int{}
	for _, op := range operations(doc) {
		assert.Nil(t, op.Security, "%s has a rule of its own", op.OperationID)
		var statuses []int
		for text, res := range op.Responses.Map() {
			status, err := strconv.Atoi(text)
			require.NoError(t, err)
			statuses = append(statuses, status)
			assert.Equal(t, status == 429, len(res.Value.Headers) > 0, "%s %s", op.OperationID, text)
			for name, header := range res.Value.Headers {
				assert.Equal(t, "Retry-After true", fmt.Sprint(name, " ", header.Value.Required), "%s %s", op.OperationID, text)
			}
		}
		got[op.OperationID+" is "+op.call] = slices.Sorted(slices.Values(statuses))
	}
	assert.Equal(t, want, got)
}

// TestDefaults of interface 2.3 and 4.2, which no run shows.
func TestDefaults(t *testing.T) {
	schemas := load(t, documentFile).Components.Schemas
	for member, want := range map[string]string{"WarmUpRequest.mode": "hosted", "AgentLlm.mode": "hosted", "AgentLlm.tier": "fast"} {
		object, name, _ := strings.Cut(member, ".")
		assert.Equal(t, want, schemas[object].Value.Properties[name].Value.Default, member)
	}
}

// A run against a service that answers well shows only that the document is
// not too narrow. That it is not too wide these tables show: a line is a
// member, its type or its values, and whether null will do and whether it may
// be absent. They are read from the interface once more. "closed" takes no
// other members, "open" says that it takes them.
var successes = map[string]string{
	"Status": `closed
		ok boolean
		service string
		version string
		mode string
		trace_id string`,
	"WarmUp": `object
		ok boolean
		warmed boolean
		mode hosted|byok
		trace_id string`,
	"GetBYOK": `object
		ok boolean
		byok closed null` + stored,
	"SetBYOK": `object
		ok boolean
		byok closed` + stored,
	"ClearBYOK": `object
		ok boolean
		trace_id string`,
	"CreateAgent": `object
		agent_id string
		status active
		sms object optional
		sms.status disabled|needs_compliance|pending|active|needs_setup optional
		trace_id string`,
	"GetAgent": `object
		agent_id string
		status string
		created_at string
		updated_at string
		sms object optional
		sms.status string
		sms.phone_number string optional
		trace_id string`,
	"SendMessage": `object
		reply_text string
		warnings strings optional
		trace_id string`,
	"EnableSMS": `object
		status disabled|needs_compliance|pending|active|needs_setup
		trace_id string`,
}

const (
	stored = `
		byok.provider openai_compat|openai|anthropic
		byok.base_url string null optional
		byok.model string null optional
		byok.fingerprint string
		byok.updated_at string
		trace_id string`
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

// TestReplies: the schema of each reply is what the interface lets the service
// answer.
func TestReplies(t *testing.T) {
	for _, op := range operations(load(t, documentFile)) {
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
			want := strings.Split(strings.ReplaceAll(table, "\t", ""), "\n")
			slices.Sort(want[1:])
			assert.Equal(t, want, append([]string{kind(schema)}, members("", schema)...), "%s %s", op.OperationID, status)
		}
	}
}

// members are the lines of an object's members, sorted.
func members(prefix string, object *openapi3.Schema) (lines []string) {
	for name, ref := range object.Properties {
		member, line := ref.Value, prefix+name
		null := len(member.OneOf) == 2 && member.OneOf[1].Value.Type.Is("null")
		if null {
			member = member.OneOf[0].Value
		}
		line += " " + kind(member)
		if null || member.Type.Includes("null") {
			line += " null"
		}
		if !slices.Contains(object.Required, name) {
			line += " optional"
		}
		lines = append(append(lines, line), members(prefix+name+".", member)...)
	}
	slices.Sort(lines)
	return lines
}

// kind is a schema's type or values. A schema that says more than a test reads
// is shown as it is.
func kind(s *openapi3.Schema) string {
	known := &openapi3.Schema{
		Title: s.Title, Description: s.Description, Type: s.Type, Enum: s.Enum, Required: s.Required,
		Properties: s.Properties, AdditionalProperties: s.AdditionalProperties, Items: s.Items, Extensions: s.Extensions, Origin: s.Origin,
	}
	var values []string
	for _, value := range s.Enum {
		values = append(values, fmt.Sprint(value))
	}
	switch more := s.AdditionalProperties.Has; {
	case !reflect.DeepEqual(s, known):
		return fmt.Sprintf("%+v", s)
	case s.Type.Is("object") && more == nil:
		return "object"
	case s.Type.Is("object"):
		return map[bool]string{true: "open", false: "closed"}[*more]
	case s.Type.Is("array"):
		return kind(s.Items.Value) + "s"
	case len(values) > 0:
		return strings.Join(values, "|")
	}
	return s.Type.Slice()[0]
}
