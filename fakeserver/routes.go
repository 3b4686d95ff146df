package fakeserver

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// judge decides how a call is answered, without regard to its key, plan and
// limits. It returns the operation to carry out, or a failure. It changes
// nothing. The server's lock is held.
type judge func(*Server, *request) (operation, *failure)

type route struct {
	spec  *spec.Endpoint
	judge judge
}

// routes are the nine endpoints. Their rows in spec have the body that each
// takes and the statuses that it answers, besides the call and what it spends,
// which stand here again for the reader. Nothing changes routes.
var routes = []route{
	{spec.Status, (*Server).status},           // GET /v1/status spends nothing
	{spec.WarmUp, (*Server).warmUp},           // POST /v1/warmup spends requests, warm-ups
	{spec.GetBYOK, (*Server).getBYOK},         // GET /v1/byok spends nothing
	{spec.SetBYOK, (*Server).setBYOK},         // PUT /v1/byok spends requests, BYOK sets
	{spec.ClearBYOK, (*Server).clearBYOK},     // DELETE /v1/byok spends nothing
	{spec.CreateAgent, (*Server).createAgent}, // POST /v1/agents spends requests, agent creations; with llm.api_key, BYOK sets
	{spec.GetAgent, (*Server).getAgent},       // GET /v1/agents/{agent_id} spends requests
	{spec.SendMessage, (*Server).sendMessage}, // POST /v1/agents/{agent_id}/messages spends requests
	{spec.EnableSMS, (*Server).enableSMS},     // POST /v1/agents/{agent_id}/channels/sms spends requests
}

func (r *route) endpoint() Endpoint { return Endpoint(r.spec.Call) }

// find returns the route of a request and the value of {agent_id}. path is the
// path as it was sent, so that an identifier with %2F stays one segment. Paths
// are neither cleaned nor redirected: no route has //, . or .. in it.
func find(method, path string) (*route, string, *failure) {
	for i := range routes {
		if routes[i].spec.Method != method {
			continue
		}
		if id, ok := match(routes[i].spec.Path, path); ok {
			return &routes[i], id, nil
		}
	}
	return nil, "", misrouted(path)
}

// misrouted is the 404 or 405 of a call that no route fits.
func misrouted(path string) *failure {
	var allowed []string
	for i := range routes {
		if _, ok := match(routes[i].spec.Path, path); ok {
			allowed = append(allowed, routes[i].spec.Method)
		}
	}
	if allowed == nil {
		return noSuchPath
	}
	return methodNotAllowed(strings.Join(allowed, ", "))
}

// match compares a path with a template, segment by segment.
func match(template, path string) (id string, ok bool) {
	for template != "" && path != "" {
		var want, got string
		want, template = segment(template)
		got, path = segment(path)
		switch {
		case want == "{agent_id}" && got != "" && got != "." && got != "..":
			id = got
		case want != got:
			return "", false
		}
	}
	if template != "" || path != "" {
		return "", false
	}
	id, err := url.PathUnescape(id)
	return id, err == nil
}

// segment cuts the first segment, without its slash, off a path. Where a path
// does not start with a slash, the whole of it is a segment that no template
// has.
func segment(path string) (first, rest string) {
	if path[0] != '/' {
		return path, ""
	}
	end := strings.IndexByte(path[1:], '/')
	if end < 0 {
		return path[1:], ""
	}
	return path[1 : end+1], path[end+1:]
}

// sentPath is the path as the client sent it. EscapedPath alone escapes a path
// anew when the client left a character unescaped that needs an escape:
// /v1/agent%73/{a} would become /v1/agents/%7Ba%7D.
func sentPath(u *url.URL) string {
	if path, err := url.PathUnescape(u.RawPath); err == nil && path == u.Path && path != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}

// status is interface 4.1, which shows only the types of the values.
func (s *Server) status(*request) (operation, *failure) {
	return operation{act: func() reply {
		return &statusReply{OK: true, statusValues: s.config.status}
	}}, nil
}

// warmUp is interface 4.2. A store that is down cannot say that nothing is
// stored, so it comes first.
func (s *Server) warmUp(req *request) (operation, *failure) {
	mode := req.members.text(spec.WarmUpMode)
	switch {
	case req.malformed != nil: // without a mode nobody knows whether a 403 applies
		return operation{}, req.malformed
	case mode != spec.ModeBYOK:
		mode = spec.ModeHosted // the default
	case !req.key.Dashboard:
		return operation{}, forbidden
	case req.world.byokUnavailable && (s.config.storeDownFirst || req.key.byok != nil):
		return operation{}, byokUnavailable(spec.WarmUp, spec.WarmUpMode)
	case req.key.byok == nil:
		return operation{}, byokNotConfigured(spec.WarmUp, spec.WarmUpMode)
	}
	return operation{act: func() reply {
		req.key.warm = true
		return &warmUpReply{OK: true, Warmed: true, Mode: mode}
	}}, nil
}

// maxUnknown bounds the reported calls to unknown routes: a client that polls
// one would fill the log of a test.
const maxUnknown = 10

// reportUnknown fails the test for a call that no endpoint answers: a test that
// makes one has a wrong path. A fake without a test reports none, since it may
// get foreign traffic.
func (s *Server) reportUnknown(req *request) {
	if req.misrouted == nil || s.tb == nil || s.config.unknownOK {
		return
	}
	switch n := s.unknown.Add(1); {
	case n < maxUnknown:
		s.reportf("%s", unknownRoute(req.record.call.Method, req.record.call.Path))
	case n == maxUnknown:
		s.reportf("%s; further calls to unknown routes are not reported", unknownRoute(req.record.call.Method, req.record.call.Path))
	}
}

// unknownRoute says where a call went, and which endpoint it may have meant.
// path comes from the record: without query and without the call's key.
func unknownRoute(method, path string) string {
	nearest := slices.MaxFunc(routes, func(a, b route) int {
		return slices.Compare(a.nearness(method, path), b.nearness(method, path))
	})
	return fmt.Sprintf("no endpoint is at %s %s; nearest: %s; WithUnknownRoutes allows such calls",
		printable.Name(method), printable.Line(path, maxShown), nearest.spec.Call)
}

// nearness ranks a route for a call: by how long the paths agree, how little
// their lengths differ, and the method.
func (r *route) nearness(method, path string) []int {
	template, agree, sameMethod := r.spec.Path, 0, 0
	if parts := strings.Split(path, "/"); len(parts) > 3 {
		template = strings.Replace(template, "{agent_id}", parts[3], 1)
	}
	for agree < min(len(template), len(path)) && template[agree] == path[agree] {
		agree++
	}
	if method == r.spec.Method {
		sameMethod = 1
	}
	return []int{agree, -max(len(template)-len(path), len(path)-len(template)), sameMethod}
}

// callName names a call in the log of a test. It is not the path, which may
// hold a key by mistake.
func callName(r *http.Request) string {
	if route, _, _ := find(r.Method, sentPath(r.URL)); route != nil {
		return route.spec.Call
	}
	return "a call to no endpoint"
}
