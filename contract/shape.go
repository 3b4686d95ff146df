package contract

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// check says what is wrong with a decoded JSON value, or "".
type check = func(v any) string

// relation says what is wrong with a value beside an earlier one, or "".
type relation = func(now, then any) string

// shape is the members of an object; one whose name ends in "?" may be absent.
type shape map[string]check

// open checks for an object with those members, and maybe others: what the
// interface does not forbid, a preview service may add.
func open(members shape) check {
	return func(v any) string {
		got, ok := v.(map[string]any)
		if !ok {
			return "got " + brief(v) + ", want an object"
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			bare, optional := strings.CutSuffix(name, "?")
			if v, present := got[bare]; !present && !optional {
				return fmt.Sprintf("member %q is missing", bare)
			} else if problem := members[name](v); present && problem != "" {
				return fmt.Sprintf("member %q: %s", bare, problem)
			}
		}
		return ""
	}
}

// closed checks for an object with those members and no other.
func closed(members shape) check {
	return func(v any) string {
		got, _ := v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if members[name] == nil && members[name+"?"] == nil {
				return fmt.Sprintf("member %q is not documented", clip(name))
			}
		}
		return open(members)(v)
	}
}

var (
	isBool   = typed[bool]("a boolean")
	isString = typed[string]("a string")
)

func typed[T any](what string) check {
	return func(v any) string {
		_, ok := v.(T)
		return unless(ok, "got %s, want %s", brief(v), what)
	}
}

// isText wants a string that says something: an empty identifier or time
// would be of the right type and of no use.
func isText(v any) string {
	s, _ := v.(string)
	return unless(s != "", "got %s, want a string that is not empty", brief(v))
}

func oneOf(values ...string) check {
	return func(v any) string {
		s, ok := v.(string)
		return unless(ok && slices.Contains(values, s), "got %s, want one of %s", brief(v), strings.Join(values, ", "))
	}
}

func like(form string) check {
	pattern := regexp.MustCompile(form)
	return func(v any) string {
		s, _ := v.(string)
		return unless(pattern.MatchString(s), "got %s, want %s", brief(v), form)
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
		for i, item := range list {
			if problem := c(item); problem != "" {
				return fmt.Sprintf("item %d: %s", i, problem)
			}
		}
		return unless(ok, "got %s, want an array", brief(v))
	}
}

// same, differs and behind compare with the earlier value.
func same(now, then any) string {
	return unless(reflect.DeepEqual(now, then), "got %s, it was %s", brief(now), brief(then))
}

func differs(now, then any) string {
	return unless(now != then, "got %s as before", brief(now))
}

func behind(now, then any) string {
	return unless(fmt.Sprint(now) > fmt.Sprint(then), "got %s, which is not behind %s", brief(now), brief(then))
}

// later wants a time that much later, to the minute: some targets have a clock
// that runs.
func later(d time.Duration) relation {
	return func(now, then any) string {
		off := timeOf(now).Sub(timeOf(then).Add(d)).Abs()
		return unless(isUTC(now) == "" && off < time.Minute, "got %s, want %v after %s", brief(now), d, brief(then))
	}
}

// isUTC wants a time of RFC 3339 in UTC.
func isUTC(v any) string {
	_, offset := timeOf(v).Zone()
	return unless(!timeOf(v).IsZero() && offset == 0, "got %s, want a time of RFC 3339 in UTC", brief(v))
}

func timeOf(v any) time.Time {
	s, _ := v.(string)
	at, _ := time.Parse(time.RFC3339Nano, s) // the zero time is no answer's
	return at
}

func brief(v any) string { return clip(fmt.Sprintf("%#v", v)) }
