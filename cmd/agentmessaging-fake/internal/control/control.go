// Package control is the fake's control interface: the functions of package fakeserver,
// as JSON over HTTP. openapi.yaml describes it.
//
// control.go lists the routes and handles a request: ServeHTTP asks the guard. handle
// reads the whole request, takes the server's lock, looks up the key and the agent of the
// path, and calls the handler of the route. Package jsonapi writes the result of the
// handler. server.go has the Server, with the state that the handlers share, and the handlers
// for the fake as a whole and for rules. accounts.go has the handlers for accounts, calls.go
// those for recorded calls, and stream.go has the stream of changes.
//
// A handler makes the checks that only it can make, acts, and returns the answer. Package
// fakeserver makes the other checks, so that each bound is stated only once. It panics
// for a wrong argument, and rules.PanicAsError turns the panic into a 400. A handler runs
// under the server's lock, so that its checks still hold when it acts. The lock is never
// held during a read, a write or a wait. A slow answer is a jsonapi.Stream, which runs
// after the lock is released.
package control

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/rules"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
)

// route answers the requests of one method and path. A request for an unknown key or
// agent, or with an unknown parameter, does not reach the handler.
type route struct {
	// status is the status of a success: 200, 201 for something new, 204 for no body.
	status int
	// query has the names of the query parameters that the route takes, separated by spaces.
	query string
	// changes are the kinds of state that a success changes, as feed.wake names them. The
	// page loads these kinds again.
	changes string
	// maxBody is the size of the largest body, in bytes. 0 means that the route takes no
	// body. It then refuses a body, because the sender believes that the body has an effect.
	// {} and blanks are accepted, since some clients always send them.
	maxBody int64
	handle  handler
}

// The values of route.maxBody. A state holds up to 1,000 exchanges of 4 KB for each
// agent, so it soon is larger than any other body.
const (
	noBody    = 0
	smallBody = decisions.MaxBody
	largeBody = 1 << 30
)

// basePath is the beginning of every route's path. filter lists the parameters that pick
// calls, which matchers reads.
const (
	basePath = "/_fake/v1"
	filter   = "endpoint status key agent_id text text_containing search after before"
)

// routes are the whole interface: method and path, below basePath, with status, query,
// changes, maxBody and handle. The module tools/openapi checks the answers of all tests
// against openapi.yaml. POST agents adds an agent without a call, as if the service had
// created it before the test. POST calls makes a call.
var routes = map[string]route{
	// The program and its fake as a whole.
	"GET /openapi.yaml": {200, "", "", noBody, download("application/yaml", writeDocument)},
	"GET /info":         {200, "", "", noBody, (*Server).info},
	"POST /reset":       {204, "", "reset", noBody, (*Server).reset},
	"GET /state":        {200, "", "", noBody, download("application/json", (*fakeserver.Server).WriteState)},
	"PUT /state":        {204, "", "keys agents byok limits clock", largeBody, (*Server).putState},
	"GET /clock":        {200, "", "", noBody, (*Server).clock},
	"POST /clock":       {200, "", "clock", smallBody, withBody((*Server).advance)},
	"GET /decisions":    {200, "", "", noBody, (*Server).decisions},
	// Accounts, by the labels of their keys, so that no path holds the text of a key.
	"GET /keys":         {200, "", "", noBody, (*Server).listKeys},
	"POST /keys":        {201, "", "keys", smallBody, withBody((*Server).issueKey)},
	"GET /keys/{key}":   {200, "", "", noBody, (*Server).getKey},
	"PATCH /keys/{key}": {200, "", "keys", smallBody, withBody((*Server).changeKey)},
	"POST /keys/{key}/limits/{limit_key}/exhaust": {204, "", "limits", noBody, (*Server).exhaust},
	"PUT /byok":                            {200, "", "byok", smallBody, withBody((*Server).setBYOKStore)},
	"GET /agents":                          {200, "limit", "", noBody, (*Server).listAgents},
	"POST /agents":                         {201, "", "agents", smallBody, withBody((*Server).addAgent)},
	"GET /agents/{agent_id}":               {200, "", "", noBody, (*Server).getAgent},
	"DELETE /agents/{agent_id}":            {204, "", "agents", noBody, (*Server).removeAgent},
	"PUT /agents/{agent_id}/sms":           {200, "", "agents", smallBody, withBody((*Server).setSMS)},
	"GET /agents/{agent_id}/conversation":  {200, "limit", "", noBody, (*Server).conversation},
	"POST /agents/{agent_id}/conversation": {201, "", "agents", smallBody, withBody((*Server).addExchanges)},
	// Recorded calls.
	"GET /calls":        {200, filter + " limit n timeout", "", noBody, (*Server).listCalls},
	"POST /calls":       {200, "", "", smallBody, withBody((*Server).makeCall)},
	"DELETE /calls":     {204, "", "calls", noBody, (*Server).forgetCalls},
	"GET /calls/stream": {200, "", "", noBody, (*Server).stream},
	"GET /calls.jsonl":  {200, "", "", noBody, download("application/jsonl", writeCalls)},
	// Rules: one path for each kind.
	"GET /replies":         {200, "", "", noBody, listRules("replies", rules.Replies)},
	"POST /replies":        {201, "", "replies", smallBody, addRule[rules.Script]()},
	"DELETE /replies":      {204, "", "replies", noBody, removeRules(rules.Replies)},
	"DELETE /replies/{id}": {204, "", "replies", noBody, removeRules(rules.Replies)},
	"GET /faults":          {200, "", "", noBody, listRules("faults", rules.Faults)},
	"POST /faults":         {201, "", "faults", smallBody, addRule[rules.Injection]()},
	"DELETE /faults":       {204, "", "faults", noBody, removeRules(rules.Faults)},
	"DELETE /faults/{id}":  {204, "", "faults", noBody, removeRules(rules.Faults)},
	"GET /fitting-faults":  {200, "endpoint", "", noBody, (*Server).fittingFaults},
	"GET /verify":          {200, "", "", noBody, (*Server).verify},
}

// newMux returns a router of net/http, which picks the route and reads the names in the
// path.
func (s *Server) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, row := range routes {
		method, below, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+basePath+below, func(w http.ResponseWriter, r *http.Request) {
			out, err := s.handle(row, w, r)
			jsonapi.Answer(w, r, row.status, out, err)
		})
	}
	return mux
}

// noRoute answers paths and methods that no route has, in JSON like every other answer.
var noRoute = jsonapi.NotFound("no route has this method and path; " + basePath + "/openapi.yaml describes those that exist")

// ServeHTTP answers a call of the control interface. The guard comes first, so that a
// caller without permission does not learn what exists.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := s.options.Guard.Admit(r); err != nil {
		jsonapi.Answer(w, r, 0, nil, err)
		return
	}
	// The mux would redirect other forms of a path, and would refuse a path without JSON. A
	// redirected client would repeat a POST as a GET.
	if _, pattern := s.mux.Handler(r); pattern == "" || path.Clean(r.URL.Path) != r.URL.Path {
		noRoute.ServeHTTP(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// request is a request that was read whole, with the key and the agent that its path
// names. A field is empty if the path does not name it.
type request struct {
	*http.Request
	query jsonapi.Query
	body  []byte
	// key and keyText are the key that {key} names, and its text.
	key     fakeadmin.Key
	keyText string
	// agent is the agent that {agent_id} names, as it was before the handler acts.
	agent fakeserver.Agent
}

// handler answers a request with a value that becomes JSON, with a jsonapi.Stream,
// with nil for no body, or with an error. A handler that reads query must change nothing,
// since handle refuses a wrong parameter only after it.
type handler func(*Server, *request) (any, error)

// withBody decodes the body for a handler that takes one.
func withBody[T any](act func(*Server, *request, T) (any, error)) handler {
	return func(s *Server, r *request) (any, error) {
		body, err := jsonapi.Decode[T](r.body)
		if err != nil {
			return nil, err
		}
		return act(s, r, body)
	}
}

// handle reads a request, acts under the server's lock, and wakes the streams with the
// kinds of state that have changed. If the handler fails, or finds a wrong parameter,
// there is no change to report. handle wakes the feed before it releases the lock, so
// that changes arrive in the order in which they were made.
func (s *Server) handle(row route, w http.ResponseWriter, r *http.Request) (out any, err error) {
	// The whole request is read before the lock is taken, so that a slow client delays
	// nobody.
	query, body, err := jsonapi.Read(w, r, row.query, cmp.Or(row.maxBody, smallBody))
	if err == nil && row.maxBody == noBody && len(bytes.TrimSpace(body)) > 0 {
		_, err = jsonapi.Decode[struct{}](body)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if err == nil && row.changes != "" {
			s.feed.wake(strings.Fields(row.changes)...)
		}
	}()
	// This is deferred last and so runs first: a panic becomes an error before the streams
	// are woken.
	defer rules.PanicAsError(&err)
	req, err := s.resolvePath(r)
	if err != nil {
		return nil, err
	}
	req.query, req.body = query, body
	if out, err = row.handle(s, req); err != nil {
		return nil, err
	}
	return out, req.query.Err
}

// resolvePath looks up the key and the agent that the path names. So each handler gets
// them, and an unknown key or agent is a 404 everywhere.
func (s *Server) resolvePath(r *http.Request) (*request, error) {
	found := &request{Request: r}
	if label := r.PathValue("key"); label != "" {
		var known bool
		if found.key, found.keyText, known = s.admin.KeyLabeled(label); !known {
			return nil, jsonapi.NotFound(rules.NoSuchKey)
		}
	}
	if id := r.PathValue("agent_id"); id != "" {
		agent, ok := s.fake.Agent(id)
		if !ok {
			return nil, jsonapi.NotFound("no agent has this identifier")
		}
		found.agent = agent
	}
	return found, nil
}

// download answers with the output of write. write runs after the lock is released, so
// that a slow client delays nobody.
func download(contentType string, write func(*fakeserver.Server, io.Writer) error) handler {
	return func(s *Server, _ *request) (any, error) {
		return jsonapi.Stream(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_ = write(s.fake, w) // the client may be gone
		}), nil
	}
}
