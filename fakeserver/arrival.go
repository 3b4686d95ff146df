package fakeserver

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// arrival is a request that was read whole and judged without looking at any
// state.
type arrival struct {
	route     *route // nil: misrouted says why
	agentID   string
	ip        netip.Addr
	members   members
	secrets   mask.Secrets // the token and the provider keys of the body; never stored
	misrouted *failure     // 404 or 405, judged before the key
	malformed *failure     // 400, judged after the key and the request limits
}

// members holds the values of a request body by field. A free object is stored
// as compact JSON.
type members []member

type member struct {
	field *spec.Field
	value string
}

func (m members) get(f *spec.Field) (string, bool) {
	for i := range m {
		if m[i].field == f {
			return m[i].value, true
		}
	}
	return "", false
}

func (m members) text(f *spec.Field) string {
	s, _ := m.get(f)
	return s
}

func (s *Server) receive(r *http.Request) *request {
	s.touches.Add(1)
	raw, size, flaw := readBody(r)
	token, hasKey := bearer(r.Header["Authorization"])
	req := &request{now: s.now(), arrival: arrival{
		ip: clientIP(r), malformed: flaw, secrets: mask.SecretsOf(token, raw),
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
	s.recordBody(req, raw)
	return req
}

func (s *Server) parse(req *request, h http.Header, raw []byte) {
	members, flaw := s.config.parseBody(req.route.spec, h, raw)
	if flaw != nil {
		flaw.reason = req.secrets.Clean(flaw.reason)
	}
	req.members, req.malformed = members, flaw
	req.record.text, req.record.hasText = members.get(spec.MessageText)
}

// recordBody records the body, and more of one that the endpoint accepts: of any
// other it is not known which strings are keys or words.
func (s *Server) recordBody(req *request, raw []byte) {
	body := mask.Body{Texts: s.config.messageTexts, Secrets: req.secrets}
	switch {
	case req.malformed == nil && req.misrouted == nil && req.route.spec.Body == nil:
		return
	case req.malformed != nil || req.misrouted != nil:
		body.Foreign, body.Known = true, req.showsField
		raw = raw[:min(len(raw), spec.KeptBody)]
	}
	req.record.call.Body = mask.Clip(body.Of(raw), spec.KeptBody)
}

// showsField reports whether the endpoint has a field of that name with a value
// that a record may hold.
func (req *request) showsField(member string) bool {
	return req.route != nil && slices.ContainsFunc(req.route.spec.Body, func(f *spec.Field) bool { return shows(f, member) })
}

func shows(f *spec.Field, member string) bool {
	if f.Kind == spec.Object {
		return slices.ContainsFunc(f.Fields, func(inner *spec.Field) bool { return shows(inner, member) })
	}
	return f.Name() == member && f != spec.SystemPrompt && f != spec.MessageText
}

func newRecord(r *http.Request, req *request) *record {
	rec := &record{call: Call{
		Header:  req.secrets.CleanHeader(r.Header),
		Time:    req.now,
		Method:  kept(req.secrets.Clean(r.Method)),
		Path:    kept(req.secrets.CleanPath(sentPath(r.URL))),
		AgentID: kept(req.secrets.Clean(req.agentID)),
		Address: req.ip.String(),
	}}
	rec.call.URL = addressOf(r, rec.call.Path, req.secrets)
	if req.route != nil {
		rec.call.Endpoint = req.route.endpoint()
	}
	return rec
}

// addressOf is where a request was sent to, without secrets; path has none.
func addressOf(r *http.Request, path string, secrets mask.Secrets) string {
	scheme := "http://"
	if r.TLS != nil || r.Host == host {
		scheme = "https://"
	}
	address := scheme + kept(secrets.Clean(r.Host)) + path
	if r.URL.RawQuery == "" {
		return address
	}
	return address + "?" + kept(secrets.CleanQuery(r.URL.Query()))
}

// readBody reads the whole body, even if it is wrong, so that the answer does
// not depend on the speed of the client. size counts the bytes that were read:
// one more than the bound when the body is too long.
func readBody(r *http.Request) (raw []byte, size int, flaw *failure) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, 0, nil
	}
	raw, err := readAll(r)
	switch {
	case err != nil:
		return raw, len(raw), badRequest("body", "it did not arrive whole")
	case len(raw) > spec.MaxBody:
		return raw, len(raw), badRequest("body", fmt.Sprintf("at most %d bytes", spec.MaxBody))
	}
	return raw, len(raw), nil
}

// readAll reads a body, or one byte more than is allowed. Where the length is
// given, as it almost always is, it allocates exactly that.
func readAll(r *http.Request) ([]byte, error) {
	if r.ContentLength <= 0 || r.ContentLength > spec.MaxBody {
		return io.ReadAll(io.LimitReader(r.Body, spec.MaxBody+1))
	}
	raw := make([]byte, r.ContentLength)
	n, err := io.ReadFull(r.Body, raw)
	return raw[:n], err
}

// checkEncoding accepts JSON in UTF-8 without compression. A request may leave
// both headers out.
func (c *choices) checkEncoding(h http.Header) *failure {
	for _, coding := range h["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			return badRequest("Content-Encoding", "only identity is accepted")
		}
	}
	for _, value := range h["Content-Type"] {
		if !c.contentType && value != "application/json" && !strictjson.IsType(value) {
			return badRequest("Content-Type", "must be application/json, in UTF-8")
		}
	}
	return nil
}

// clientIP is the client's address without its port. Calls without an address
// share the zero address.
func clientIP(r *http.Request) netip.Addr {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	return from.Addr().Unmap().WithZone("")
}
