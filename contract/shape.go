package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// check says what is wrong with a decoded JSON value, or "".
type check func(v any) string

// shape is the members of an object; one whose name ends in "?" may be absent.
type shape map[string]check

// open checks for an object with those members, and maybe others: what the
// interface does not forbid, a preview service may add.
func open(members shape) check {
	return func(v any) string {
		got, ok := v.(map[string]any)
		if !ok {
			return wrong(v, "an object")
		}
		return strings.Join(members.problems(got), "; ")
	}
}

// closed checks for an object with those members and no other.
func closed(members shape) check {
	return func(v any) string {
		problem := open(members)(v)
		got, _ := v.(map[string]any)
		if problem == "" {
			return strings.Join(members.strangers(got), "; ")
		}
		return problem
	}
}

// problems lists the members that are missing or not as they should be.
func (members shape) problems(got map[string]any) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		bare, optional := strings.CutSuffix(name, "?")
		v, present := got[bare]
		if !present && !optional {
			problems = append(problems, fmt.Sprintf("member %q is missing", bare))
		} else if p := members[name](v); present && p != "" {
			problems = append(problems, fmt.Sprintf("member %q: %s", bare, p))
		}
	}
	return problems
}

// strangers lists the members that the shape does not name.
func (members shape) strangers(got map[string]any) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if members[name] == nil && members[name+"?"] == nil {
			problems = append(problems, fmt.Sprintf("member %q is not documented", name))
		}
	}
	return problems
}

func isBool(v any) string {
	if _, ok := v.(bool); !ok {
		return wrong(v, "a boolean")
	}
	return ""
}

func isString(v any) string {
	if _, ok := v.(string); !ok {
		return wrong(v, "a string")
	}
	return ""
}

// isText wants a string that says something: an empty identifier or time
// would be of the right type and of no use.
func isText(v any) string {
	if s, ok := v.(string); !ok || s == "" {
		return wrong(v, "a string that is not empty")
	}
	return ""
}

func oneOf(values ...string) check {
	return func(v any) string {
		if s, ok := v.(string); !ok || !slices.Contains(values, s) {
			return wrong(v, "one of "+strings.Join(values, ", "))
		}
		return ""
	}
}

func orNull(c check) check {
	return func(v any) string {
		if v == nil {
			return ""
		}
		return c(v)
	}
}

func listOf(c check) check {
	return func(v any) string {
		list, ok := v.([]any)
		if !ok {
			return wrong(v, "an array")
		}
		for i, item := range list {
			if p := c(item); p != "" {
				return fmt.Sprintf("item %d: %s", i, p)
			}
		}
		return ""
	}
}

func wrong(v any, want string) string { return "got " + clip(fmt.Sprintf("%#v", v)) + ", want " + want }
