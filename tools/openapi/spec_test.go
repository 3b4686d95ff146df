package openapi_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// TestSpec compares the requests of the document with the tables that the
// client's validation and the fake's rules read. A member's line is as in
// TestReplies.
func TestSpec(t *testing.T) {
	var ofDocument, ofSpec []string
	for _, op := range operations(document(t)) {
		lines := []string{op.OperationID + " is " + op.method + " " + op.path}
		for status := range op.Responses.Map() {
			lines = append(lines, "may answer "+status)
		}
		if body := op.body(); body != nil {
			lines = append(lines, fmt.Sprint("takes a body, required: ", op.RequestBody.Value.Required))
			lines = append(lines, members("", body)...)
		}
		slices.Sort(lines[1:])
		ofDocument = append(ofDocument, strings.Join(lines, "\n"))
	}
	for _, e := range spec.Endpoints {
		lines := []string{e.Name + " is " + e.Call, "may answer 200"}
		for _, status := range e.Errors {
			lines = append(lines, "may answer "+strconv.Itoa(status))
		}
		if e.Body != nil {
			lines = append(lines, fmt.Sprint("takes a body, required: ", !e.BodyOptional))
			lines = append(lines, fieldLines(e.Name, e.Body)...)
		}
		slices.Sort(lines[1:])
		ofSpec = append(ofSpec, strings.Join(lines, "\n"))
	}
	slices.Sort(ofSpec)
	assert.Equal(t, ofSpec, ofDocument, "expected is internal/spec, actual is openapi.yaml")
}

// defaults are those of interface 2.3 and 4.2, which no table needs.
var defaults = map[string]string{"WarmUp.mode": "hosted", "CreateAgent.llm.mode": "hosted", "CreateAgent.llm.tier": "fast"}

func fieldLines(endpoint string, fields []*spec.Field) (lines []string) {
	for _, f := range fields {
		line := f.Path + " " + map[spec.Kind]string{spec.String: "string", spec.Object: "closed", spec.FreeObject: "open"}[f.Kind]
		if f.Enum != nil {
			line = f.Path + " " + strings.Join(f.Enum, "|")
		}
		if f.MaxLen != 0 {
			line += fmt.Sprint(" at most ", f.MaxLen)
		}
		if value := defaults[endpoint+"."+f.Path]; value != "" {
			line += " default " + value
		}
		if !f.Required {
			line += " optional"
		}
		lines = append(append(lines, line), fieldLines(endpoint, f.Fields)...)
	}
	return lines
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
	var want []string
	for _, l := range spec.Limits {
		per := map[bool]string{true: "ip", false: "key"}[l.PerIP]
		want = append(want, fmt.Sprint([]any{l.Max, limiters[l.Key], per, l.Window.Seconds()}))
	}
	assert.Equal(t, want, extension(t, "x-limits", "max", "of", "per", "seconds"))
}

// TestSpecPlans compares interface 8.2, which the document holds in x-plans;
// the preview defaults are x-limits.
func TestSpecPlans(t *testing.T) {
	var want []string
	for _, p := range spec.Plans[1:] {
		want = append(want, fmt.Sprint([]any{p.Name, p.Active, p.Caps}))
	}
	assert.Equal(t, want, extension(t, "x-plans", "plan", "active", "max"))
	assert.Equal(t, spec.Plan{Name: "preview", Active: true}, spec.Plans[0])
}

// extension has these members of each row of a list at the top of the document.
func extension(t *testing.T, name string, of ...string) (rows []string) {
	t.Helper()
	list, _ := document(t).Extensions[name].([]any)
	require.NotEmpty(t, list, name)
	for _, item := range list {
		var row []any
		for _, member := range of {
			row = append(row, item.(map[string]any)[member])
		}
		rows = append(rows, fmt.Sprint(row))
	}
	return rows
}
