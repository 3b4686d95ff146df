package openapi_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// facts are sentences about the interface. What one side says and the other
// does not is a difference between them, whichever of the two is wrong.
type facts map[string]bool

func (f facts) add(format string, args ...any) { f[fmt.Sprintf(format, args...)] = true }

// agree fails for each sentence that only one of them says.
func agree(t *testing.T, ofDocument, ofSpec facts) {
	t.Helper()
	assert.NotEmpty(t, ofDocument)
	assert.Equal(t, ofSpec, ofDocument, "expected is internal/spec, actual is openapi.yaml")
}

// TestSpec compares the document with the tables that the client's validation
// and the fake's rules read.
func TestSpec(t *testing.T) {
	ofDocument, ofSpec := facts{}, facts{}
	for _, op := range operations(document(t)) {
		op.tell(ofDocument)
	}
	for _, e := range spec.Endpoints {
		tellEndpoint(ofSpec, e)
	}
	agree(t, ofDocument, ofSpec)
}

func (op operation) tell(f facts) {
	name := op.OperationID
	f.add("%s is %s %s", name, op.method, op.path)
	for status := range op.Responses.Map() {
		f.add("%s may answer %s", name, status)
	}
	if op.RequestBody != nil {
		f.add("%s takes a body, required: %t", name, op.RequestBody.Value.Required)
		tellMembers(f, name+": ", op.body())
	}
}

func tellMembers(f facts, prefix string, object *openapi3.Schema) {
	for name, ref := range object.Properties {
		member, at := ref.Value, prefix+name
		f.add("%s is one of %v", at, *member.Type)
		if slices.Contains(object.Required, name) {
			f.add("%s is required", at)
		}
		if member.MaxLength != nil {
			f.add("%s has at most %d code points", at, *member.MaxLength)
		}
		for _, value := range member.Enum {
			f.add("%s may be %v", at, value)
		}
		if member.Type.Is("object") {
			f.add("%s takes other members: %t", at, !closed(member))
			tellMembers(f, at+".", member)
		}
		tellOther(f, at, member)
	}
}

// tellOther tells what internal/spec has no words for: nothing of the kind is
// in the interface.
func tellOther(f facts, at string, member *openapi3.Schema) {
	if member.MinLength != 0 || member.Pattern != "" || member.Format != "" || member.Const != nil {
		f.add("%s has a least length, a pattern, a format or one value only", at)
	}
}

func closed(object *openapi3.Schema) bool {
	return object.AdditionalProperties.Has != nil && !*object.AdditionalProperties.Has
}

func tellEndpoint(f facts, e *spec.Endpoint) {
	f.add("%s is %s %s", e.Name, e.Method, e.Path)
	for _, status := range append([]int{200}, e.Errors...) {
		f.add("%s may answer %d", e.Name, status)
	}
	if e.Body != nil {
		f.add("%s takes a body, required: %t", e.Name, !e.BodyOptional)
	}
	for _, field := range e.Body {
		tellField(f, e.Name+": ", field)
	}
}

var typeNames = map[spec.Kind]string{spec.String: "string", spec.Object: "object", spec.FreeObject: "object"}

func tellField(f facts, prefix string, field *spec.Field) {
	at := prefix + field.Path
	f.add("%s is one of [%s]", at, typeNames[field.Kind])
	if field.Required {
		f.add("%s is required", at)
	}
	if field.MaxLen != 0 {
		f.add("%s has at most %d code points", at, field.MaxLen)
	}
	for _, value := range field.Enum {
		f.add("%s may be %s", at, value)
	}
	if field.Kind != spec.String {
		f.add("%s takes other members: %t", at, field.Kind == spec.FreeObject)
	}
	for _, inner := range field.Fields {
		tellField(f, prefix, inner)
	}
}

// limiters is what x-limits calls the limiters, whose names in internal/spec
// are the fake's: the interface shows none.
var limiters = map[spec.LimitKey]string{
	spec.KeyMinute: "requests", spec.IPMinute: "requests", spec.KeyDay: "requests",
	spec.AgentCreateKeyDay: "agent creations", spec.AgentCreateIPMinute: "agent creations",
	spec.BYOKSetKeyHour: "BYOK sets", spec.WarmUpKeyHour: "warm-ups",
}

// TestSpecLimits compares interface 8.1, which OpenAPI has no words for and
// the document holds in x-limits.
func TestSpecLimits(t *testing.T) {
	ofDocument, ofSpec := facts{}, facts{}
	const sentence = "limit %d: %v %v, per %v in %v seconds"
	for i, row := range extension(t, "x-limits") {
		ofDocument.add(sentence, i, row["max"], row["of"], row["per"], row["seconds"])
	}
	for i, l := range spec.Limits {
		per := map[bool]string{true: "ip", false: "key"}[l.PerIP]
		ofSpec.add(sentence, i, l.Max, limiters[l.Key], per, l.Window.Seconds())
	}
	agree(t, ofDocument, ofSpec)
}

// TestSpecPlans compares interface 8.2, which the document holds in x-plans;
// the preview defaults are x-limits.
func TestSpecPlans(t *testing.T) {
	ofDocument, ofSpec := facts{}, facts{}
	const sentence = "plan %v, active %v: at most %v of the limits on requests"
	for _, row := range extension(t, "x-plans") {
		ofDocument.add(sentence, row["plan"], row["active"], row["max"])
	}
	for _, p := range spec.Plans[1:] {
		ofSpec.add(sentence, p.Name, p.Active, p.Caps)
	}
	agree(t, ofDocument, ofSpec)
	assert.Equal(t, spec.Plan{Name: "preview", Active: true}, spec.Plans[0])
}

// extension is a list of objects at the top of the document.
func extension(t *testing.T, name string) []map[string]any {
	t.Helper()
	list, _ := document(t).Extensions[name].([]any)
	var rows []map[string]any
	for i := range list {
		row, ok := list[i].(map[string]any)
		assert.True(t, ok, "%s, row %s", name, strconv.Itoa(i))
		rows = append(rows, row)
	}
	return rows
}
