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
	aKey    = root + "/keys/{key}"
	anAgent = root + "/agents/{agent_id}"
	filter  = "endpoint method status decided fault key agent_id text text_containing search after before"
)

// routes are in the order of openapi.yaml. They are read only.
var routes = []route{
	{"GET", root + "/openapi.yaml", "", 200, "", (*Server).document},
	{"GET", root + "/info", "", 200, "", (*Server).info},
	{"POST", root + "/save", "", 204, "", (*Server).save},
	{"POST", root + "/refuse", "", 204, "", with((*Server).refuseConnections)},
	{"POST", root + "/reset", "", 204, "reset", locked((*Server).reset)},
	{"GET", root + "/state", "", 200, "", locked((*Server).readState)},
	{"PUT", root + "/state", "", 204, "keys agents byok limits clock", locked((*Server).putState)},
	{"GET", root + "/keys", "", 200, "", locked((*Server).listKeys)},
	{"POST", root + "/keys", "", 201, "keys", locked(with((*Server).issueKey))},
	{"PATCH", aKey, "", 200, "keys", ofKey(with(key.change))},
	{"GET", aKey + "/limits", "address", 200, "", ofKey(key.limits)},
	{"POST", aKey + "/limits/{limit_key}/exhaust", "", 204, "limits", ofKey(key.exhaust)},
	{"GET", aKey + "/byok", "", 200, "", ofKey(key.byok)},
	{"PUT", aKey + "/byok", "", 200, "byok", ofKey(with(key.storeBYOK))},
	{"GET", root + "/byok", "", 200, "", locked((*Server).available)},
	{"PUT", root + "/byok", "", 200, "byok", locked(with((*Server).setAvailable))},
	{"GET", root + "/agents", "key search limit", 200, "", locked((*Server).listAgents)},
	{"POST", root + "/agents", "", 201, "agents", locked(with((*Server).addAgent))},
	{"GET", anAgent, "", 200, "", ofAgent(agent.get)},
	{"DELETE", anAgent, "", 204, "agents", ofAgent(agent.remove)},
	{"GET", anAgent + "/conversation", "limit after", 200, "", ofAgent(agent.conversation)},
	{"POST", anAgent + "/conversation", "", 201, "agents", ofAgent(with(agent.addExchanges))},
	{"PUT", anAgent + "/sms", "", 200, "agents", ofAgent(with(agent.setSMS))},
	{"GET", root + "/calls", filter + " limit n timeout", 200, "", locked((*Server).listCalls)},
	{"POST", root + "/calls", "", 200, "", locked(with((*Server).makeCall))},
	{"DELETE", root + "/calls", "", 204, "calls", locked((*Server).forgetCalls)},
	{"GET", root + "/calls/stream", "after", 200, "", locked((*Server).streamCalls)},
	{"GET", root + "/calls.har", "", 200, "", locked((*Server).archive)},
	{"GET", root + "/replies", "", 200, "", locked((*Server).listScripts)},
	{"POST", root + "/replies", "", 201, "replies", locked(with((*Server).addScript))},
	{"DELETE", root + "/replies", "", 204, "replies", locked((*Server).removeScripts)},
	{"DELETE", root + "/replies/{id}", "", 204, "replies", locked((*Server).removeScript)},
	{"GET", root + "/faults", "", 200, "", locked((*Server).listFaults)},
	{"GET", root + "/fitting-faults", "endpoint", 200, "", locked((*Server).listFitting)},
	{"POST", root + "/faults", "", 201, "faults", locked(with((*Server).addFault))},
	{"DELETE", root + "/faults", "", 204, "faults", locked((*Server).removeFaults)},
	{"DELETE", root + "/faults/{id}", "", 204, "faults", locked((*Server).removeFault)},
	{"GET", root + "/verify", "", 200, "", locked((*Server).verify)},
	{"GET", root + "/decisions", "", 200, "", locked((*Server).decisions)},
	{"GET", root + "/clock", "", 200, "", locked((*Server).clock)},
	{"POST", root + "/clock", "", 200, "clock", locked(with((*Server).advance))},
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

// locked acts under the server's lock, and tells the streams what has changed.
func locked(act func(*Server, *request) (any, error)) handler {
	return func(s *Server, r *request) (any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		out, err := act(s, r)
		if err == nil {
			s.hub.changed(strings.Fields(r.changes)...)
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
