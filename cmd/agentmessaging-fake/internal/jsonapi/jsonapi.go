// Package jsonapi reads the requests of a JSON interface and writes its answers. It
// refuses wrong requests, with a reason that names the mistake and says what is allowed.
//
// Read checks the query of a request and reads the body. Decode turns the body into a
// value. Answer writes a value, a stream or an error. A Guard decides before that who may
// call. Package control uses this package. It has the routes and knows what the values
// mean.
package jsonapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// Refusal is the answer to a refused request. It is an error, and a handler that answers
// with this error. Its body has the members of the service's own errors (interface 2.1).
type Refusal struct {
	// Status is the status of the answer, which the body does not repeat.
	Status int `json:"-"`
	// Code is for programs, such as not_found. Reason is for people: it names what is
	// wrong, and says what is allowed.
	Code   string `json:"error"`
	Reason string `json:"reason"`
}

// Error returns the reason, which says what is wrong and what is allowed.
func (f *Refusal) Error() string { return f.Reason }

// ServeHTTP answers any request with the refusal. A 401 says how to authenticate, as RFC
// 9110, 11.6.1, requires.
func (f *Refusal) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	Write(w, f.Status, f)
}

// Refuse makes a refusal with any status and code. A plain error is enough for a 400.
func Refuse(status int, code, reason string) *Refusal { return &Refusal{status, code, reason} }

// NotFound refuses a request for something that does not exist.
func NotFound(reason string) *Refusal { return Refuse(http.StatusNotFound, "not_found", reason) }

// Stream is a function that writes an answer, for any length of time. It sets the header
// too.
type Stream func(http.ResponseWriter, *http.Request)

// Answer writes what a handler returned: a Stream, a value as JSON, no body for nil, or
// an error. An error that is not a Refusal becomes the reason of a 400. status is the
// status of a success.
func Answer(w http.ResponseWriter, r *http.Request, status int, out any, err error) {
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		refused.ServeHTTP(w, r)
		return
	case err != nil:
		Refuse(http.StatusBadRequest, "bad_request", err.Error()).ServeHTTP(w, r)
		return
	}
	switch out := out.(type) {
	case Stream:
		out(w, r)
	case nil:
		w.WriteHeader(status)
	default:
		Write(w, status, out)
	}
}

// Write writes a value as JSON. It makes no copy of the JSON, which may have many
// megabytes.
func Write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client may be gone
}

// Read reads a request whole, with a body of at most maxBytes bytes. Its query may have the
// parameters that allowed lists, separated by spaces. A parameter that is unknown, empty or
// given twice is refused: if it were ignored, a mistyped filter would let every call through.
func Read(w http.ResponseWriter, r *http.Request, allowed string, maxBytes int64) (q Query, body []byte, err error) {
	if q.Values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return q, nil, errors.New("query: must be names and values, URL encoded")
	}
	names := strings.Fields(allowed)
	for name, values := range q.Values {
		switch {
		case !slices.Contains(names, name):
			return q, nil, fmt.Errorf("query: parameter %s", notAllowed(name, names))
		case len(values) > 1:
			return q, nil, fmt.Errorf("%s: appears twice", name)
		// A parameter must be left out rather than empty, like a NonEmpty in a body.
		case values[0] == "":
			return q, nil, fmt.Errorf("%s: %s", name, emptyReason)
		}
	}
	body, err = readBody(w, r, maxBytes)
	return q, body, err
}

// notAllowed quotes an unknown name, shortened and without control characters, and lists
// the allowed names.
func notAllowed(name string, allowed []string) string {
	list := cmp.Or(strings.Join(allowed, ", "), "none")
	return fmt.Sprintf("%q is not allowed; allowed: %s", printable.Name(name), list)
}

// readBody requires the type JSON. A form on another site can send some other types without a
// preflight request, but not this one. A request without a body needs no type.
func readBody(w http.ResponseWriter, r *http.Request, maxBytes int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, Refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("body: at most %d bytes", maxBytes))
	}
	if err != nil {
		return nil, errors.New("body: did not arrive whole")
	}
	if len(body) > 0 && !strictjson.IsType(r.Header.Get("Content-Type")) {
		return nil, Refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type: must be application/json")
	}
	return body, nil
}

// Query is the query of a request. Its methods store the first mistake in Err, so that a
// handler can read all parameters and then check Err once.
type Query struct {
	url.Values
	// Err says what is wrong with the first wrong parameter; nil if all are right.
	Err error
}

// Int reads an integer from low to high. It returns fallback if the query does not have the
// parameter, or has a wrong one, which it reports in Err.
func (q *Query) Int(name string, fallback, low, high int) int {
	if !q.Has(name) {
		return fallback
	}
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < low || n > high {
		q.Refuse("%s: must be an integer from %d to %d", name, low, high)
		return fallback
	}
	return n
}

// Refuse sets Err for a wrong parameter, to a sentence that begins with its name. Only
// the first error is kept, because a user corrects one mistake at a time.
func (q *Query) Refuse(format string, args ...any) {
	q.Err = cmp.Or(q.Err, fmt.Errorf(format, args...))
}

// emptyReason is the reason to refuse "". If "" counted as absent, a script whose
// variable is not set would make a rule or a filter for every call.
const emptyReason = "must not be empty; leave it out instead"

// NonEmpty is a string in a body that must be left out rather than empty. Decode refuses
// "" for it, as for each named string type.
type NonEmpty string

// Duration is a duration in a body, in Go's form, because JSON has no durations and a
// number would need a unit.
type Duration struct{ time.Duration }

// UnmarshalJSON accepts durations from 0 to MaxDuration.
func (d *Duration) UnmarshalJSON(raw []byte) (err error) {
	text, ok := strictjson.String(raw)
	if !ok {
		return errors.New("must be of type string, such as 90s")
	}
	d.Duration, err = ParseDuration(text, MaxDuration)
	return err
}

// MaxDuration is 100 years. It bounds how far the fake's clock moves, so that times stay
// within the years that JSON can hold.
const MaxDuration = 100 * 365 * 24 * time.Hour

// ParseDuration reads a duration in Go's form, from 0 to longest. The error says what is
// allowed, without the text. It is the same for all mistakes, since package time does not
// distinguish between a wrong text and a duration of more than 292 years.
func ParseDuration(text string, longest time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longest {
		return 0, fmt.Errorf("must be a duration such as 250ms, 90s or 1h30m, from 0s to %v", longest)
	}
	return d, nil
}

// Decode reads a body as a T. encoding/json would ignore members that T does not have,
// accept a name in another case, and keep the last of two members with one name. Then the
// author of a mistyped member would believe that it has an effect. Decode refuses all
// three. The error begins with the path of the wrong value, such as replies[1].status, or
// with body. Inside a fault the path has the form fault: how: status.
func Decode[T any](body []byte) (v T, _ error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return v, errors.New("body: is required, as JSON")
	}
	if err := strictjson.CheckMembers(body); err != nil {
		return v, fmt.Errorf("body: %w", err)
	}
	return v, decode("", bytes.TrimSpace(body), reflect.ValueOf(&v).Elem())
}

// decode reads the value at a path into v. A body or an element of an array that is null is
// refused, because encoding/json would accept it for each type: an element would become an empty
// reply. Members that are null do not come here, since decodeObject leaves them out. "" is
// refused for a named string type, such as NonEmpty and a plan.
func decode(path string, raw json.RawMessage, v reflect.Value) error {
	// A type with its own UnmarshalJSON, such as a time, also makes its own error.
	unmarshaler, ok := v.Addr().Interface().(json.Unmarshaler)
	switch {
	case string(raw) == "null":
		return errorAt(path, v, new(json.UnmarshalTypeError))
	case ok:
		return errorAt(path, v, unmarshaler.UnmarshalJSON(raw))
	case v.Kind() == reflect.Pointer:
		// A pointer stays nil if the member is absent, so that a handler can distinguish that
		// from a zero.
		v.Set(reflect.New(v.Type().Elem()))
		return decode(path, raw, v.Elem())
	case v.Kind() == reflect.Slice:
		return decodeArray(path, raw, v)
	case v.Kind() == reflect.Struct:
		return decodeObject(path, raw, v)
	case v.Kind() == reflect.String && v.Type() != reflect.TypeFor[string]() && string(raw) == `""`:
		return errorAt(path, v, errors.New(emptyReason))
	}
	return errorAt(path, v, json.Unmarshal(raw, v.Addr().Interface()))
}

// decodeArray decodes each element at its own path, such as replies[1].
func decodeArray(path string, raw json.RawMessage, v reflect.Value) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return errorAt(path, v, err)
	}
	v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	for i, element := range elements {
		if err := decode(fmt.Sprintf("%s[%d]", path, i), element, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// decodeObject reads the members in the order of their names. So if several members are
// wrong, the error names the same member each time. A member that is null counts as
// absent, because clients in other languages send null for members that are not set.
func decodeObject(path string, raw json.RawMessage, v reflect.Value) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return errorAt(path, v, err)
	}
	fields := fieldsOf(v)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field, known := fields[name]
		if !known {
			return errorAt(path, v, errors.New("member "+notAllowed(name, slices.Sorted(maps.Keys(fields)))))
		}
		if string(members[name]) == "null" {
			continue
		}
		if err := decode(strings.TrimPrefix(path+"."+name, "."), members[name], field); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf returns the fields of a struct by the names that they have in JSON. A field
// without a tag has its own name in lower case. It includes the fields of an embedded
// struct, as encoding/json does.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.IsExported() && !f.Anonymous {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields[cmp.Or(name, strings.ToLower(f.Name))] = v.FieldByIndex(f.Index)
		}
	}
	return fields
}

// errorAt adds the path of v to an error. If Go's error names Go types, errorAt says
// instead which values v takes. It returns nil for nil.
func errorAt(path string, v reflect.Value, err error) error {
	_, isTime := v.Interface().(time.Time)
	switch wrongType := new(json.UnmarshalTypeError); {
	case err == nil:
		return nil
	case isTime:
		err = errors.New("must be a time such as 2030-01-01T00:00:00Z")
	case errors.As(err, &wrongType):
		err = fmt.Errorf("must be of type %s", typeNames[v.Kind()])
	}
	return fmt.Errorf("%s: %w", cmp.Or(path, "body"), err)
}

// typeNames maps Go kinds to the names of types in openapi.yaml.
var typeNames = map[reflect.Kind]string{
	reflect.Struct: "object", reflect.Slice: "array", reflect.String: "string", reflect.Bool: "boolean",
	reflect.Int: "integer", reflect.Uint64: "integer, from 0 on", reflect.Float64: "number",
}
