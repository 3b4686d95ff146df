package fakeserver

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// arrival is a request that was read whole and judged without looking at any
// state.
type arrival struct {
	route     *route // nil: misrouted says why
	agentID   string
	ip        netip.Addr
	members   members
	secrets   []string // the token and the provider keys of the body; never stored
	misrouted *failure // 404 or 405, judged before the key
	malformed *failure // 400, judged after the key and the request limits
}

// receive reads a request whole and judges it.
func (s *Server) receive(r *http.Request) *request {
	s.touches.Add(1)
	raw, size, flaw := readBody(r)
	token, hasKey := bearer(r.Header["Authorization"])
	req := &request{now: s.now(), arrival: arrival{
		ip: clientIP(r), malformed: flaw, secrets: secretsOf(token, raw),
	}}
	req.route, req.agentID, req.misrouted = find(r.Method, sentPath(r.URL))
	if req.misrouted != nil && s.config.unknownMethod == http.StatusNotFound {
		req.misrouted = noSuchPath
	}
	req.record = newRecord(r, req)
	req.record.token, req.record.hasKey = digestOf(token), hasKey
	req.record.call.BodyBytes = size
	if req.route != nil && req.route.spec.Body != nil && flaw == nil {
		s.parse(req, r.Header, raw)
	}
	if req.malformed != nil || req.misrouted != nil {
		s.keepRefused(req, raw)
	}
	return req
}

func (s *Server) parse(req *request, h http.Header, raw []byte) {
	members, shown, flaw := s.config.parseBody(req.route.spec, h, raw, s.config.messageTexts)
	if flaw != nil {
		flaw.reason = scrub(flaw.reason, req.secrets)
	}
	req.members, req.malformed = members, flaw
	req.record.call.Body = clip(scrubJSON(shown, req.secrets), maxRecordedBody)
	req.record.text, req.record.hasText = members.get(spec.MessageText)
}

// keepRefused records a body that no endpoint accepts. On a test's first day its
// author looks for it.
func (s *Server) keepRefused(req *request, raw []byte) {
	l := legible{texts: s.config.messageTexts, secrets: req.secrets}
	if req.route != nil {
		l.fields = req.route.spec.Body
	}
	raw = raw[:min(len(raw), maxRecordedBody, maxBody)]
	req.record.call.Body = clip(l.of(raw), maxRecordedBody)
}

func newRecord(r *http.Request, req *request) *record {
	rec := &record{header: redactHeader(r.Header, req.secrets), call: Call{
		Time:    req.now,
		Method:  kept(scrub(r.Method, req.secrets)),
		Path:    kept(scrubPath(sentPath(r.URL), req.secrets)),
		AgentID: kept(scrub(req.agentID, req.secrets)),
		Address: req.ip.String(),
	}}
	rec.base, rec.query = addressOf(r, req.secrets)
	if req.route != nil {
		rec.call.Endpoint = req.route.name
	}
	return rec
}

// addressOf is where a request was sent to, without secrets.
func addressOf(r *http.Request, secrets []string) (base, query string) {
	switch {
	case r.Host == host:
		base = "https://" + host
	case r.TLS != nil:
		base = "https://" + kept(scrub(r.Host, secrets))
	default:
		base = "http://" + kept(scrub(r.Host, secrets))
	}
	if r.URL.RawQuery == "" {
		return base, ""
	}
	values := r.URL.Query()
	for name, all := range values {
		for i, v := range all {
			if looksSecret(v) || containsAny(strings.ToLower(name), secretNames) {
				all[i] = redactedKey
			}
		}
	}
	return base, kept(scrub(values.Encode(), secrets))
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

// clientIP is the client's address without its port. Calls without an address
// share the zero address.
func clientIP(r *http.Request) netip.Addr {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	return from.Addr().Unmap().WithZone("")
}

// bearer returns the token of the one Authorization header: interface 5. The
// scheme's case does not matter, and a token has no spaces (RFC 9110, 11.4).
func bearer(headers []string) (token string, ok bool) {
	if len(headers) != 1 {
		return "", false
	}
	scheme, rest, _ := strings.Cut(headers[0], " ")
	token = strings.TrimLeft(rest, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " \t,") {
		return "", false
	}
	return token, true
}
