package control

import (
	"net/http"
	"strings"
)

// handler answers one call.
type handler func(*Server, *request) (answer, *refusal)

// route is one row of the interface.
type route struct {
	method, path string
	query        string // the names of query parameters, with a space between
	handle       handler
}

const (
	root   = "/_fake/v1"
	inside = root + "/worlds/{world}"
	filter = "endpoint status key agent_id text text_containing search after before"
)

// routes are in the order of openapi.yaml. They are read only.
var routes = []route{
	{"GET", root + "/openapi.yaml", "", (*Server).document},
	{"GET", root + "/info", "", (*Server).info},
	{"POST", root + "/save", "", (*Server).save},
	{"GET", root + "/worlds", "", (*Server).listWorlds},
	{"POST", root + "/worlds", "", (*Server).createWorld},
	{"DELETE", inside, "", (*Server).deleteWorld},
	{"POST", inside + "/reset", "", in((*world).reset)},
	{"GET", inside + "/state", "", in((*world).readState)},
	{"PUT", inside + "/state", "", in((*world).putState)},
	{"GET", inside + "/keys", "", in((*world).listKeys)},
	{"POST", inside + "/keys", "", in((*world).issueKey)},
	{"PATCH", inside + "/keys/{key}", "", in((*world).changeKey)},
	{"DELETE", inside + "/keys/{key}", "", in((*world).revokeKey)},
	{"POST", inside + "/keys/{key}/reinstate", "", in((*world).reinstateKey)},
	{"GET", inside + "/keys/{key}/limits", "address", in((*world).limits)},
	{"POST", inside + "/keys/{key}/limits/{limit_key}/exhaust", "", in((*world).exhaust)},
	{"GET", inside + "/keys/{key}/byok", "", in((*world).keyBYOK)},
	{"PUT", inside + "/keys/{key}/byok", "", in((*world).storeBYOK)},
	{"GET", inside + "/byok", "", in((*world).available)},
	{"PUT", inside + "/byok", "", in((*world).setAvailable)},
	{"GET", inside + "/agents", "key search limit", in((*world).listAgents)},
	{"POST", inside + "/agents", "", in((*world).addAgent)},
	{"GET", inside + "/agents/{agent_id}", "", in((*world).getAgent)},
	{"DELETE", inside + "/agents/{agent_id}", "", in((*world).removeAgent)},
	{"GET", inside + "/agents/{agent_id}/conversation", "limit after", in((*world).conversation)},
	{"POST", inside + "/agents/{agent_id}/conversation", "", in((*world).addExchanges)},
	{"POST", inside + "/agents/{agent_id}/messages", "", in((*world).sendMessage)},
	{"PUT", inside + "/agents/{agent_id}/sms", "", in((*world).setSMS)},
	{"GET", inside + "/calls", filter + " limit", in((*world).listCalls)},
	{"GET", inside + "/calls/await", filter + " n timeout", in((*world).awaitCalls)},
	{"GET", inside + "/calls/stream", "after", in((*world).streamCalls)},
	{"POST", inside + "/calls/{seq}/send", "", in((*world).sendAgain)},
	{"GET", inside + "/calls.har", "", in((*world).archive)},
	{"GET", inside + "/replies", "", in((*world).listScripts)},
	{"POST", inside + "/replies", "", in((*world).addScript)},
	{"DELETE", inside + "/replies/{id}", "", in((*world).removeScript)},
	{"GET", inside + "/faults", "", in((*world).listFaults)},
	{"GET", inside + "/fitting-faults", "endpoint", in((*world).listFitting)},
	{"POST", inside + "/faults", "", in((*world).addFault)},
	{"DELETE", inside + "/faults/{id}", "", in((*world).removeFault)},
	{"GET", inside + "/clock", "", in((*world).clock)},
	{"POST", inside + "/clock/advance", "", in((*world).advance)},
	{"GET", inside + "/snapshots", "", in((*world).listSnapshots)},
	{"POST", inside + "/snapshots", "", in((*world).takeSnapshot)},
	{"DELETE", inside + "/snapshots/{id}", "", in((*world).deleteSnapshot)},
	{"POST", inside + "/snapshots/{id}/restore", "", in((*world).restore)},
}

// Routes lists method and path template of each route, for the test that
// compares them with the document.
func Routes() [][2]string {
	var all [][2]string
	for _, r := range routes {
		all = append(all, [2]string{r.method, r.path})
	}
	return all
}

// in finds the world of a call and runs its handler under the world's lock.
func in(handle func(*world, *request) (answer, *refusal)) handler {
	return func(s *Server, r *request) (answer, *refusal) {
		w := s.worldNamed(r.param("world"))
		if w == nil {
			return answer{}, notFound("no world has this name; GET " + root + "/worlds lists them")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return handle(w, r)
	}
}

// newMux serves the routes. What none of them takes is refused as JSON too.
func (s *Server) newMux() *http.ServeMux {
	mux, allowed := http.NewServeMux(), map[string][]string{}
	for _, r := range routes {
		allowed[r.path] = append(allowed[r.path], r.method)
		mux.Handle(r.method+" "+r.path, s.handler(r))
	}
	for path, methods := range allowed {
		mux.Handle(path, methodNotAllowed(strings.Join(methods, ", ")))
	}
	mux.Handle("/", noRoute)
	return mux
}

var noRoute = notFound("no route has this path; " + root + "/openapi.yaml describes those that exist")

func methodNotAllowed(allow string) *refusal {
	return &refusal{status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Reason: "this path takes " + allow, allow: allow}
}
