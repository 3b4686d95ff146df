// Package control is the fake's control interface: what package fakeserver can do, as
// JSON over HTTP. openapi.yaml describes it.
//
// control.go lists the routes and takes a request through: ServeHTTP asks the guard,
// handle reads the request whole, takes the server's lock, looks up what the path names
// and calls the handler of the route, and package jsonapi writes what the handler
// returned. server.go has the state that the handlers share, state.go and calls.go
// their handlers for accounts and for recorded calls, and stream.go the stream of
// changes.
//
// A handler checks what only it knows, acts, and returns the answer. Package fakeserver
// makes the other checks, so each bound is stated once; it panics for a wrong argument,
// and rules.PanicAsError makes a 400 of that. A handler runs under the server's lock, so
// that what it checked still holds when it acts. The lock is never held while something
// is read, written or waited for: an answer that takes its time is a jsonapi.Stream,
// which runs after it.
package control

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/rules"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// New returns a Server, and has the fake keep as many exchanges as openapi.yaml
// promises. The error says what is wrong with the replies.
func New(o Options) (*Server, error) {
	replies, err := readReplies(o.Replies)
	if err != nil {
		return nil, fmt.Errorf("replies: %w", err)
	}
	s := &Server{options: o, replies: replies, started: time.Now().UTC(), fake: o.Fake, admin: fakeadmin.Of[fakeserver.Call](o.Fake)}
	s.admin.KeepExchanges(spec.KeptExchanges)
	s.ended, s.end = context.WithCancel(context.Background())
	s.feed = feed{changes: map[string]int{}, news: make(chan struct{})}
	s.mux = s.newMux()
	s.calls.Store(newCallsUntilReset())
	if o.Log != nil {
		s.fake.OnCall(o.Log)
	}
	return s, s.applyOptions()
}

// route answers the requests of one method and path. A request for an unknown
// key or agent, or with an unknown parameter, never reaches its handler.
type route struct {
	// status is the status of a success: 200, 201 for something new, 204 for no body.
	status int
	// query has the names of the query parameters that the route takes, with a space
	// between.
	query string
	// changes are the kinds of state that a success changes, as feed.wake names them.
	// The page loads those again.
	changes string
	// maxBody is the size of the largest body, in bytes. 0 means that the route takes
	// none, and refuses one: its sender believes that it has an effect. {} and blanks
	// are accepted, since some clients always send them.
	maxBody int64
	handle  handler
}

// The values of route.maxBody. A state holds up to 1,000 exchanges of 4 KB for each
// agent, so it soon is larger than what else has a body.
const (
	noBody    = 0
	smallBody = spec.MaxBody
	largeBody = 1 << 30
)

// root begins the path of every route. filter names the parameters that pick calls,
// which matchers reads.
const (
	root   = "/_fake/v1"
	filter = "endpoint status decided key agent_id text text_containing search after before"
)

// routes are the whole interface: method and path, below root, with status, query,
// changes, maxBody and handle. The module tools/openapi holds the answers of all tests to
// openapi.yaml. POST agents makes what the service would have made before the test,
// without a call; POST calls makes a call.
var routes = map[string]route{
	// The program and its fake as a whole.
	"GET /openapi.yaml": {200, "", "", noBody, download("application/yaml", (*Server).writeDocument)},
	"GET /info":         {200, "", "", noBody, (*Server).info},
	"POST /reset":       {204, "", "reset", noBody, (*Server).reset},
	"GET /state":        {200, "", "", noBody, download("application/json", (*Server).writeState)},
	"PUT /state":        {204, "", "keys agents byok limits clock", largeBody, (*Server).putState},
	"GET /clock":        {200, "", "", noBody, (*Server).clock},
	"POST /clock":       {200, "", "clock", smallBody, withBody((*Server).advance)},
	"GET /decisions":    {200, "", "", noBody, (*Server).decisions},
	// Accounts, by the labels of their keys: no path holds the text of one.
	"GET /keys":         {200, "", "", noBody, (*Server).listKeys},
	"POST /keys":        {201, "", "keys", smallBody, withBody((*Server).issueKey)},
	"GET /keys/{key}":   {200, "address", "", noBody, (*Server).getKey},
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
	"GET /calls.jsonl":  {200, "", "", noBody, download("application/jsonl", (*Server).writeCalls)},
	// Rules, each kind under its name.
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

// newMux returns a router of net/http, which picks the row and reads the names in the
// path.
func (s *Server) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, row := range routes {
		method, below, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+root+below, func(w http.ResponseWriter, r *http.Request) {
			out, err := s.handle(row, w, r)
			jsonapi.Answer(w, r, row.status, out, err)
		})
	}
	return mux
}

// noRoute answers paths and methods that no route has, in JSON as every other answer.
var noRoute = jsonapi.NotFound("no route has this method and path; " + root + "/openapi.yaml describes those that exist")

// ServeHTTP answers a call of the control interface. The guard comes first, so that
// whoever may not call learns nothing of what exists.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := s.options.Guard.Admit(r); err != nil {
		jsonapi.Answer(w, r, 0, nil, err)
		return
	}
	// The mux itself would redirect other forms of a path, and refuse without JSON. A
	// client that is redirected would repeat a POST as a GET.
	if _, pattern := s.mux.Handler(r); pattern == "" || path.Clean(r.URL.Path) != r.URL.Path {
		noRoute.ServeHTTP(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// handle reads a request, acts under the server's lock, and wakes the streams with what
// has changed. A handler that fails, or a parameter that it found wrong, changes
// nothing that a stream must hear of. The feed is woken before the lock is released, so
// that changes arrive in the order in which they were made.
func (s *Server) handle(row route, w http.ResponseWriter, r *http.Request) (out any, err error) {
	// All is read before the lock is taken: a slow client holds up nobody.
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
	// Deferred last and so run first: a panic has become an error before the streams
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

// resolvePath looks up the key and the agent that the path names, so that each handler
// has them in hand, and an unknown one is a 404 everywhere.
func (s *Server) resolvePath(r *http.Request) (*request, error) {
	found := &request{Request: r}
	if label := r.PathValue("key"); label != "" {
		var known bool
		if found.key, found.keyText, known = s.admin.KeyLabeled(label); !known {
			return nil, jsonapi.NotFound(noSuchKey)
		}
	}
	if id := r.PathValue("agent_id"); id != "" {
		agent, is := s.fake.Agent(id)
		if !is {
			return nil, jsonapi.NotFound("no agent has this identifier")
		}
		found.agent = agent
	}
	return found, nil
}

// download answers with what write writes, after the lock is released: a slow client
// holds up nobody.
func download(contentType string, write func(*Server, io.Writer) error) handler {
	return func(s *Server, _ *request) (any, error) {
		return jsonapi.Stream(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_ = write(s, w) // the client may be gone
		}), nil
	}
}
