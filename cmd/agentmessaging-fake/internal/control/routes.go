package control

import (
	"net/http"
	"strings"
)

// handler answers one call: with a value that becomes JSON, with a stream that
// writes the answer itself, or with a *refusal.
type handler func(*Server, *request) (any, error)

// route is one row of the interface.
type route struct {
	method, path string
	query        string // the names of query parameters, with a space between
	status       int    // of a success
	changes      string // the kinds of state that a success changes, for streams
	handle       handler
}

const (
	root    = "/_fake/v1"
	inside  = root + "/worlds/{world}"
	aKey    = inside + "/keys/{key}"
	anAgent = inside + "/agents/{agent_id}"
	filter  = "endpoint status key agent_id text text_containing search after before"
)

// routes are in the order of openapi.yaml. They are read only.
var routes = []route{
	{"GET", root + "/openapi.yaml", "", 200, "", (*Server).document},
	{"GET", root + "/info", "", 200, "", (*Server).info},
	{"POST", root + "/save", "", 204, "", (*Server).save},
	{"POST", root + "/refuse", "", 204, "", with((*Server).refuseConnections)},
	{"GET", root + "/worlds", "", 200, "", (*Server).listWorlds},
	{"POST", root + "/worlds", "", 201, "", with((*Server).createWorld)},
	{"DELETE", inside, "", 204, "", (*Server).deleteWorld},
	{"POST", inside + "/reset", "", 204, "reset", in((*world).reset)},
	{"GET", inside + "/state", "", 200, "", in((*world).readState)},
	{"PUT", inside + "/state", "", 204, "keys agents byok limits clock", in((*world).putState)},
	{"GET", inside + "/keys", "", 200, "", in((*world).listKeys)},
	{"POST", inside + "/keys", "", 201, "keys", in(with((*world).issueKey))},
	{"PATCH", aKey, "", 200, "keys", ofKey(with(key.change))},
	{"DELETE", aKey, "", 204, "keys", ofKey(key.revoke)},
	{"POST", aKey + "/reinstate", "", 204, "keys", ofKey(key.reinstate)},
	{"GET", aKey + "/limits", "address", 200, "", ofKey(key.limits)},
	{"POST", aKey + "/limits/{limit_key}/exhaust", "", 204, "limits", ofKey(key.exhaust)},
	{"GET", aKey + "/byok", "", 200, "", ofKey(key.byok)},
	{"PUT", aKey + "/byok", "", 200, "byok", ofKey(with(key.storeBYOK))},
	{"GET", inside + "/byok", "", 200, "", in((*world).available)},
	{"PUT", inside + "/byok", "", 200, "byok", in(with((*world).setAvailable))},
	{"GET", inside + "/agents", "key search limit", 200, "", in((*world).listAgents)},
	{"POST", inside + "/agents", "", 201, "agents", in(with((*world).addAgent))},
	{"GET", anAgent, "", 200, "", ofAgent(agent.get)},
	{"DELETE", anAgent, "", 204, "agents", ofAgent(agent.remove)},
	{"GET", anAgent + "/conversation", "limit after", 200, "", ofAgent(agent.conversation)},
	{"POST", anAgent + "/conversation", "", 201, "agents", ofAgent(with(agent.addExchanges))},
	{"POST", anAgent + "/messages", "", 200, "", ofAgent(with(agent.sendMessage))},
	{"PUT", anAgent + "/sms", "", 200, "agents", ofAgent(with(agent.setSMS))},
	{"GET", inside + "/calls", filter + " limit", 200, "", in((*world).listCalls)},
	{"GET", inside + "/calls/await", filter + " n timeout", 200, "", in((*world).awaitCalls)},
	{"GET", inside + "/calls/stream", "after", 200, "", in((*world).streamCalls)},
	{"POST", inside + "/calls/{seq}/send", "", 200, "", in((*world).sendAgain)},
	{"GET", inside + "/calls.har", "", 200, "", in((*world).archive)},
	{"GET", inside + "/replies", "", 200, "", in((*world).listScripts)},
	{"POST", inside + "/replies", "", 201, "replies", in(with((*world).addScript))},
	{"DELETE", inside + "/replies/{id}", "", 204, "replies", in((*world).removeScript)},
	{"GET", inside + "/faults", "", 200, "", in((*world).listFaults)},
	{"GET", inside + "/fitting-faults", "endpoint", 200, "", in((*world).listFitting)},
	{"POST", inside + "/faults", "", 201, "faults", in(with((*world).addFault))},
	{"DELETE", inside + "/faults/{id}", "", 204, "faults", in((*world).removeFault)},
	{"GET", inside + "/clock", "", 200, "", in((*world).clock)},
	{"POST", inside + "/clock/advance", "", 200, "clock", in(with((*world).advance))},
	{"GET", inside + "/snapshots", "", 200, "", in((*world).listSnapshots)},
	{"POST", inside + "/snapshots", "", 201, "snapshots", in((*world).takeSnapshot)},
	{"DELETE", inside + "/snapshots/{id}", "", 204, "snapshots", in((*world).deleteSnapshot)},
	{"POST", inside + "/snapshots/{id}/restore", "", 204, "keys agents byok limits", in((*world).restore)},
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

// with reads the body of a call for an act that takes one.
func with[S, T any](act func(S, T) (any, error)) func(S, *request) (any, error) {
	return func(of S, r *request) (any, error) {
		body, err := decode[T](r.body)
		if err != nil {
			return nil, err
		}
		return act(of, body)
	}
}

// in finds the world of a call, acts under its lock, and tells its streams what
// has changed.
func in(act func(*world, *request) (any, error)) handler {
	return func(s *Server, r *request) (any, error) {
		w := s.worldNamed(r.param("world"))
		if w == nil {
			return nil, notFound("no world has this name; GET " + root + "/worlds lists them")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		out, err := act(w, r)
		if err == nil {
			w.hub.changed(strings.Fields(r.changes)...)
		}
		return out, err
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
