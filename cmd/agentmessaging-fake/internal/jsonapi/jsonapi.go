// Package jsonapi reads the requests of a JSON interface and writes its answers.
// It refuses what cannot be meant, with a reason that names what is wrong and says
// what is allowed.
package jsonapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// Refusal is the answer to a request that is refused.
type Refusal struct {
	Status int    `json:"-"`
	Code   string `json:"error"`
	Reason string `json:"reason"`
}

func (f *Refusal) Error() string { return f.Reason }

// ServeHTTP answers any request with the refusal.
func (f *Refusal) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	Write(w, f.Status, f)
}

// Refuse makes a refusal with any status and code.
func Refuse(status int, code, reason string) *Refusal { return &Refusal{status, code, reason} }

// BadRequest names the member or parameter that is wrong and says what is allowed.
func BadRequest(name, format string, args ...any) *Refusal {
	return Refuse(http.StatusBadRequest, "bad_request", name+": "+fmt.Sprintf(format, args...))
}

// NotFound refuses a request for something that does not exist.
func NotFound(reason string) *Refusal { return Refuse(http.StatusNotFound, "not_found", reason) }

// Stream is an answer that writes itself, as long as it likes.
type Stream func(http.ResponseWriter, *http.Request)

// Answer writes what a handler returned: a Stream, a value as JSON, no body for
// nil, or an error. An error that is not a Refusal is the reason of a 400.
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

// Request is a request that was read whole.
type Request struct {
	*http.Request
	Query Query
	Body  []byte
}

// Read reads a request whose query may have the allowed parameters, with a space
// between.
func Read(w http.ResponseWriter, r *http.Request, allowed string) (*Request, error) {
	query, err := parseQuery(r.URL.RawQuery, strings.Fields(allowed))
	if err != nil {
		return nil, err
	}
	body, err := readBody(w, r)
	return &Request{r, Query{Values: query}, body}, err
}

func parseQuery(raw string, allowed []string) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, BadRequest("query", "must be names and values, URL encoded")
	}
	for name, values := range query {
		switch {
		case !slices.Contains(allowed, name):
			return nil, BadRequest("query", "parameter %s is not allowed here; allowed: %s",
				strconv.Quote(printable.Name(name)), cmp.Or(strings.Join(allowed, ", "), "none"))
		case len(values) > 1:
			return nil, BadRequest(name, "is there twice")
		}
	}
	return query, nil
}

// readBody reads a body of at most 1 MiB. A form of another site cannot send JSON
// without asking first, so any other type is refused.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, spec.MaxBody))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, Refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("body: at most %d bytes", spec.MaxBody))
	}
	if err != nil {
		return nil, BadRequest("body", "did not arrive whole")
	}
	if len(body) > 0 && !strictjson.IsType(r.Header.Get("Content-Type")) {
		return nil, Refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type: must be application/json")
	}
	return body, nil
}

// Query is the query of a request. Err is the first parameter that is wrong.
type Query struct {
	url.Values
	Err error
}

// Int reads an integer from low to high; it is otherwise where the query has none
// or a wrong one.
func (q *Query) Int(name string, otherwise, low, high int) int {
	if !q.Has(name) {
		return otherwise
	}
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < low || n > high {
		q.Refuse(name, "must be an integer from %d to %d", low, high)
		return otherwise
	}
	return n
}

// Duration reads a duration of at most most, and says whether there is one.
func (q *Query) Duration(name string, most time.Duration) (d time.Duration, given bool) {
	if !q.Has(name) {
		return 0, false
	}
	d, err := time.ParseDuration(q.Get(name))
	if err != nil || d < 0 || d > most {
		q.Refuse(name, "must be a duration such as 250ms, 90s or 1h30m, from 0s to %v", most)
	}
	return d, true
}

// Refuse notes that a parameter is wrong.
func (q *Query) Refuse(name, format string, args ...any) {
	if q.Err == nil {
		q.Err = BadRequest(name, format, args...)
	}
}

// Duration is a duration in a body, written as Go writes it.
type Duration struct{ time.Duration }

// UnmarshalJSON accepts durations that are not negative.
func (d *Duration) UnmarshalJSON(raw []byte) (err error) {
	text, _ := strictjson.String(raw)
	if d.Duration, err = time.ParseDuration(text); err != nil || d.Duration < 0 {
		return errors.New("a duration must be a string such as 250ms, 90s, 1h30m or 24h, and must not be negative")
	}
	return nil
}

// Decode reads a body as a T. It refuses members that T does not have and members
// that are there twice, which encoding/json accepts.
func Decode[T any](body []byte) (v T, _ error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return v, BadRequest("body", "is required, as JSON")
	}
	if err := strictjson.CheckMembers(body); err != nil {
		return v, BadRequest("body", "%v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	return v, inWords(decoder.Decode(&v), reflect.TypeFor[T]())
}

// inWords says what is allowed where encoding/json names types of Go. body is the
// type of the body.
func inWords(err error, body reflect.Type) error {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return BadRequest(cmp.Or(strings.ToLower(wrong.Field), "body"), "must be of type %s", typeNames[wrong.Type.Kind()])
	}
	if err == nil {
		return nil
	}
	if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return BadRequest("body", "member %s is not allowed; allowed: %s", printable.Name(name), cmp.Or(strings.Join(membersOf(body, ""), ", "), "none"))
	}
	return err
}

// membersOf lists the members of an object, and those of the objects in it as
// match.endpoint. A type that reads its own JSON is listed as one member.
func membersOf(t reflect.Type, within string) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	for _, field := range reflect.VisibleFields(t) {
		if field.IsExported() {
			tagged, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			name := within + cmp.Or(tagged, strings.ToLower(field.Name))
			names = append(append(names, name), membersOf(field.Type, name+".")...)
		}
	}
	return names
}

var typeNames = map[reflect.Kind]string{
	reflect.Struct: "object", reflect.Map: "object", reflect.Slice: "array", reflect.String: "string", reflect.Bool: "boolean",
	reflect.Int: "integer", reflect.Uint64: "integer", reflect.Float64: "number",
}
