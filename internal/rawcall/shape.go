package rawcall

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Shape is what an object holds: its members with commas between, each with
// its path, its type or its values, and where it may be so null or optional.
// An object that is not closed may have others: this is a preview.
type Shape string

// Problem says what is wrong with the decoded body, or "".
func (sh Shape) Problem(body any, closed bool) string {
	top, ok := body.(map[string]any)
	if !ok {
		return "got " + Brief(body) + ", want an object"
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
		case !Fits(v, words[1]):
			return fmt.Sprintf("member %q: got %s, want %s", words[0], Brief(v), words[1])
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

func (sh Shape) undocumented(object map[string]any, prefix string) string {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !strings.Contains(", "+string(sh), ", "+prefix+name+" ") {
			return fmt.Sprintf("member %q is not documented", Clip(name))
		}
	}
	return ""
}

// Fits reports whether a value is of that type, or one of the values with bars
// between. A text is a string that says something: an empty identifier or time
// would be of no use.
func Fits(v any, kind string) (ok bool) {
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
		ok = isList && !slices.ContainsFunc(list, func(item any) bool { return !Fits(item, "string") })
	case "object", "closed":
		_, ok = v.(map[string]any)
	default:
		ok = slices.Contains(strings.Split(kind, "|"), s)
	}
	return ok
}

// Brief shows a decoded value in at most 80 characters.
func Brief(v any) string { return Clip(fmt.Sprintf("%#v", v)) }
