package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// request is a call that has a route, read whole.
type request struct {
	route
	http  *http.Request
	query url.Values
	body  []byte
	flaw  error // the first parameter that is wrong
}

func (r *request) param(name string) string { return r.http.PathValue(name) }

// given is a parameter of the query, and whether there is one.
func (r *request) given(name string) (value string, is bool) {
	return r.query.Get(name), r.query.Has(name)
}

// number reads an integer of the query.
func (r *request) number(name string, instead, low, high int) int {
	text, is := r.given(name)
	if !is {
		return instead
	}
	n, _ := strconv.Atoi(text)
	r.refuse(name, number(int64(low), int64(high))(text))
	return n
}

// refuse notes what a check says of a parameter.
func (r *request) refuse(name, says string) {
	if r.flaw == nil && says != "" {
		r.flaw = badRequest(name, "%s", says)
	}
}

// stream is an answer that is written without any lock.
type stream func(http.ResponseWriter, *http.Request)

// ServeHTTP answers a call of the control interface.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if refused := s.admit(r); refused != nil {
		refused.ServeHTTP(w, r)
		return
	}
	if path.Clean(r.URL.Path) != r.URL.Path { // a ServeMux would redirect
		noRoute.ServeHTTP(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// handler answers the calls of one route.
func (s *Server) handler(row route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := s.answer(row, w, r)
		if refused := (*refusal)(nil); errors.As(err, &refused) {
			refused.ServeHTTP(w, r)
			return
		}
		switch out := out.(type) {
		case stream:
			out(w, r)
		case nil:
			w.WriteHeader(row.status)
		default:
			writeJSON(w, row.status, out)
		}
	}
}

func (s *Server) answer(row route, w http.ResponseWriter, r *http.Request) (any, error) {
	query, err := row.parseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	return row.handle(s, &request{route: row, http: r, query: query, body: body})
}

// parseQuery accepts the route's parameters, each at most once.
func (r *route) parseQuery(raw string) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badRequest("query", "must be names and values, URL encoded")
	}
	allowed := strings.Fields(r.query)
	for name, values := range query {
		switch {
		case !slices.Contains(allowed, name):
			return nil, badRequest("query", "parameter %s is not allowed here; allowed: %s", quoted(name), listed(allowed))
		case len(values) > 1:
			return nil, badRequest(name, "is there twice")
		}
	}
	return query, nil
}

// readBody reads a body whole. What is not JSON cannot be meant, and a form of
// another site cannot send JSON without asking first.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, spec.MaxBody))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("body: at most %d bytes", spec.MaxBody))
	}
	if err != nil {
		return nil, badRequest("body", "did not arrive whole")
	}
	if kind := r.Header.Get("Content-Type"); len(body) > 0 && !strictjson.IsType(kind) || len(r.Header["Content-Type"]) > 1 {
		return nil, refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type: must be application/json")
	}
	return body, nil
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // the wire structs hold nothing that JSON does not
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(encoded, '\n')) // the client may be gone, which is its own affair
}
