package control

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// decode reads a body as a T and nothing else, and checks it as the tags of T
// and its method flaw say. encoding/json by itself takes names in any case,
// members twice, null for anything, and does not say what it expected.
func decode[T any](body []byte) (v T, _ error) {
	t := reflect.TypeFor[T]()
	if len(bytes.TrimSpace(body)) == 0 {
		return v, badRequest("body", "is required, a JSON %s", kindOf(t))
	}
	if err := strictjson.Check(body); err != nil {
		return v, badRequest("body", "%v", err)
	}
	c := checker{strictjson.Scanner{Data: body}}
	if err := c.value("", t, ""); err != nil {
		return v, err
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, badRequest("body", "%v", err)
	}
	if whole, is := any(v).(interface{ flaw() error }); is {
		return v, whole.flaw()
	}
	return v, nil
}

// checker checks a document against a type.
type checker struct{ strictjson.Scanner }

// deepest is more than any body of this interface needs.
const deepest = 32

// value checks one value. wants are the words of its tag check.
func (c *checker) value(path string, t reflect.Type, wants string) error {
	if strings.Count(path, ".") > deepest {
		return badRequest("body", "must be at most %d levels deep", deepest)
	}
	name, kind, first := cmp.Or(path, "body"), kindOf(t), c.Peek()
	switch {
	case kind == "object" && first == '{' && t == rawType:
		return c.free(path, wants)
	case kind == "object" && first == '{':
		return c.object(path, behind(t))
	case kind == "array" && first == '[':
		return c.list(path, t.Elem())
	case first == '"' && (kind == "string" || kind == timeKind):
		return c.text(name, kind, wants)
	case kind == "boolean" && (first == 't' || first == 'f'):
		c.Scalar()
		return nil
	case (kind == "integer" || kind == "number") && strings.IndexByte("-0123456789", first) >= 0:
		return c.number(name, kind, wants)
	}
	return badRequest(name, "must be %s", article(kind))
}

func (c *checker) text(name, kind, wants string) error {
	text := c.Text()
	if c.Torn {
		return badRequest(name, "%v", strictjson.ErrHalfPair)
	}
	if kind == timeKind {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return badRequest(name, "must be %s", article(kind))
		}
		if year := at.UTC().Year(); year < 1 || year > 9999 {
			return badRequest(name, "must be from the year 1 to the year 9999") // JSON holds no others
		}
	}
	return check(name, text, wants)
}

func (c *checker) number(name, kind, wants string) error {
	text := string(c.Scalar())
	_, err := strconv.ParseInt(text, 10, 64)
	if kind == "number" {
		_, err = strconv.ParseFloat(text, 64)
	}
	if err != nil {
		return badRequest(name, "must be %s", article(kind))
	}
	return check(name, text, wants)
}

// free steps over an object with any members.
func (c *checker) free(path, wants string) error {
	from, twice := c.Pos, strictjson.Twice("")
	switch err := c.Free(); {
	case errors.As(err, &twice):
		return badRequest(path, "member %s is there twice", quoted(string(twice)))
	case err != nil:
		return badRequest(path, "%v", err)
	}
	return check(path, string(c.Data[from:c.Pos]), wants)
}

func (c *checker) list(path string, element reflect.Type) error {
	c.Enter()
	for i := 0; c.More(); i++ {
		if err := c.value(fmt.Sprintf("%s[%d]", path, i), element, ""); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) object(path string, t reflect.Type) error {
	members := membersOf(t)
	seen := map[string]bool{}
	for c.Enter(); c.More(); {
		name := c.Name()
		i := slices.IndexFunc(members, func(m member) bool { return m.name == name })
		switch {
		case i < 0:
			return badRequest(cmp.Or(path, "body"), "member %s is not allowed; allowed: %s", quoted(name), listed(names(members)))
		case seen[name]:
			return badRequest(join(path, name), "is there twice")
		}
		seen[name] = true
		if err := c.value(join(path, name), members[i].kind, members[i].check); err != nil {
			return err
		}
	}
	for _, m := range members {
		if strings.HasPrefix(m.check, "required") && !seen[m.name] {
			return badRequest(join(path, m.name), "is required, %s", article(kindOf(m.kind)))
		}
	}
	return nil
}

// member is a name in a struct's JSON.
type member struct {
	name  string
	kind  reflect.Type
	check string // required, and names in checks
}

func membersOf(t reflect.Type) (all []member) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			all = append(all, membersOf(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, member{name, f.Type, f.Tag.Get("check")})
	}
	return all
}

func names(members []member) (all []string) {
	for _, m := range members {
		all = append(all, m.name)
	}
	return all
}

const timeKind = "time as RFC 3339 has it"

var rawType = reflect.TypeFor[json.RawMessage]()

func behind(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// kindOf names a type's values.
func kindOf(t reflect.Type) string {
	t = behind(t)
	switch {
	case t == reflect.TypeFor[time.Time]():
		return timeKind
	case t == rawType:
		return "object"
	}
	return map[reflect.Kind]string{
		reflect.Struct: "object", reflect.Slice: "array", reflect.String: "string", reflect.Bool: "boolean",
		reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number",
	}[t.Kind()]
}
