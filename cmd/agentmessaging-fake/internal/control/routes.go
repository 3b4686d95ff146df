package control

import (
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/rules"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakedoor"
)

// handler answers a request with a value that becomes JSON, with a jsonapi.Stream,
// with nil for no body, or with an error.
type handler func(*request) (any, error)

// request is a request that was read whole, with what its path names.
type request struct {
	*jsonapi.Request
	key   fakedoor.Key     // of {key}
	text  string           // of that key
	agent fakeserver.Agent // of {agent_id}
}

// route is what answers the requests of one method and path.
type route struct {
	status  int    // of a success
	query   string // the names of query parameters, with a space between
	changes string // the kinds of state that a success changes, as feed.changed names them
	handle  handler
}

const (
	root   = "/_fake/v1"
	filter = "endpoint status decided key agent_id text text_containing search after before"
)

// routes is the whole interface: method and path, below root.
func (s *Server) routes() map[string]route {
	return map[string]route{
		"GET /openapi.yaml":                    {200, "", "", file("application/yaml", writeDocument)},
		"GET /info":                            {200, "", "", s.info},
		"POST /reset":                          {204, "", "reset", s.reset},
		"GET /state":                           {200, "", "", file("application/json", s.WriteState)},
		"PUT /state":                           {204, "", "keys agents byok limits clock", s.putState},
		"GET /clock":                           {200, "", "", s.clock},
		"POST /clock":                          {200, "", "clock", with(s.advance)},
		"GET /decisions":                       {200, "", "", s.decisions},
		"GET /keys":                            {200, "", "", s.listKeys},
		"POST /keys":                           {201, "", "keys", with(s.issueKey)},
		"GET /keys/{key}":                      {200, "address", "", s.getKey},
		"PATCH /keys/{key}":                    {200, "", "keys", with(s.changeKey)},
		"PUT /byok":                            {200, "", "byok", with(s.setBYOKStore)},
		"GET /agents":                          {200, "limit", "", s.listAgents},
		"POST /agents":                         {201, "", "agents", with(s.addAgent)},
		"GET /agents/{agent_id}":               {200, "", "", s.getAgent},
		"DELETE /agents/{agent_id}":            {204, "", "agents", s.removeAgent},
		"PUT /agents/{agent_id}/sms":           {200, "", "agents", with(s.setSMS)},
		"GET /agents/{agent_id}/conversation":  {200, "limit", "", s.conversation},
		"POST /agents/{agent_id}/conversation": {201, "", "agents", with(s.addExchanges)},
		"GET /calls":                           {200, filter + " limit n timeout", "", s.listCalls},
		"POST /calls":                          {200, "", "", with(s.makeCall)},
		"DELETE /calls":                        {204, "", "calls", s.forgetCalls},
		"GET /calls/stream":                    {200, "after", "", s.feed.stream},
		"GET /calls.har":                       {200, "", "", file("application/json", s.writeArchive)},
		"GET /replies":                         {200, "", "", s.listRules("replies", rules.Replies)},
		"POST /replies":                        {201, "", "replies", s.addRule(rules.Replies)},
		"DELETE /replies":                      {204, "", "replies", s.removeRules(rules.Replies)},
		"DELETE /replies/{id}":                 {204, "", "replies", s.removeRules(rules.Replies)},
		"GET /faults":                          {200, "", "", s.listRules("faults", rules.Faults)},
		"POST /faults":                         {201, "", "faults", s.addRule(rules.Faults)},
		"DELETE /faults":                       {204, "", "faults", s.removeRules(rules.Faults)},
		"DELETE /faults/{id}":                  {204, "", "faults", s.removeRules(rules.Faults)},
		"GET /fitting-faults":                  {200, "endpoint", "", s.fittingFaults},
		"GET /verify":                          {200, "", "", s.verify},
		"POST /keys/{key}/limits/{limit_key}/exhaust": {204, "", "limits", s.exhaust},
	}
}

func (s *Server) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, row := range s.routes() {
		method, below, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+root+below, func(w http.ResponseWriter, r *http.Request) {
			out, err := s.handle(row, w, r)
			jsonapi.Answer(w, r, row.status, out, err)
		})
	}
	return mux
}

var noRoute = jsonapi.NotFound("no route has this method and path; " + root + "/openapi.yaml describes those that exist")

// ServeHTTP answers a call of the control interface.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := s.options.Guard.Admit(r); err != nil {
		jsonapi.Answer(w, r, 0, nil, err)
		return
	}
	// The mux itself would redirect other forms of a path, and refuse without JSON.
	if _, pattern := s.mux.Handler(r); pattern == "" || path.Clean(r.URL.Path) != r.URL.Path {
		noRoute.ServeHTTP(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// handle reads a request, acts under the server's lock, and tells the streams what
// has changed.
func (s *Server) handle(row route, w http.ResponseWriter, r *http.Request) (out any, err error) {
	req, err := jsonapi.Read(w, r, row.query)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if err == nil {
			s.feed.changed(strings.Fields(row.changes)...)
		}
	}()
	defer misuse(&err)
	found, err := s.find(req)
	if err != nil {
		return nil, err
	}
	if out, err = row.handle(found); err != nil {
		return nil, err
	}
	return out, req.Query.Err
}

const noSuchKey = "no key has this label, such as key_000001; GET keys lists them"

// find looks up what the path names.
func (s *Server) find(r *jsonapi.Request) (*request, error) {
	found := &request{Request: r}
	if label := r.PathValue("key"); label != "" {
		keys := s.admin.Keys()
		i := slices.IndexFunc(keys, func(k fakedoor.Key) bool { return k.Label == label })
		if i < 0 {
			return nil, jsonapi.NotFound(noSuchKey)
		}
		found.key = keys[i]
		found.text, _ = s.admin.KeyLabeled(label)
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

// misuse makes an error of the panic with which package fakeserver refuses a wrong
// argument: its sentence names the argument and what is allowed. Other panics go on.
func misuse(err *error) {
	switch p := recover().(type) {
	case nil:
	case string:
		reason, is := strings.CutPrefix(p, "fakeserver: ")
		if !is {
			panic(p)
		}
		*err = errors.New(reason)
	default:
		panic(p)
	}
}

// with decodes the body for a handler that takes one.
func with[T any](act func(*request, T) (any, error)) handler {
	return func(r *request) (any, error) {
		body, err := jsonapi.Decode[T](r.Body)
		if err != nil {
			return nil, err
		}
		return act(r, body)
	}
}

func (s *Server) listRules(name string, kind rules.Kind) handler {
	return func(*request) (any, error) {
		return map[string]any{name: s.rules.All(kind)}, nil
	}
}

func (s *Server) addRule(kind rules.Kind) handler {
	return with(func(_ *request, r rules.Rule) (any, error) { return s.rules.Add(kind, r) })
}

func (s *Server) removeRules(kind rules.Kind) handler {
	return func(r *request) (any, error) {
		id := r.PathValue("id")
		if !s.rules.Remove(kind, id) && id != "" {
			return nil, jsonapi.NotFound("no " + string(kind) + " has this id")
		}
		return nil, nil
	}
}

func (s *Server) verify(*request) (any, error) {
	unmet := s.rules.Unmet()
	return map[string]any{"met": len(unmet) == 0, "unmet": unmet}, nil
}

func (s *Server) fittingFaults(r *request) (any, error) {
	fitting, err := rules.Fitting(r.Query.Get("endpoint"))
	return map[string]any{"faults": fitting}, err
}
