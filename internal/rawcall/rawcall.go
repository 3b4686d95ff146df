// Package rawcall calls the service over raw HTTP and knows what the interface document
// says about each answer. But for hiding keys and shortening texts, it shares no table,
// type or digit with the client and the fake, so that it shows a mistake in them. Packages
// contract and observe make their calls with it.
package rawcall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
)

// UnknownAgentID is the id of no agent.
const UnknownAgentID = "agent-of-nobody"

// Key names an API key. The zero value is the target's own key. Any other is issued before
// its first call.
type Key struct {
	Name, Plan string
	Dashboard  bool
}

// Another is the target's second key. If the target has none, Another is issued.
var Another = Key{"another", "preview", true}

// Rule is a sentence of the interface document, and its section. The section "fake" marks
// a decision of this project where the interface is silent. A section such as "RFC 9110,
// 10.2.3" marks a rule of HTTP.
type Rule struct{ Section, Sentence string }

// String returns the source and the sentence: "(interface 4.8): ...".
func (r Rule) String() string {
	source := "interface " + r.Section
	switch {
	case r.Section == "fake":
		source = "our decision, the interface is silent"
	case strings.HasPrefix(r.Section, "RFC"):
		source = r.Section
	}
	return "(" + source + "): " + r.Sentence
}

// Call is a request to make: a row of interface 4, and the key that makes it.
type Call struct {
	Name   string // such as create-agent
	Method string
	Path   string
	Body   string // a body that the endpoint accepts; "": it takes none
	Rule   Rule   // what interface 4 says about the body of a success
	Reply  Shape  // the members of that body
	Errors []int  // the other statuses that interface 4 lists

	Key    Key
	IP     string                  // the address from which to call; "": the client's
	Header string                  // the name of a header to set
	Value  func(key string) string // its value; "" leaves it out
}

// At returns a call of a method and a path that no endpoint has.
func At(method, path string) Call { return Call{Name: "unknown", Method: method, Path: path} }

// IsEndpoint reports whether the call is of an endpoint; it is false for a call of At.
func (c Call) IsEndpoint() bool { return c.Rule.Section != "" }

// row returns an endpoint. title is the heading of its section: number, method and path.
func row(name, title, body, response string, reply Shape, errors ...int) Call {
	words := strings.Fields(title)
	return Call{Name: name, Method: words[1], Path: words[2], Body: body, Rule: Rule{words[0], "Response: " + response}, Reply: reply, Errors: errors}
}

// ProviderKey is the provider key in every body. No answer may contain it, or a part of
// it. Any four characters in a row include one that hexadecimal and base64 do not use, so
// a fingerprint never contains such a part by chance.
const ProviderKey = "sk-contract~7f3~a9c~2e4~not~own~Jw4"

const (
	smsStatus = "disabled|needs_compliance|pending|active|needs_setup"
	// byokConfig and the answer of status are closed: the interface allows no additional
	// properties there. It says nothing about additional properties of other answers.
	byokConfig = "byok.provider openai_compat|openai|anthropic, byok.base_url string null optional, byok.model string null optional, " +
		"byok.fingerprint text, byok.updated_at string"
)

// The endpoints of interface 4, with a small body that each accepts and
// the members of its success body.
var (
	GetStatus = row("status", "4.1 GET /v1/status", "",
		"ok (boolean), service (string), version (string), mode (string), trace_id (string). All five are required. No additional properties.",
		"ok bool, service string, version string, mode string, trace_id string", 401, 402, 404)
	WarmUp = row("warmup", "4.2 POST /v1/warmup", `{"mode":"hosted"}`,
		"ok (boolean), warmed (boolean), mode (hosted or byok), trace_id. Required: ok, warmed, mode, trace_id.",
		"ok bool, warmed bool, mode hosted|byok, trace_id string", 400, 401, 402, 403, 409, 429, 503)
	GetBYOK = row("get-byok", "4.3 GET /v1/byok", "",
		"ok (boolean), byok (a BYOK configuration per 2.4, or null when none is set), trace_id. All required.",
		"ok bool, byok closed null, "+byokConfig+", trace_id string", 401, 402, 403, 404)
	SetBYOK = row("set-byok", "4.4 PUT /v1/byok", `{"provider":"openai","api_key":"`+ProviderKey+`"}`,
		"ok (boolean), byok (BYOK configuration per 2.4), trace_id. All required.",
		"ok bool, byok closed, "+byokConfig+", trace_id string", 400, 401, 402, 403, 429, 503)
	ClearBYOK = row("clear-byok", "4.5 DELETE /v1/byok", "", "ok (boolean), trace_id. Both required.",
		"ok bool, trace_id string", 401, 402, 403, 404)
	CreateAgent = row("create-agent", "4.6 POST /v1/agents", `{}`,
		"agent_id (string), status (only value `active`), optional sms object with status, trace_id. Required: agent_id, status, trace_id.",
		"agent_id text, status active, sms object optional, sms.status "+smsStatus+" optional, "+
			"sms.phone_number nothing null optional, trace_id string", 400, 401, 402, 404, 429) // 2.2: only on the read response
	ReadAgent = row("read-agent", "4.7 GET /v1/agents/{agent_id}", "",
		"agent_id, status, created_at, updated_at, trace_id (all required); optional sms object with status and phone_number (optional).",
		"agent_id text, status string, created_at string, updated_at string, "+
			"sms object optional, sms.status string, sms.phone_number string optional, trace_id string", 401, 402, 404, 429)
	SendMessage = row("send-message", "4.8 POST /v1/agents/{agent_id}/messages", `{"text":"Hello"}`,
		"reply_text (required), warnings (optional array of strings), trace_id (required).",
		"reply_text string, warnings strings optional, trace_id string", 400, 401, 402, 404, 429)
	EnableSMS = row("enable-sms", "4.9 POST /v1/agents/{agent_id}/channels/sms", `{"mode":"sandbox"}`,
		"status (disabled, needs_compliance, pending, active or needs_setup), trace_id. Both required.",
		"status "+smsStatus+", trace_id string", 400, 401, 402, 404, 429)

	Endpoints = []Call{
		GetStatus, WarmUp, GetBYOK, SetBYOK, ClearBYOK, CreateAgent, ReadAgent, SendMessage, EnableSMS,
	}
)

// Of returns the call with agentID in its path.
func (c Call) Of(agentID string) Call {
	c.Path = strings.ReplaceAll(c.Path, "{agent_id}", url.PathEscape(agentID))
	return c
}

// OfAgent reports whether the path still needs an agent id.
func (c Call) OfAgent() bool { return strings.Contains(c.Path, "{agent_id}") }

// Find returns the endpoint that a method and an escaped path call, and the agent
// id in the path. The path may begin with the path of a base address.
func Find(method, path string) (c Call, agentID string, ok bool) {
	if i := strings.Index(path, "/v1/"); i > 0 {
		path = path[i:]
	}
	for _, c := range Endpoints {
		before, after, ofAgent := strings.Cut(c.Path, "{agent_id}")
		rest, begins := strings.CutPrefix(path, before)
		id, ends := strings.CutSuffix(rest, after)
		if c.Method == method && begins && ends && (id != "") == ofAgent && !strings.Contains(id, "/") {
			id, _ = url.PathUnescape(id)
			return c, id, true
		}
	}
	return Call{}, "", false
}

// Line returns the method and the path, and the key and the address if they are not the
// target's own.
func (c Call) Line() string {
	line := c.Method + " " + c.Path
	if c.Key != (Key{}) {
		line += fmt.Sprintf(" by key %q", c.Key.Name)
	}
	if c.IP != "" {
		line += " from " + c.IP
	}
	return line
}

// With returns the call with another body.
func (c Call) With(body string) Call {
	c.Body = body
	return c
}

// By returns the call made by another key.
func (c Call) By(key Key) Call {
	c.Key = key
	return c
}

// WithHeader returns the call with a header whose value may depend on the key. The value ""
// leaves the header out.
func (c Call) WithHeader(name string, value func(key string) string) Call {
	c.Header, c.Value = name, value
	return c
}

// Always returns the same header value for every key.
func Always(value string) func(key string) string { return func(string) string { return value } }

// Keyless returns the call without a credential.
func (c Call) Keyless() Call { return c.WithHeader("Authorization", Always("")) }

// Limited reports whether interface 4 lists 429 for the endpoint.
func (c Call) Limited() bool { return slices.Contains(c.Errors, http.StatusTooManyRequests) }

// Cost has the members of observe.Spend.
type Cost struct {
	Requests, Creations, BYOKSets, WarmUps int
	Wait                                   time.Duration
}

// Cost returns what a call spends if its answer has the status. As far as the interface
// shows, a refused operation does not spend the limits on operations.
func (c Call) Cost(status int) Cost {
	spent := Cost{Requests: 1}
	switch {
	case status != http.StatusOK:
	case c.Name == WarmUp.Name:
		spent.WarmUps = 1
	case c.Name == SetBYOK.Name:
		spent.BYOKSets = 1
	case c.Name == CreateAgent.Name:
		spent.Creations = 1
		spent.BYOKSets = strings.Count(c.Body, `"api_key"`)
	}
	return spent
}

// LLM returns a creation body with members of llm.
func LLM(members string) string { return `{"llm":{` + members + `}}` }

// Metadata returns a creation body. As compact JSON, its metadata has n characters; the
// minimum of n is 8. Metadata inserts space in two places where compact JSON has none.
func Metadata(n int, space string) string {
	return `{"metadata":{` + space + `"a":` + space + `"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}}`
}

// KeyMembers are the members of llm for a provider key.
const KeyMembers = `"provider":"openai","api_key":"` + ProviderKey + `"`

// Calls that several questions and cases make.
var (
	ReadUnknownAgent = ReadAgent.Of(UnknownAgentID)
	BadCreation      = CreateAgent.With(`{"x":1}`)
	CreationWithKey  = CreateAgent.With(LLM(KeyMembers))
	BYOKCreation     = CreateAgent.With(LLM(`"mode":"byok"`))
	BYOKWarmUp       = WarmUp.With(`{"mode":"byok"}`)
	BadWarmUp        = WarmUp.With(`{"mode":"turbo"}`)
)

// Caller makes calls. It knows the keys in use, and the last agent that each key created.
type Caller struct {
	BaseURL    string
	Client     *http.Client
	ClientFrom func(ip string) *http.Client
	Keys       map[Key]string
	Agents     map[Key]string
	LastAgent  string // the agent that was created last, by any key
	issuer     issuer
}

// issuer issues keys; observe.Abilities is one.
type issuer interface {
	IssueKeyOn(plan string, dashboard bool) string
}

// NewCaller returns a Caller with the target's key and its second key, which may be empty.
// keys issues other keys. A nil client means a client with a timeout of two minutes.
func NewCaller(baseURL string, client *http.Client, key, another string, keys issuer) Caller {
	return Caller{
		BaseURL: baseURL, Client: cmp.Or(client, &http.Client{Timeout: 2 * time.Minute}), issuer: keys,
		Keys: map[Key]string{{}: key, Another: another}, Agents: map[Key]string{},
	}
}

// Do makes one call, and reads at most 8 MiB of the answer. {agent_id} in its path becomes
// the last agent of the calling key, or else of any key, or else UnknownAgentID.
func (caller *Caller) Do(ctx context.Context, c Call) (Exchange, error) {
	path := c.Of(cmp.Or(caller.Agents[c.Key], caller.LastAgent, UnknownAgentID)).Path
	req, err := http.NewRequestWithContext(ctx, c.Method, strings.TrimSuffix(caller.BaseURL, "/")+path, strings.NewReader(c.Body))
	if err != nil {
		return Exchange{}, err
	}
	if c.Method == http.MethodGet {
		// net/http would repeat a GET without a body, which no budget counts. Without "identity"
		// it starts a goroutine that looks whether this body is empty.
		req.Body, req.GetBody, req.TransferEncoding = io.NopCloser(req.Body), nil, []string{"identity"}
	}
	caller.setHeader(req, c)
	res, err := caller.clientOf(c).Do(req)
	if err != nil {
		return Exchange{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	x := Exchange{Call: c, Status: res.StatusCode, Header: res.Header}.Answered(body)
	if x.Status == http.StatusOK && c.Name == CreateAgent.Name {
		caller.LastAgent, _ = x.At("agent_id").(string)
		caller.Agents[c.Key] = caller.LastAgent
	}
	return x, err
}

func (caller *Caller) setHeader(req *http.Request, c Call) {
	req.Header.Set("Authorization", "Bearer "+caller.KeyOf(c.Key))
	if c.Body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Header == "" {
		return
	}
	req.Header.Del(c.Header)
	if value := c.Value(caller.KeyOf(c.Key)); value != "" {
		req.Header.Set(c.Header, value)
	}
}

// clientOf returns a client for the call's address. It follows no redirect, because
// contract and observe examine redirects like other answers.
func (caller *Caller) clientOf(c Call) *http.Client {
	client := *caller.Client
	if c.IP != "" {
		client = *caller.ClientFrom(c.IP)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// KeyOf returns the text of a key. It issues the key at its first use.
func (caller *Caller) KeyOf(key Key) string {
	if caller.Keys[key] == "" {
		caller.Keys[key] = caller.issuer.IssueKeyOn(key.Plan, key.Dashboard)
	}
	return caller.Keys[key]
}

// Redact replaces every key in a text, in any case, and parts of the target's keys.
func (caller *Caller) Redact(text string) string {
	for _, secret := range append(slices.Collect(maps.Values(caller.Keys)), ProviderKey) {
		if Shows(text, secret) {
			text = regexp.MustCompile("(?i)"+regexp.QuoteMeta(secret)).ReplaceAllLiteralString(text, "[key]")
		}
	}
	return hideParts(text, slices.Collect(maps.Values(caller.Keys))...)
}

// hideParts replaces keys in a text, and their parts: the beginning, or eight letters and
// digits in a row.
func hideParts(text string, keys ...string) string {
	var redactor redact.Redactor
	for _, key := range keys {
		redactor = redactor.With(key, "")
	}
	return redactor.Hide(text, redact.InAnswer)
}

// Describe returns a line about the call of an exchange, and a line about the answer: the
// documented members of an error, or else the body. It shows no key.
func (caller *Caller) Describe(x Exchange) string {
	short := func(text string) string { return Clip(caller.Redact(strings.Join(strings.Fields(text), " "))) }
	answer := fmt.Sprint("answered ", x.Status)
	for _, wait := range x.Header.Values("Retry-After") {
		answer += ", Retry-After " + short(wait)
	}
	members, body := "", string(x.Body)
	if x.Value != nil { // JSON without spaces and escapes
		body = string(JSONOf(x.Value))
	}
	for _, name := range []string{"error", "reason", "limit_key", "trace_id"} {
		if v := x.At(name); v != nil && x.Status != http.StatusOK {
			members += ", " + name + " " + short(string(JSONOf(v)))
		}
	}
	return strings.TrimSpace(x.Line()+" "+short(x.Call.Body)) + "\n" + strings.TrimSpace(answer+cmp.Or(members, " "+short(body)))
}

// Exchange is a call and its answer.
type Exchange struct {
	Call
	Status int
	Header http.Header
	Body   []byte
	Value  any // the decoded body; nil: it is not JSON
}

// Answered returns the exchange with the body of an answer.
func (x Exchange) Answered(body []byte) Exchange {
	x.Body, x.Value = body, nil
	if json.Unmarshal(body, &x.Value) != nil {
		x.Value = nil
	}
	return x
}

// Shown returns all that the answer shows: its header, its body, and the decoded names and
// texts, which JSON may have escaped.
func (x Exchange) Shown() string { return fmt.Sprint(x.Header, string(x.Body), x.Value) }

// Shows reports whether a text shows one of the secrets. Case does not matter, since
// net/http changes it in names of headers. An empty secret is none.
func Shows(text string, secrets ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(secrets, func(secret string) bool {
		return secret != "" && strings.Contains(text, strings.ToLower(secret))
	})
}

// ShowsPart reports whether a text shows one of the secrets or a part of it: see hideParts.
func ShowsPart(text string, secrets ...string) bool {
	return Shows(text, secrets...) || hideParts(text, secrets...) != text
}

// Clip shortens a text to 80 bytes. It replaces invalid UTF-8, because some cases send it
// and no log should contain it.
func Clip(text string) string { return printable.Line(strings.TrimSpace(text), 80) }

// Cause returns why a call got no answer, in at most 300 bytes. It leaves out the
// address that net/http and net/url put first, because the address may hold a password
// and the useful words come after it. The error may hold a second address, of a proxy,
// inside the first.
func Cause(err error) string {
	for address := new(url.Error); errors.As(err, &address); {
		err = address.Err
	}
	return printable.Line(err.Error(), 300)
}

// At returns the member of the answer at a dotted path; nil if there is none.
func (x Exchange) At(path string) any {
	v, _ := x.Member(path)
	return v
}

// Member returns the member of the answer at a dotted path, and whether there is one.
func (x Exchange) Member(path string) (v any, there bool) {
	v = x.Value
	for name := range strings.SplitSeq(path, ".") {
		members, _ := v.(map[string]any)
		v, there = members[name]
	}
	return v, there
}

// RetryAfter returns the wait of the Retry-After header: seconds, with or without a
// fraction. ok is false if there is not exactly one such header, or if its value is not a
// number of seconds or is more than ten years.
func (x Exchange) RetryAfter() (wait time.Duration, ok bool) {
	const maxSeconds = 10 * 365 * 24 * 3600
	seconds, err := strconv.ParseFloat(strings.Join(x.Header.Values("Retry-After"), " and "), 64)
	if err != nil || !(0 <= seconds && seconds <= maxSeconds) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// Documented returns the shape that the interface gives for a body with the exchange's
// status, and the rule that says so.
func (x Exchange) Documented() (Shape, Rule) {
	switch x.Status {
	case http.StatusOK:
		return x.Reply, x.Rule
	case http.StatusTooManyRequests:
		return "error rate_limited, trace_id string, limit_key text, reason string optional",
			Rule{"7", "Rate-limited body: error is `rate_limited`; trace_id; limit_key names the limiter that triggered."}
	default:
		return "error text, trace_id string optional, limit_key string optional, reason string optional",
			Rule{"2.1", "error | string | yes; trace_id, limit_key, reason | string | no"}
	}
}

// Shape describes an object: its members, separated by commas. Each member is a path and
// a type or a list of values, followed by null if it may be null and optional if it may
// be missing. An object that is not closed may have more members, because the interface
// is a preview.
type Shape string

// Problem returns what is wrong with a decoded body; "" if nothing is.
func (sh Shape) Problem(body any, closed bool) string {
	top, ok := body.(map[string]any)
	if !ok {
		return "the body is no JSON object"
	}
	for member := range strings.SplitSeq(string(sh), ", ") {
		words := strings.Fields(member)
		holder, name := top, words[0]
		if outer, inner, nested := strings.Cut(name, "."); nested {
			holder, _ = top[outer].(map[string]any)
			name = inner
		}
		v, present := holder[name]
		switch {
		case holder == nil, !present && slices.Contains(words, "optional"), present && v == nil && slices.Contains(words, "null"):
		case !present:
			return fmt.Sprintf("member %q is missing", words[0])
		case !fits(v, words[1]):
			return fmt.Sprintf("member %q: got %s, want %s", words[0], Brief(v), words[1])
		case words[1] == "closed":
			if problem := sh.undocumented(v.(map[string]any), name+"."); problem != "" {
				return problem
			}
		}
	}
	if closed {
		return sh.undocumented(top, "")
	}
	return ""
}

func (sh Shape) undocumented(object map[string]any, prefix string) string {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !strings.Contains(", "+string(sh), ", "+prefix+name+" ") {
			return fmt.Sprintf("member %q is not documented", Clip(name))
		}
	}
	return ""
}

// fits reports whether a value has the type kind, or is one of the values that bars
// separate in kind. A text is a string that names something, so it must not be empty.
func fits(v any, kind string) (ok bool) {
	s, isString := v.(string)
	switch kind {
	case "bool":
		_, ok = v.(bool)
	case "string":
		ok = isString
	case "text":
		ok = s != ""
	case "strings":
		list, isList := v.([]any)
		ok = isList && !slices.ContainsFunc(list, func(item any) bool { return !fits(item, "string") })
	case "object", "closed":
		_, ok = v.(map[string]any)
	default:
		ok = slices.Contains(strings.Split(kind, "|"), s)
	}
	return ok
}

// Brief returns a decoded value as JSON, in at most 80 bytes.
func Brief(v any) string { return Clip(string(JSONOf(v))) }

// JSONOf encodes a value as JSON.
func JSONOf(v any) json.RawMessage {
	raw, _ := json.Marshal(v) // never fails for text, numbers, booleans, and maps and lists of them
	return raw
}
