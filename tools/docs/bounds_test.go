package docs_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

func boundTable() string {
	rows := [][]string{{"Method", "Member", "Required", "Characters", "Values"}}
	for _, e := range spec.Endpoints {
		for _, f := range leaves(e.Body) {
			rows = append(rows, []string{code(e.Name), code(f.Path), required(f), longest(f), values(f)})
		}
	}
	return markdown(rows...)
}

// leaves are the fields that hold values, in order.
func leaves(fields []*spec.Field) []*spec.Field {
	var found []*spec.Field
	for _, f := range fields {
		if f.Kind == spec.Object {
			found = append(found, leaves(f.Fields)...)
			continue
		}
		found = append(found, f)
	}
	return found
}

func required(f *spec.Field) string {
	parent, _, nested := strings.Cut(f.Path, ".")
	switch {
	case f == spec.LLMProvider:
		return "with " + code(spec.LLMAPIKey.Path) // interface 2.3
	case f.Required && nested:
		return "in " + code(parent)
	case f.Required:
		return "yes"
	}
	return ""
}

func longest(f *spec.Field) string {
	if f.MaxLen == 0 {
		return ""
	}
	return "at most " + thousands(f.MaxLen)
}

func values(f *spec.Field) string {
	if f.Kind == spec.FreeObject {
		return "a JSON object; its size is capped, the cap is not shown"
	}
	return f.Values()
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
