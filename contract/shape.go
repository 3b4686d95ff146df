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

// shape is what an object holds: its members with commas between, each with
// its path, its type or its values, and where it may be so null or optional.
// An object that is not closed may have others: this is a preview.
type shape string

// problem says what is wrong with the body, or "".
func (sh shape) problem(body any, closed bool) string {
	top, ok := body.(map[string]any)
	if !ok {
		return "got " + brief(body) + ", want an object"
	}
	for member := range strings.SplitSeq(string(sh), ", ") {
		words := strings.Fields(member)
		holder, name := top, words[0]
		if outer, inner, nested := strings.Cut(name, "."); nested {
			holder, _ = top[outer].(map[string]any)
			name = inner
		}
		v, present := holder[name]
		switch {
		case holder == nil, !present && slices.Contains(words, "optional"), present && v == nil && slices.Contains(words, "null"):
		case !present:
			return fmt.Sprintf("member %q is missing", words[0])
		case !fits(v, words[1]):
			return fmt.Sprintf("member %q: got %s, want %s", words[0], brief(v), words[1])
		case words[1] == "closed":
			if problem := sh.undocumented(v.(map[string]any), name+"."); problem != "" {
				return problem
			}
		}
	}
	if closed {
		return sh.undocumented(top, "")
	}
	return ""
}

func (sh shape) undocumented(object map[string]any, prefix string) string {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !strings.Contains(", "+string(sh), ", "+prefix+name+" ") {
			return fmt.Sprintf("member %q is not documented", clip(name))
		}
	}
	return ""
}

// fits reports whether a value is of that type, or one of the values with bars
// between. A text is a string that says something: an empty identifier or time
// would be of no use.
func fits(v any, kind string) (ok bool) {
	s, isString := v.(string)
	switch kind {
	case "bool":
		_, ok = v.(bool)
	case "string":
		ok = isString
	case "text":
		ok = s != ""
	case "strings":
		list, isList := v.([]any)
		ok = isList && !slices.ContainsFunc(list, func(item any) bool { return !fits(item, "string") })
	case "object", "closed":
		_, ok = v.(map[string]any)
	default:
		ok = slices.Contains(strings.Split(kind, "|"), s)
	}
	return ok
}

func isText(v any) string { return unless(fits(v, "text"), "got %s, want a text", brief(v)) }

func like(form string) check {
	pattern := regexp.MustCompile(form)
	return func(v any) string {
		s, _ := v.(string)
		return unless(pattern.MatchString(s), "got %s, want %s", brief(v), form)
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
