// Package wire is HTTP in and out: it reads requests strictly, chooses their endpoint,
// writes the answers of package service, and the sentence why. It decides nothing, and
// holds no state.
//
// request.go is the way in. Read takes a request with its whole body, finds the
// endpoint by method and path, checks the body against the fields of package spec, and
// masks what a record may show. Where something is wrong, it notes a Refusal and goes
// on: package service decides which of several refusals comes first.
//
// answer.go is the way out. Encode writes a reply or a Refusal as JSON, and Why explains
// a Refusal to the author of a test. fault.go is what a test does to an answer, or gives
// in place of one. How an answer leaves over a connection is with package memnet.
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
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// Request is a request that was read whole and judged without a look at any state.
// Shown is safe to keep: it has no secret of the call and a bounded size.
type Request struct {
	service.Request
	// Secrets are the keys of the call, for masking what is said of it later.
	Secrets mask.Secrets
	// BodyBytes is how much of the body was read: at most one more than it may have.
	BodyBytes int
	Shown     struct { // what may be kept and shown of it
		Method, URL, Path, AgentID string
		Header                     http.Header
		Body                       string
	}
}

// Read reads a request with its whole body, even if that is wrong, so that the answer does
// not depend on the speed of the client. fakeHost is the host that clients reach as https
// without TLS. showTexts leaves people's words readable. Read returns no error: what is
// wrong is in Unrouted (404, 405) or Malformed (400).
func Read(r *http.Request, behavior *service.Behavior, fakeHost string, showTexts bool) *Request {
	req := new(Request)
	req.IP = callerIP(r.RemoteAddr)
	var body []byte
	body, req.BodyBytes, req.Malformed = readBody(r.Body, behavior)
	// Without a token the digest stays zero: the digest of "" would be another value.
	token, hasToken := bearer(r.Header["Authorization"])
	if hasToken {
		req.Token = service.DigestOf(token)
	}
	req.Secrets = mask.SecretsOf(token, body)
	path := r.URL.EscapedPath()
	req.Endpoint, req.AgentID, req.Unrouted = findEndpoint(r.Method, path)
	// By Behavior a service may answer 404 where another has 405.
	if req.Unrouted != nil && behavior.UnknownMethod != http.StatusMethodNotAllowed {
		req.Unrouted = service.Refuse(service.NoSuchPath)
	}
	if req.Endpoint != nil && req.Endpoint.Body != nil && req.Malformed == nil && (len(body) > 0 || req.Endpoint.Body.Required) {
		if req.Malformed = headerFlaw(behavior, r.Header); req.Malformed == nil {
			req.Fields, req.Malformed = Parse(behavior, req.Endpoint, body)
		}
		if req.Malformed != nil {
			req.Malformed.Field = req.Secrets.Clean(req.Malformed.Field)
			req.Malformed.Broken = req.Secrets.Clean(req.Malformed.Broken)
		}
	}
	req.fillShown(r, path, body, fakeHost, showTexts)
	return req
}

// callerIP returns the address that a call comes from, for the limits per address of
// interface 8.1. Calls without an address share the zero address. An IPv4 address in the
// form of IPv6 and the same address without it are one; a zone is dropped, since it names
// a local network card.
func callerIP(remote string) netip.Addr {
	address, _, err := net.SplitHostPort(remote)
	if err != nil { // a middleware may have set it to the address that a proxy names
		address = remote
	}
	ip, _ := netip.ParseAddr(address)
	return ip.Unmap().WithZone("")
}

// readBody reads at most one byte more than a body may have: size bytes. A body that is
// longer or breaks off is a 400, and its beginning is still returned, for the record.
func readBody(from io.Reader, behavior *service.Behavior) (body []byte, size int, malformed *service.Refusal) {
	if from == nil || from == http.NoBody {
		return nil, 0, nil
	}
	body, err := io.ReadAll(io.LimitReader(from, spec.MaxBody+1))
	switch {
	case err != nil:
		malformed = service.BadField("body", "it did not arrive whole")
	case len(body) > spec.MaxBody:
		malformed = service.BadField("body", fmt.Sprintf("at most %d bytes", spec.MaxBody))
	}
	size = len(body)
	// Anything after the document is cut off, so that no check and no record sees it.
	if behavior.AcceptsTrailing {
		decoder := json.NewDecoder(bytes.NewReader(body))
		if decoder.Decode(new(json.RawMessage)) == nil {
			body = body[:decoder.InputOffset()]
		}
	}
	return body, size, malformed
}

// bearer returns the token of the one Authorization header: interface 5. The scheme's
// case does not matter, and a token has no spaces (RFC 9110, 11.4). Two headers count as
// none, since nothing says which of them is meant.
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

// fillShown masks what a record keeps of a request. A secret may be in the path or the
// host too, when the arguments of a client are mixed up, and may be escaped there.
func (req *Request) fillShown(r *http.Request, path string, sent []byte, fakeHost string, showTexts bool) {
	clip := func(part string) string { return mask.Clip(req.Secrets.Clean(part), MaxRecorded) }
	path = req.Secrets.Clean(path)
	// A secret may be escaped in the path. Then the path is kept unescaped, cleaned,
	// and escaped anew.
	if plain, err := url.PathUnescape(path); err == nil && req.Secrets.Clean(plain) != plain {
		path = (&url.URL{Path: req.Secrets.Clean(plain)}).EscapedPath()
	}
	shown := &req.Shown
	shown.Header = req.Secrets.CleanHeader(r.Header)
	body := mask.Body{Texts: showTexts, Secrets: req.Secrets, Unchecked: req.Malformed != nil || req.Unrouted != nil}
	if body.Unchecked || req.Endpoint.Body != nil {
		shown.Body = mask.Clip(body.Show(sent, len(sent)), spec.KeptBody)
	}
	// Copies let go of the rest of the request's first line, which may be a megabyte.
	shown.Method, shown.AgentID = strings.Clone(clip(r.Method)), strings.Clone(clip(req.AgentID))
	origin := "http://" + clip(r.Host)
	if r.TLS != nil || r.Host == fakeHost {
		origin = "https://" + clip(r.Host)
	}
	shown.URL = origin + clip(path)
	shown.Path = shown.URL[len(origin):]
	if r.URL.RawQuery != "" {
		shown.URL += "?" + mask.Key // no endpoint takes a query, so nothing says what is secret in it
	}
}

// findEndpoint returns the endpoint of a request and the value of {agent_id}. path is
// the path as it was sent, so that an identifier with %2F stays one segment. Paths are
// neither cleaned nor redirected: no endpoint has //, . or .. in it. A path that some
// endpoint has with another method is a 405, whose Allow lists the methods; any other
// is a 404.
func findEndpoint(method, path string) (e *spec.Endpoint, agentID string, unrouted *service.Refusal) {
	var allowed []string
	for _, e := range spec.Endpoints {
		// A template is what is before and after {agent_id}. An identifier is never
		// empty, and the path without one must fit exactly.
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
	if allowed == nil {
		return nil, "", service.Refuse(service.NoSuchPath)
	}
	r := service.Refuse(service.MethodNotAllowed)
	r.Allow = strings.Join(allowed, ", ")
	r.Broken = "this path takes " + r.Allow
	return nil, "", r
}

// headerFlaw returns the 400 for a body that its headers say is no JSON. Both may be left
// out. A coding such as gzip would need another parser, and no section of the interface
// mentions one.
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
// 8.4. By the fake's own decisions it is one JSON object with exactly these names, none
// twice and none null, in valid UTF-8. It returns the first flaw: of the JSON as a whole,
// then of member after member. A member that is missing shows at the end of its object.
func Parse(behavior *service.Behavior, e *spec.Endpoint, raw []byte) (service.Fields, *service.Refusal) {
	p := parser{
		Scanner: strictjson.Scanner{Data: raw, Duplicates: behavior.AcceptsDuplicates}, behavior: behavior,
		unknownAllowed: behavior.AcceptsUnknown && e == spec.SendMessage, found: make(service.Fields, 4), // few calls have more
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

// parser reads a body until its first flaw. After that, flaw is set and what was found
// does not count. The document is valid JSON by then: strictjson.Check has seen all of
// it.
type parser struct {
	strictjson.Scanner
	behavior       *service.Behavior
	unknownAllowed bool // unknown members are accepted
	found          service.Fields
	flaw           *service.Refusal
}

// refuse notes a flaw of the member at a path. It does not quote the value.
func (p *parser) refuse(path, broken string) { p.flaw = service.BadField(path, broken) }

// object reads the members of the body or of an object in it, and looks each up among
// the fields that the object may have.
func (p *parser) object(of *spec.Field) {
	// One per field: whether it was there, for duplicates and for what is required.
	seen := make([]bool, len(of.Fields))
	for p.Enter(); p.flaw == nil && p.More(); {
		name := p.Name()
		i := slices.IndexFunc(of.Fields, func(f *spec.Field) bool {
			return f.Name() == name || p.behavior.AcceptsOtherCase && strings.EqualFold(f.Name(), name)
		})
		switch {
		// Section 2.5 alone does not say "no additional properties", so the decision is
		// about messages alone.
		case i < 0 && p.unknownAllowed:
			p.anyValue("body")
		case i < 0:
			p.refuse(cmp.Or(of.Path, "body"), "member "+memberName(name)+" is not allowed")
			p.flaw.UnknownMember = strings.TrimPrefix(of.Path+"."+strings.Trim(memberName(name), `"`), ".")
		case seen[i] && !p.Duplicates:
			p.refuse(of.Fields[i].Path, "is there twice")
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

// value reads a value, and reports whether there is one: null may count as none. Of
// a member that is there twice the last one counts, also where the first was an
// object.
func (p *parser) value(f *spec.Field) (given bool) {
	delete(p.found, f)
	for _, inner := range f.Fields {
		delete(p.found, inner)
	}
	switch first := p.Peek(); {
	case first == 'n' && p.behavior.AcceptsNull:
		p.Value()
		return false
	// The type is checked before the scanner reads the value: its methods expect one
	// type each.
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
	// Half a surrogate pair is no text, though JSON can write it.
	case p.Torn:
		p.refuse(f.Path, strictjson.ErrHalfPair.Error())
	case f.MaxLen > 0 && p.behavior.Length(s) > f.MaxLen:
		p.refuse(f.Path, fmt.Sprintf("at most %d characters", f.MaxLen))
		p.flaw.Length, p.flaw.Max = p.behavior.Length(s), f.MaxLen
	case !f.Allows(s):
		p.refuse(f.Path, "must be one of "+f.Values())
	default:
		p.found[f] = s
	}
}

// anyValue reads any value, and returns it as it was written. Names inside it are free,
// but none may be there twice in one object unless duplicates are accepted.
func (p *parser) anyValue(path string) []byte {
	var twice strictjson.Twice
	from := p.Pos
	switch err := p.Free(); {
	case errors.As(err, &twice):
		p.refuse(path, "member "+memberName(string(twice))+" is there twice")
	case err != nil:
		p.refuse(path, err.Error())
	}
	return p.Data[from:p.Pos]
}

// memberName quotes a member's name. A name may be repeated, unlike a value, unless it
// may be a key in the wrong place.
func memberName(name string) string {
	if mask.MayBeKey(name) {
		return mask.Withheld
	}
	return strconv.Quote(printable.Name(name))
}
