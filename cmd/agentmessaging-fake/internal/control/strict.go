package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// decode reads a body as a T and nothing else. encoding/json by itself takes
// names in any case, members twice, null for anything, and does not say what it
// expected.
func decode[T any](body []byte) (v T, _ *refusal) {
	if err := strictly(body, reflect.TypeFor[T]()); err != nil {
		return v, &refusal{status: 400, Code: "bad_request", Reason: err.Error()}
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, badRequest("body", "%v", err) // a number out of range, for example
	}
	return v, nil
}

// strictly checks a document against a type.
func strictly(body []byte, t reflect.Type) error {
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return fmt.Errorf("body: is required, a JSON %s", kindOf(t))
	case !utf8.Valid(body):
		return fmt.Errorf("body: must be valid UTF-8")
	case !json.Valid(body):
		return fmt.Errorf("body: must be one JSON document and nothing else")
	case holdsHalfPair(body):
		return fmt.Errorf("body: a string holds half a surrogate pair")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return (&checker{d}).value("", t)
}

// checker reads a valid document along a type.
type checker struct{ *json.Decoder }

// deepest is more than any body of this interface needs.
const deepest = 32

func (c *checker) value(path string, t reflect.Type) error {
	if strings.Count(path, ".") > deepest {
		return fmt.Errorf("body: must be at most %d levels deep", deepest)
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, _ := c.Token()
	if t == reflect.TypeFor[json.RawMessage]() {
		if token != json.Delim('{') {
			return fmt.Errorf("%s: must be an object", path)
		}
		return c.free(path, token)
	}
	if !fits(token, t) {
		return fmt.Errorf("%s: must be %s", or(path, "body"), article(kindOf(t)))
	}
	switch t.Kind() {
	case reflect.Slice:
		return c.list(path, t.Elem())
	case reflect.Struct:
		if t != reflect.TypeFor[time.Time]() {
			return c.object(path, t)
		}
	}
	return nil
}

func (c *checker) list(path string, element reflect.Type) error {
	for i := 0; c.More(); i++ {
		if err := c.value(fmt.Sprintf("%s[%d]", path, i), element); err != nil {
			return err
		}
	}
	_, _ = c.Token()
	return nil
}

func (c *checker) object(path string, t reflect.Type) error {
	members := membersOf(t)
	seen := map[string]bool{}
	for c.More() {
		token, _ := c.Token()
		name := token.(string) //nolint:errcheck,forcetypeassert // a name in an object
		i := slices.IndexFunc(members, func(m member) bool { return m.name == name })
		switch {
		case i < 0:
			return fmt.Errorf("%s: member %s is not allowed; allowed: %s", or(path, "body"), quoted(name), listed(names(members)))
		case seen[name]:
			return fmt.Errorf("%s: stands twice", join(path, name))
		}
		seen[name] = true
		if err := c.value(join(path, name), members[i].kind); err != nil {
			return err
		}
	}
	_, _ = c.Token()
	for _, m := range members {
		if m.required && !seen[m.name] {
			return fmt.Errorf("%s: is required, %s", join(path, m.name), article(kindOf(m.kind)))
		}
	}
	return nil
}

// free checks the names in an object with any members.
func (c *checker) free(path string, token json.Token) error {
	delim, _ := token.(json.Delim)
	seen := map[string]bool{}
	for (delim == '{' || delim == '[') && c.More() {
		if delim == '{' {
			name, _ := c.Token()
			key := name.(string) //nolint:errcheck,forcetypeassert // a name in an object
			if seen[key] {
				return fmt.Errorf("%s: a member stands twice", path)
			}
			seen[key] = true
		}
		inner, _ := c.Token()
		if err := c.free(path, inner); err != nil {
			return err
		}
	}
	if delim == '{' || delim == '[' {
		_, _ = c.Token()
	}
	return nil
}

// member is a name in a struct's JSON. Members are required where the tag
// check says so.
type member struct {
	name     string
	kind     reflect.Type
	required bool
}

func membersOf(t reflect.Type) (all []member) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			all = append(all, membersOf(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, member{name, f.Type, f.Tag.Get("check") == "required"})
	}
	return all
}

func names(members []member) (all []string) {
	for _, m := range members {
		all = append(all, m.name)
	}
	return all
}

// fits reports whether a value begins as the type's values do.
func fits(token json.Token, t reflect.Type) bool {
	switch token := token.(type) {
	case string:
		_, err := time.Parse(time.RFC3339, token)
		return t.Kind() == reflect.String || t == reflect.TypeFor[time.Time]() && err == nil
	case bool:
		return t.Kind() == reflect.Bool
	case json.Number:
		_, err := strconv.ParseInt(token.String(), 10, 64)
		_, floatErr := token.Float64()
		return t.Kind() == reflect.Float64 && floatErr == nil || isInteger(t) && err == nil
	case json.Delim:
		return token == '{' && t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() ||
			token == '[' && t.Kind() == reflect.Slice
	}
	return false // null
}

func isInteger(t reflect.Type) bool { return t.Kind() == reflect.Int || t.Kind() == reflect.Int64 }

// kindOf names a type's values.
func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time as RFC 3339 has it"
	case t.Kind() == reflect.Struct || t == reflect.TypeFor[json.RawMessage]():
		return "object"
	case t.Kind() == reflect.Slice:
		return "array"
	case isInteger(t):
		return "integer"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Bool:
		return "boolean"
	}
	return "string"
}

func article(noun string) string {
	if strings.ContainsRune("aio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// holdsHalfPair looks for escapes that stand for no character. A backslash in
// a valid document is always the beginning of an escape.
func holdsHalfPair(doc []byte) bool {
	for {
		i := bytes.IndexByte(doc, '\\')
		if i < 0 {
			return false
		}
		first := surrogate(doc[i:])
		switch {
		case first == 0:
			doc = doc[i+2:]
		case first < 0xDC00 && surrogate(doc[i+6:]) >= 0xDC00:
			doc = doc[i+12:]
		default:
			return true
		}
	}
}

// surrogate is the half of a pair that an escape stands for, 0 for others.
func surrogate(escape []byte) int64 {
	if len(escape) < 6 || escape[0] != '\\' || escape[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseInt(string(escape[2:6]), 16, 32)
	if err != nil || n < 0xD800 || n > 0xDFFF {
		return 0
	}
	return n
}
