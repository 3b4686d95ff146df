// Package jsonapi reads the requests of a JSON interface and writes its answers. It
// refuses what cannot be meant, with a reason that names what is wrong and says what is
// allowed.
//
// A request comes in by Read, which checks the query and takes the body, and Decode,
// which makes a value of the body. It goes out by Answer, which knows values, streams
// and errors. A Guard says beforehand who may call at all. Package control,
// which uses this one, has the routes and knows what the values mean.
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

// Refusal is the answer to a request that is refused: an error, and the handler that
// answers with it. Its body has the members of the service's own errors (interface
// 2.1).
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

// ServeHTTP answers any request with the refusal. A 401 says how to authenticate, as
// RFC 9110, 11.6.1, wants.
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

// Stream is an answer that writes itself, as long as it likes. It sets its own header.
type Stream func(http.ResponseWriter, *http.Request)

// Answer writes what a handler returned: a Stream, a value as JSON, no body for nil, or
// an error. An error that is not a Refusal is the reason of a 400. status is for a
// success.
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

// Write writes a value as JSON, without a copy of what may be many megabytes.
func Write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client may be gone
}

// Read reads a request whole, with a body of at most most bytes. Its query may have the
// parameters of allowed, whose names have a space between. A parameter that is unknown,
// empty or given twice is refused: a filter that is mistyped would otherwise pass
// everything.
func Read(w http.ResponseWriter, r *http.Request, allowed string, most int64) (q Query, body []byte, err error) {
	if q.Values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return q, nil, errors.New("query: must be names and values, URL encoded")
	}
	names := strings.Fields(allowed)
	for name, values := range q.Values {
		switch {
		case !slices.Contains(names, name):
			return q, nil, fmt.Errorf("query: parameter %s", notAllowed(name, names))
		case len(values) > 1:
			return q, nil, fmt.Errorf("%s: is there twice", name)
		// As a NonEmpty in a body, a parameter is left out rather than empty.
		case values[0] == "":
			return q, nil, fmt.Errorf("%s: %s", name, emptyReason)
		}
	}
	body, err = readBody(w, r, most)
	return q, body, err
}

// notAllowed quotes a name that the caller made up, shortened and without control
// characters, and lists the names that count.
func notAllowed(name string, allowed []string) string {
	list := cmp.Or(strings.Join(allowed, ", "), "none")
	return fmt.Sprintf("%q is not allowed; allowed: %s", printable.Name(name), list)
}

// readBody wants JSON: the form of another site can send other types without asking
// first, but not this one. No body at all needs no type.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, Refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("body: at most %d bytes", most))
	}
	if err != nil {
		return nil, errors.New("body: did not arrive whole")
	}
	if len(body) > 0 && !strictjson.IsType(r.Header.Get("Content-Type")) {
		return nil, Refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type: must be application/json")
	}
	return body, nil
}

// Query is the query of a request. Its methods note the first parameter that is wrong
// in Err, so that a handler reads all parameters before it asks whether one is.
type Query struct {
	url.Values
	// Err says what is wrong with the first wrong parameter; nil if all are right.
	Err error
}

// Int reads an integer from low to high. It returns otherwise if the query has none or
// a wrong one, which it notes in Err.
func (q *Query) Int(name string, otherwise, low, high int) int {
	if !q.Has(name) {
		return otherwise
	}
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < low || n > high {
		q.Refuse("%s: must be an integer from %d to %d", name, low, high)
		return otherwise
	}
	return n
}

// Duration reads a duration from 0 to most, and reports whether the query has one. A
// wrong one is noted in Err.
func (q *Query) Duration(name string, most time.Duration) (d time.Duration, given bool) {
	if !q.Has(name) {
		return 0, false
	}
	d, err := ParseDuration(q.Get(name), most)
	if err != nil {
		q.Refuse("%s: %w", name, err)
	}
	return d, true
}

// Refuse notes that a parameter is wrong, in a sentence that begins with its name. Only
// the first is kept: a user mends one at a time.
func (q *Query) Refuse(format string, args ...any) {
	q.Err = cmp.Or(q.Err, fmt.Errorf(format, args...))
}

// emptyReason says what is wrong with "". If it counted as absent, a script whose variable
// is not set would make a rule or a filter for every call.
const emptyReason = "must not be empty; leave it out instead"

// NonEmpty is a string in a body that is left out rather than empty. Decode refuses ""
// for it, as for each string type with a name.
type NonEmpty string

// Duration is a duration in a body, written as Go writes it: JSON has none, and a
// number would need a unit.
type Duration struct{ time.Duration }

// UnmarshalJSON accepts durations from 0 to MaxDuration.
func (d *Duration) UnmarshalJSON(raw []byte) (err error) {
	text, is := strictjson.String(raw)
	if !is {
		return errors.New("must be of type string, such as 90s")
	}
	d.Duration, err = ParseDuration(text, MaxDuration)
	return err
}

// MaxDuration is 100 years. The fake's clock goes no further, which keeps its times
// within the years that JSON can hold.
const MaxDuration = 100 * 365 * 24 * time.Hour

// ParseDuration reads a duration as Go writes it, from 0 to most. The error says so
// without the text. It has one sentence for all, since to package time a text that is no
// duration and one beyond 292 years are the same error.
func ParseDuration(text string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		return 0, fmt.Errorf("must be a duration such as 250ms, 90s or 1h30m, from 0s to %v", most)
	}
	return d, nil
}

// Decode reads a body as a T. encoding/json would pass over members that T does not
// have, take a name in another case, and keep the last of two members with one name:
// the author of a mistyped member would believe that it has an effect. Decode refuses all
// three. The error begins with the path of the value that is wrong, such as
// replies[1].status, or with body; inside a fault the names follow one another:
// fault: how: status.
func Decode[T any](body []byte) (v T, _ error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return v, errors.New("body: is required, as JSON")
	}
	if err := strictjson.CheckMembers(body); err != nil {
		return v, fmt.Errorf("body: %w", err)
	}
	return v, decode("", body, reflect.ValueOf(&v).Elem())
}

// decode reads the value at a path into v. null leaves v as it is, as if the member
// were absent: clients in other languages send it for what they do not set. "" is no
// value of a string type with a name, such as NonEmpty and a plan.
func decode(path string, raw json.RawMessage, v reflect.Value) error {
	if string(raw) == "null" {
		return nil
	}
	// A type that reads its own JSON says itself what is wrong; a time does too.
	own, ownJSON := v.Addr().Interface().(json.Unmarshaler)
	switch {
	case ownJSON:
		return errorAt(path, v, own.UnmarshalJSON(raw))
	case v.Kind() == reflect.Pointer:
		// A pointer is nil where the member is absent, so a handler can tell that from
		// a zero.
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

// decodeObject reads the members in the order of their names, so that of several that
// are wrong the same one is named each time.
func decodeObject(path string, raw json.RawMessage, v reflect.Value) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return errorAt(path, v, err)
	}
	fields := fieldsOf(v)
	// Sorted, so that the same body is refused in the same words each time.
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field, known := fields[name]
		if !known {
			return errorAt(path, v, errors.New("member "+notAllowed(name, slices.Sorted(maps.Keys(fields)))))
		}
		if err := decode(strings.TrimPrefix(path+"."+name, "."), members[name], field); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf returns the fields of a struct by the names that they have in JSON. A field
// without a tag has its own name in lower case. Fields of an embedded struct count as its
// own, as in encoding/json.
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

// errorAt says at which path v got a wrong value, and which values it takes where Go's
// own error names types of Go. It returns nil for nil.
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

// typeNames are the names that openapi.yaml has for the types of members, in place of
// those of Go.
var typeNames = map[reflect.Kind]string{
	reflect.Struct: "object", reflect.Slice: "array", reflect.String: "string", reflect.Bool: "boolean",
	reflect.Int: "integer", reflect.Uint64: "integer, from 0 on", reflect.Float64: "number",
}
