package control

import (
	"fmt"
	"net/http"
)

// refusal is the body of every answer that is no success.
type refusal struct {
	status int
	Code   string `json:"error"`
	Reason string `json:"reason"`
	allow  string // the Allow header, 405 only
}

func (f *refusal) Error() string { return f.Reason }

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

func refuse(status int, code, reason string) *refusal {
	return &refusal{status: status, Code: code, Reason: reason}
}

// badRequest names what is wrong and says what is allowed.
func badRequest(name, format string, args ...any) *refusal {
	return refuse(http.StatusBadRequest, "bad_request", name+": "+fmt.Sprintf(format, args...))
}

func forbidden(reason string) *refusal { return refuse(http.StatusForbidden, "forbidden", reason) }

func notFound(reason string) *refusal { return refuse(http.StatusNotFound, "not_found", reason) }

func conflict(format string, args ...any) *refusal {
	return refuse(http.StatusConflict, "conflict", fmt.Sprintf(format, args...))
}

func methodNotAllowed(allow string) *refusal {
	f := refuse(http.StatusMethodNotAllowed, "method_not_allowed", "this path takes "+allow)
	f.allow = allow
	return f
}

var noRoute = notFound("no route has this path; " + root + "/openapi.yaml describes those that exist")
