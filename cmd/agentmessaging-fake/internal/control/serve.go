package control

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// maxBody is the size of the largest request body, 1 MiB.
const maxBody = 1 << 20

// request is a call that has a route, read whole.
type request struct {
	http  *http.Request
	query url.Values
	body  []byte
}

func (r *request) param(name string) string { return r.http.PathValue(name) }

// answer is what a handler wants answered: 200 with a body as JSON, another
// status, or what write writes by itself, without any lock.
type answer struct {
	status int // 0 means 200
	body   any // nil: none
	write  func(http.ResponseWriter, *http.Request)
}

func ok(body any) (answer, *refusal)      { return answer{body: body}, nil }
func created(body any) (answer, *refusal) { return answer{status: http.StatusCreated, body: body}, nil }
func done() (answer, *refusal)            { return answer{status: http.StatusNoContent}, nil }

// refusal is the body of every other answer.
type refusal struct {
	status int
	Code   string `json:"error"`
	Reason string `json:"reason"`
	allow  string // the Allow header, 405 only
}

// badRequest names what is wrong and says what is allowed.
func badRequest(name, format string, args ...any) *refusal {
	return &refusal{status: http.StatusBadRequest, Code: "bad_request", Reason: name + ": " + fmt.Sprintf(format, args...)}
}

func notFound(reason string) *refusal {
	return &refusal{status: http.StatusNotFound, Code: "not_found", Reason: reason}
}

func conflict(format string, args ...any) *refusal {
	return &refusal{status: http.StatusConflict, Code: "conflict", Reason: fmt.Sprintf(format, args...)}
}

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
func (s *Server) handler(route route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, refused := s.answer(route, w, r)
		switch {
		case refused != nil:
			refused.ServeHTTP(w, r)
		case a.write != nil:
			a.write(w, r)
		case a.body != nil:
			writeJSON(w, max(a.status, http.StatusOK), a.body)
		default:
			w.WriteHeader(a.status)
		}
	}
}

func (s *Server) answer(route route, w http.ResponseWriter, r *http.Request) (answer, *refusal) {
	req := &request{http: r}
	var refused *refusal
	if req.query, refused = route.parseQuery(r.URL.RawQuery); refused != nil {
		return answer{}, refused
	}
	if req.body, refused = readBody(w, r); refused != nil {
		return answer{}, refused
	}
	return route.handle(s, req)
}

// parseQuery accepts the route's parameters, each at most once.
func (r *route) parseQuery(raw string) (url.Values, *refusal) {
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
			return nil, badRequest(name, "stands twice")
		}
	}
	return query, nil
}

// readBody reads a body whole. What is not JSON cannot be meant, and a form of
// another site cannot send JSON without asking first.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := new(http.MaxBytesError); asError(err, &tooLarge) {
		return nil, &refusal{status: http.StatusRequestEntityTooLarge, Code: "too_large", Reason: fmt.Sprintf("body: at most %d bytes", maxBody)}
	}
	if err != nil {
		return nil, badRequest("body", "did not arrive whole")
	}
	if kind := r.Header.Get("Content-Type"); len(body) > 0 && !isJSON(kind) || len(r.Header["Content-Type"]) > 1 {
		return nil, &refusal{status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
			Reason: "Content-Type: must be application/json"}
	}
	return body, nil
}

func isJSON(contentType string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && kind == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// ServeHTTP answers any call with the refusal.
func (f *refusal) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	switch f.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", f.allow)
	}
	writeJSON(w, f.status, f)
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
