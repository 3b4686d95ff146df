// Package rawcall calls the service over raw HTTP and knows what the interface
// document says of each answer. It is the outsider: it shares no table, type or
// digit with the client and the fake, so that a mistake there shows. Packages
// contract and observe play their calls with it.
package rawcall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NoAgent is an agent id that no service has.
const NoAgent = "agent-of-nobody"

// Key names an API key that makes calls. The zero value is the target's own; any
// other is issued when it first calls.
type Key struct {
	Name, Plan string
	Dashboard  bool
}

// Another is a second key where a target has one, and else issued.
var Another = Key{"another", "preview", true}

// Rule is a sentence of the interface document and the section that states it. The
// section "fake" marks a decision of this project, where the interface is silent, and
// one such as "RFC 9110, 10.2.3" a rule of HTTP.
type Rule struct{ Section, Sentence string }

// String puts the source before the sentence, in brackets: "(interface 4.8): ...".
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

// Call is one request to make: a row of interface 4, and who makes it.
type Call struct {
	Name   string // such as create-agent
	Method string
	Path   string
	Body   string // one that is accepted; "" where none is taken
	Rule   Rule   // what interface 4 says of the success body
	Reply  Shape  // its members
	Errors []int  // the other statuses that interface 4 lists

	Key    Key
	IP     string                  // the address that calls; "": the one that the client has
	Header string                  // the name of a header to set
	Value  func(key string) string // its value; "" leaves it out
}

// At is a call of a method and a path other than the endpoints.
func At(method, path string) Call { return Call{Name: "unknown", Method: method, Path: path} }

// IsEndpoint reports whether the call is of an endpoint, and not made by At.
func (c Call) IsEndpoint() bool { return c.Rule.Section != "" }

// row makes one of the endpoints. title is the heading of its section: number, method and
// path.
func row(name, title, body, response string, reply Shape, errors ...int) Call {
	words := strings.Fields(title)
	return Call{Name: name, Method: words[1], Path: words[2], Body: body, Rule: Rule{words[0], "Response: " + response}, Reply: reply, Errors: errors}
}

// ProviderKey is the provider key in every body that is sent. It must never come
// back: answers are searched for it. Any four characters of it hold one that no
// hash in hexadecimal or base64 has, so a fingerprint never has a part of it by chance.
const ProviderKey = "sk-contract~7f3~a9c~2e4~not~own~Jw4"

const (
	smsStatus = "disabled|needs_compliance|pending|active|needs_setup"
	// byokConfig is closed, as is the answer of status: the interface allows
	// no additional properties there, and says nothing of the others.
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

// Of is the call with an agent id in its path.
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

// Line is the method, the path, and who calls where it is not the target's own key.
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

// With is the call with another body.
func (c Call) With(body string) Call {
	c.Body = body
	return c
}

// By is the call made by another key than the target's own.
func (c Call) By(key Key) Call {
	c.Key = key
	return c
}

// WithHeader is the call with a header whose value may depend on the key; "" leaves
// the header out.
func (c Call) WithHeader(name string, value func(key string) string) Call {
	c.Header, c.Value = name, value
	return c
}

// Always is a header's value for every key.
func Always(value string) func(key string) string { return func(string) string { return value } }

// Keyless is the call without a credential.
func (c Call) Keyless() Call { return c.WithHeader("Authorization", Always("")) }

// Limited reports whether interface 4 lists 429 for the endpoint.
func (c Call) Limited() bool { return slices.Contains(c.Errors, http.StatusTooManyRequests) }

// Cost has the members of observe.Spend.
type Cost struct {
	Requests, Creations, BYOKSets, WarmUps int
	Wait                                   time.Duration
}

// Cost is what one call spends that was answered with status. A refused operation
// spends no limit on operations, as far as the interface shows.
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

// LLM is a creation body with those members of llm.
func LLM(members string) string { return `{"llm":{` + members + `}}` }

// Metadata is a creation body. Its metadata has n characters as compact JSON, at
// least 8, and space in two places that compact JSON does not have.
func Metadata(n int, space string) string {
	return `{"metadata":{` + space + `"a":` + space + `"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}}`
}

// KeyMembers are the members of llm that bring a provider key.
const KeyMembers = `"provider":"openai","api_key":"` + ProviderKey + `"`

// Calls that several questions and cases make.
var (
	ReadNobody = ReadAgent.Of(NoAgent)
	WrongAgent = CreateAgent.With(`{"x":1}`)
	KeyedAgent = CreateAgent.With(LLM(KeyMembers))
	BYOKAgent  = CreateAgent.With(LLM(`"mode":"byok"`))
	BYOKWarmUp = WarmUp.With(`{"mode":"byok"}`)
	BadWarmUp  = WarmUp.With(`{"mode":"turbo"}`)
)

// Player makes calls. It knows the keys in use and the agents that they created
// last.
type Player struct {
	BaseURL    string
	Client     *http.Client
	ClientFrom func(ip string) *http.Client
	Keys       map[Key]string
	Agents     map[Key]string
	Last       string // the agent that any of the keys created last
	issuer     Issuer
}

// Issuer issues keys, as observe.Abilities do.
type Issuer interface {
	IssueKeyOn(plan string, dashboard bool) string
}

// NewPlayer returns a player with a key and another, which may be empty. Other keys
// come from issuer. A nil client means one with a timeout of two minutes.
func NewPlayer(baseURL string, client *http.Client, key, another string, issuer Issuer) Player {
	return Player{
		BaseURL: baseURL, Client: cmp.Or(client, &http.Client{Timeout: 2 * time.Minute}), issuer: issuer,
		Keys: map[Key]string{{}: key, Another: another}, Agents: map[Key]string{},
	}
}

// Play makes one call, and reads at most 8 MiB of the answer. {agent_id} in its
// path is the agent of the key that calls, or else of any key, or one that does
// not exist.
func (p *Player) Play(ctx context.Context, c Call) (Exchange, error) {
	path := c.Of(cmp.Or(p.Agents[c.Key], p.Last, NoAgent)).Path
	req, err := http.NewRequestWithContext(ctx, c.Method, strings.TrimSuffix(p.BaseURL, "/")+path, strings.NewReader(c.Body))
	if err != nil {
		return Exchange{}, err
	}
	p.setHeader(req, c)
	res, err := p.clientOf(c).Do(req)
	if err != nil {
		return Exchange{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	x := Exchange{Call: c, Status: res.StatusCode, Header: res.Header}.Answered(body)
	if x.Status == http.StatusOK && c.Name == CreateAgent.Name {
		p.Last, _ = x.At("agent_id").(string)
		p.Agents[c.Key] = p.Last
	}
	return x, err
}

func (p *Player) setHeader(req *http.Request, c Call) {
	req.Header.Set("Authorization", "Bearer "+p.KeyOf(c.Key))
	if c.Body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Header == "" {
		return
	}
	req.Header.Del(c.Header)
	if value := c.Value(p.KeyOf(c.Key)); value != "" {
		req.Header.Set(c.Header, value)
	}
}

// clientOf is the client of the call's address. It follows no redirect: a
// redirect is an answer to look at.
func (p *Player) clientOf(c Call) *http.Client {
	client := *p.Client
	if c.IP != "" {
		client = *p.ClientFrom(c.IP)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// KeyOf is the key, issued where it has not called before.
func (p *Player) KeyOf(key Key) string {
	if p.Keys[key] == "" {
		p.Keys[key] = p.issuer.IssueKeyOn(key.Plan, key.Dashboard)
	}
	return p.Keys[key]
}

// Redact replaces every key in a text, also in one that the target sent.
func (p *Player) Redact(text string) string {
	for _, secret := range append(slices.Collect(maps.Values(p.Keys)), ProviderKey) {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[key]")
		}
	}
	return text
}

// Describe has a line for the call of an exchange, and one for the answer: of an error its
// documented members, else the body on one line. It shows no key.
func (p *Player) Describe(x Exchange) string {
	short := func(text string) string { return Clip(p.Redact(strings.Join(strings.Fields(text), " "))) }
	answer := fmt.Sprint("answered ", x.Status)
	for _, wait := range x.Header.Values("Retry-After") {
		answer += ", Retry-After " + short(wait)
	}
	said, body := "", string(x.Body)
	if x.Value != nil { // without its spaces and escapes
		body = jsonOf(x.Value)
	}
	for _, name := range []string{"error", "reason", "limit_key", "trace_id"} {
		if v := x.At(name); v != nil && x.Status != http.StatusOK {
			said += ", " + name + " " + short(jsonOf(v))
		}
	}
	return strings.TrimSpace(x.Line()+" "+short(x.Call.Body)) + "\n" + strings.TrimSpace(answer+cmp.Or(said, " "+short(body)))
}

// Exchange is a call and its answer.
type Exchange struct {
	Call
	Status int
	Header http.Header
	Body   []byte
	Value  any // the decoded body; nil where it is not JSON
}

// Answered is the exchange with the body that was answered.
func (x Exchange) Answered(body []byte) Exchange {
	x.Body, x.Value = body, nil
	if json.Unmarshal(body, &x.Value) != nil {
		x.Value = nil
	}
	return x
}

// Clip shortens a text to 80 characters. Some cases send bytes that no log
// should hold: it replaces what is not UTF-8.
func Clip(text string) string { return clip(text, 80) }

func clip(text string, most int) string {
	runes := []rune(strings.ToValidUTF8(strings.TrimSpace(text), "\ufffd"))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most-3]) + "..."
}

// Cause says in at most 300 characters why a call got no answer. It leaves out the
// address that net/http and net/url put first: it may hold a password, and the words
// that help come after it. A proxy's address is one more, inside the first.
func Cause(err error) string {
	for address := new(url.Error); errors.As(err, &address); {
		err = address.Err
	}
	return clip(err.Error(), 300)
}

// Unsent reports whether a call failed before it was sent: no connection was made, or
// the address is none.
func Unsent(err error) bool {
	dial, address := new(net.OpError), new(url.Error)
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &address) && address.Op == "parse"
}

// At is the member at a dotted path of the answer, nil where there is none.
func (x Exchange) At(path string) any {
	v := x.Value
	for name := range strings.SplitSeq(path, ".") {
		members, _ := v.(map[string]any)
		v = members[name]
	}
	return v
}

// RetryAfter is the wait that the one Retry-After header names in seconds, which may be
// a fraction; ok is false if the header names no wait, or more than ten years.
func (x Exchange) RetryAfter() (wait time.Duration, ok bool) {
	const most = 10 * 365 * 24 * 3600
	seconds, err := strconv.ParseFloat(strings.Join(x.Header.Values("Retry-After"), " and "), 64)
	if err != nil || !(0 <= seconds && seconds <= most) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// Documented is the body that the interface gives the answer, and where it says so.
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

// Shape is what an object holds: its members with commas between, each with
// its path, its type or its values, and where it may be so null or optional.
// An object that is not closed may have others: this is a preview.
type Shape string

// Problem says what is wrong with the decoded body, or "".
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

// fits reports whether a value is of that type, or one of the values with bars
// between. A text is a string that names something, so it may not be empty.
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

// Brief shows a decoded value as JSON, in at most 80 characters.
func Brief(v any) string { return Clip(jsonOf(v)) }

func jsonOf(v any) string {
	text, _ := json.Marshal(v) // a decoded value is JSON
	return string(text)
}
