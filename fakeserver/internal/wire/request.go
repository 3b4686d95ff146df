// Package wire reads and writes HTTP: it reads requests strictly, finds their endpoint,
// and writes the answers of package service and the sentence of Call.Why. It holds
// no state, and decides about no call. It only chooses the defaults of an answer that a test
// injects.
//
// request.go reads requests. Read takes a request with its whole body, finds the endpoint
// by method and path, checks the body against the fields of package spec, and masks the
// parts that a record may show. If something is wrong, it stores a Refusal and goes on,
// because package service decides which of several refusals comes first.
//
// answer.go writes answers. Encode writes a reply or a Refusal as JSON, InjectedAnswer is
// what a test answers in place of the service, and Why explains a Refusal to the author of a
// test. Package memnet sends the answer over a connection.
package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// Request is a request that was read whole and checked without any state. Shown is safe
// to keep: it has no secret of the call, and its size is bounded.
type Request struct {
	service.Request
	// Secrets are the keys of the call. Later texts about the call are masked with them.
	Secrets mask.Secrets
	// BodyBytes is how many bytes of the body were read: at most one more than a body may
	// have.
	BodyBytes int
	Shown     struct { // the parts that may be kept and shown
		Method, URL, Path, AgentID string
		Header                     http.Header
		Body                       string
	}
}

// Read reads a request with its whole body, even if the request is wrong, so that the
// answer does not depend on the speed of the client. fakeHost is the host whose URLs are
// https although nothing is encrypted. showTexts leaves people's words readable. Read
// returns no error, because Unrouted (404, 405) and Malformed (400) say what is wrong.
func Read(r *http.Request, behavior *service.Behavior, fakeHost string, showTexts bool) *Request {
	req := new(Request)
	req.IP = callerIP(r.RemoteAddr)
	var body []byte
	body, req.BodyBytes, req.Malformed = readBody(r.Body, behavior)
	// Without a token the digest stays zero. The digest of "" is not zero.
	token, hasToken := bearer(r.Header["Authorization"])
	if hasToken {
		req.Token = service.DigestOf(token)
	}
	req.Secrets = mask.SecretsOf(token, body)
	path := r.URL.EscapedPath()
	req.Endpoint, req.AgentID, req.Unrouted = findEndpoint(behavior, r.Method, path)
	if req.Endpoint != nil && req.Endpoint.Body != nil && req.Malformed == nil && (len(body) > 0 || req.Endpoint.Body.Required) {
		if req.Malformed = headerFlaw(behavior, r.Header); req.Malformed == nil {
			req.Fields, req.Malformed = Parse(behavior, req.Endpoint, body, req.Secrets)
		}
	}
	req.fillShown(r, path, body, fakeHost, showTexts)
	return req
}

// callerIP returns the address that a call comes from, for the limits per address of
// interface 8.1. Calls without an address share the zero address. An IPv4 address in the
// form of IPv6 counts as the IPv4 address. A zone is dropped, since it names a local
// network card.
func callerIP(remote string) netip.Addr {
	address, _, err := net.SplitHostPort(remote)
	if err != nil { // a middleware may have set an address without a port, from a proxy's header
		address = remote
	}
	ip, _ := netip.ParseAddr(address)
	return ip.Unmap().WithZone("")
}

// readBody reads at most one byte more than a body may have. size is how many bytes it
// has read. A body that is too long or breaks off is a 400. readBody still returns its
// beginning, for the record.
func readBody(from io.Reader, behavior *service.Behavior) (body []byte, size int, malformed *service.Refusal) {
	if from == nil || from == http.NoBody {
		return nil, 0, nil
	}
	body, err := io.ReadAll(io.LimitReader(from, decisions.MaxBody+1))
	switch {
	case err != nil:
		malformed = service.BadField("body", "it did not arrive whole")
	case len(body) > decisions.MaxBody:
		malformed = service.BadField("body", fmt.Sprintf("at most %d bytes", decisions.MaxBody))
	}
	size = len(body)
	if behavior.AcceptsTrailing {
		body = firstDocument(body)
	}
	return body, size, malformed
}

// firstDocument cuts off the bytes after a JSON document, so that no check and no record
// sees them.
func firstDocument(body []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if decoder.Decode(new(json.RawMessage)) != nil {
		return body
	}
	return body[:decoder.InputOffset()]
}

// bearer returns the token of the one Authorization header: interface 5. The scheme's
// case does not matter, and a token has no spaces (RFC 9110, 11.4). Two headers count as
// none, since it is not clear which of them is meant.
func bearer(headers []string) (token string, ok bool) {
	if len(headers) != 1 {
		return "", false
	}
	scheme, rest, _ := strings.Cut(headers[0], " ")
	token = strings.TrimLeft(rest, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " \t") {
		return "", false
	}
	return token, true
}

// MaxRecorded bounds the foreign parts of a record that have no other bound, in
// bytes: method, host, path, query and agent.
const MaxRecorded = 256

// fillShown masks the parts of a request that a record keeps. If a client's arguments are
// mixed up, a secret may also be in the path or the host, and may be escaped there.
func (req *Request) fillShown(r *http.Request, path string, sent []byte, fakeHost string, showTexts bool) {
	clip := func(part string) string { return printable.Clip(req.Secrets.Clean(part), MaxRecorded) }
	path = req.Secrets.Clean(path)
	// If a secret is escaped in the path, the path is unescaped, cleaned, and escaped again.
	if plain, err := url.PathUnescape(path); err == nil && req.Secrets.Clean(plain) != plain {
		path = (&url.URL{Path: req.Secrets.Clean(plain)}).EscapedPath()
	}
	shown := &req.Shown
	shown.Header = req.Secrets.CleanHeader(r.Header)
	body := mask.Body{Texts: showTexts, Secrets: req.Secrets, Unchecked: req.Malformed != nil || req.Unrouted != nil}
	if body.Unchecked || req.Endpoint.Body != nil {
		shown.Body = printable.Clip(body.Show(sent, len(sent)), decisions.KeptBody)
	}
	// Copies do not keep the rest of the request's first line in memory, which may be a
	// megabyte.
	shown.Method, shown.AgentID = strings.Clone(clip(r.Method)), strings.Clone(clip(req.AgentID))
	scheme := "http://"
	if r.TLS != nil || r.Host == fakeHost {
		scheme = "https://"
	}
	path = clip(path)
	shown.URL = scheme + clip(r.Host) + path
	shown.Path = shown.URL[len(shown.URL)-len(path):]
	if r.URL.RawQuery != "" {
		shown.URL += "?" + mask.Key // no endpoint takes a query, so any part of it may be secret
	}
}

// findEndpoint returns the endpoint of a request and the value of {agent_id}. path is the
// path as it was sent, so that an identifier with %2F stays one segment. Paths are
// neither cleaned nor redirected: no endpoint has //, . or .. in it. A path that some
// endpoint has with another method is a 405, whose Allow lists the methods, or by another
// decision a 404. Any other path is a 404.
func findEndpoint(behavior *service.Behavior, method, path string) (e *spec.Endpoint, agentID string, unrouted *service.Refusal) {
	var allowed []string
	for _, e := range spec.Endpoints {
		// before and after are the parts of the template around {agent_id}. An identifier is
		// never empty. A template without {agent_id} must match the path exactly.
		before, after, hasID := strings.Cut(e.Path, "{agent_id}")
		id, starts := strings.CutPrefix(path, before)
		id, ends := strings.CutSuffix(id, after)
		if !starts || !ends || hasID == (id == "") || id == "." || id == ".." || strings.Contains(id, "/") {
			continue
		}
		if e.Method == method {
			id, _ = url.PathUnescape(id) // EscapedPath is always well escaped
			return e, id, nil
		}
		allowed = append(allowed, e.Method)
	}
	if allowed == nil || behavior.UnknownMethod == http.StatusNotFound {
		return nil, "", service.Refuse(service.NoSuchPath)
	}
	r := service.Refuse(service.MethodNotAllowed)
	r.Allow = strings.Join(allowed, ", ")
	r.Broken = "this path takes " + r.Allow
	return nil, "", r
}

// headerFlaw returns the 400 for a body that is not JSON according to Content-Type or
// Content-Encoding. Both headers may be missing. A coding such as gzip would need another
// parser, and the interface does not mention one.
func headerFlaw(behavior *service.Behavior, header http.Header) *service.Refusal {
	for _, coding := range header["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			return service.BadField("Content-Encoding", "only identity is accepted")
		}
	}
	for _, value := range header["Content-Type"] {
		if !behavior.AcceptsOtherType && value != "application/json" && !strictjson.IsType(value) {
			return service.BadField("Content-Type", "must be application/json, in UTF-8")
		}
	}
	return nil
}

// Parse checks a body against the fields of its endpoint: interface 2.3 to 2.5, 4 and
// 8.4. By the fake's own decisions, a body is one JSON object with exactly these names,
// none twice and none null, in valid UTF-8. Parse returns the first flaw: first of the
// JSON as a whole, then of each member in order. A missing member is found at the end of
// its object. The flaw may name a member, without the secrets.
func Parse(behavior *service.Behavior, e *spec.Endpoint, raw []byte, secrets mask.Secrets) (service.Fields, *service.Refusal) {
	p := parser{
		Scanner: strictjson.Scanner{Data: raw, AllowDuplicates: behavior.AcceptsDuplicates}, behavior: behavior, secrets: secrets,
		unknownAllowed: behavior.AcceptsUnknown && e == spec.SendMessage, found: make(service.Fields, 4), // few calls have more members
	}
	if err := strictjson.Check(raw); err != nil {
		return nil, service.BadField("body", err.Error())
	}
	if p.Peek() != '{' {
		return nil, service.BadField("body", "must be a JSON object")
	}
	p.object(e.Body)
	if p.flaw != nil {
		return nil, p.flaw
	}
	return p.found, nil
}

// parser reads a body until its first flaw. After the flaw, the fields that were found do
// not count. The document is valid JSON, because strictjson.Check has accepted it.
type parser struct {
	strictjson.Scanner
	behavior       *service.Behavior
	secrets        mask.Secrets
	unknownAllowed bool // unknown members are accepted
	found          service.Fields
	flaw           *service.Refusal
}

// refuse sets the flaw, about the member at path. It does not quote the value.
func (p *parser) refuse(path, broken string) { p.flaw = service.BadField(path, broken) }

// object reads the members of the body or of an object in it. It looks each member up in
// of.Fields.
func (p *parser) object(of *spec.Field) {
	// For each field, whether the member has come, to find duplicates and missing members.
	seen := make([]bool, len(of.Fields))
	for p.Enter(); p.flaw == nil && p.More(); {
		name := p.Name()
		i := slices.IndexFunc(of.Fields, func(f *spec.Field) bool {
			return f.Name() == name || p.behavior.AcceptsOtherCase && strings.EqualFold(f.Name(), name)
		})
		switch {
		// Only section 2.5 does not say "no additional properties", so the decision is only
		// about messages.
		case i < 0 && p.unknownAllowed:
			p.anyValue("body")
		case i < 0:
			p.refuse(cmp.Or(of.Path, "body"), "member "+p.memberName(name)+" is not allowed")
			p.flaw.UnknownMember = strings.TrimPrefix(of.Path+"."+strings.Trim(p.memberName(name), `"`), ".")
		case seen[i] && !p.AllowDuplicates:
			p.refuse(of.Fields[i].Path, "appears twice")
		default:
			seen[i] = p.value(of.Fields[i])
		}
	}
	for i, field := range of.Fields {
		if p.flaw == nil && field.Required && !seen[i] {
			p.refuse(field.Path, "is required")
		}
	}
}

// value reads a value, and reports whether the member counts as given: an accepted null
// does not. If a member comes twice, the last value counts, even if the first value was
// an object.
func (p *parser) value(f *spec.Field) (given bool) {
	delete(p.found, f)
	for _, inner := range f.Fields {
		delete(p.found, inner)
	}
	switch first := p.Peek(); {
	case first == 'n' && p.behavior.AcceptsNull:
		p.Value()
		return false
	// The type is checked before the scanner reads the value, since each method of the
	// scanner expects one type.
	case f.Kind == spec.String && first != '"':
		p.refuse(f.Path, "must be a string")
	case f.Kind == spec.String:
		p.text(f)
	case first != '{':
		p.refuse(f.Path, "must be an object")
	case f.Kind == spec.Object:
		p.object(f)
	default:
		var compact bytes.Buffer
		_ = json.Compact(&compact, p.anyValue(f.Path)) // Check has accepted it
		p.found[f] = compact.String()
	}
	return true
}

// text reads a string and checks its length, in the unit of Behavior, and its list of
// values.
func (p *parser) text(f *spec.Field) {
	s := p.Text()
	switch {
	// A lone surrogate is not a character, although JSON can write it.
	case p.LoneSurrogate:
		p.refuse(f.Path, strictjson.ErrLoneSurrogate.Error())
	case f.MaxLen > 0 && p.behavior.Length(s) > f.MaxLen:
		p.refuse(f.Path, fmt.Sprintf("at most %d characters", f.MaxLen))
		p.flaw.Length, p.flaw.Max = p.behavior.Length(s), f.MaxLen
	case !f.Allows(s):
		p.refuse(f.Path, "must be one of "+f.Values())
	default:
		p.found[f] = s
	}
}

// anyValue reads any value, and returns it as it was written. Members inside it may have
// any names. Unless duplicates are accepted, no name may appear twice in one object.
func (p *parser) anyValue(path string) []byte {
	var duplicate strictjson.DuplicateError
	from := p.Pos
	switch err := p.CheckValue(); {
	case errors.As(err, &duplicate):
		p.refuse(path, "member "+p.memberName(string(duplicate))+" appears twice")
	case err != nil:
		p.refuse(path, err.Error())
	}
	return p.Data[from:p.Pos]
}

// memberName quotes a member's name for a message. Messages may show names, unlike
// values. But a name that looks like a key in the wrong place is not shown. The secrets are
// removed first: in a name that was cut or quoted they would not be found.
func (p *parser) memberName(name string) string {
	if mask.MayBeKey(name) {
		return mask.Withheld
	}
	return strconv.Quote(printable.Name(p.secrets.Clean(name)))
}
