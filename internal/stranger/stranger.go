// Package stranger is a service that was written from the interface document
// alone, for tests. It shares nothing with the fake, and decides at random what
// the document leaves open.
package stranger

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Service is such a service: an http.Handler for one call at a time. Its clock is
// time.Now.
type Service struct {
	// Decides are its answers to the open questions, by the id of the question.
	Decides map[string]any
	limits  []limit
	spent   map[string][]float64 // when calls counted, by counter
	keys    map[string]*apiKey
	agents  map[string]*agentState
	calls   int
	odd     string // what is unusual in its limit_key: "", "none" or a name
}

type limit struct {
	id, name string
	max      int
	seconds  float64
	perIP    bool
}

type apiKey struct {
	byok    map[string]any
	updated time.Time
}

type agentState struct {
	owner, sms string
	byok       bool
	at         time.Time
}

// New decides by the seed. The keys are dashboard-issued.
func New(seed uint64, keys ...string) *Service {
	random := rand.New(rand.NewPCG(seed, 7))
	one := func(of ...any) any { return of[random.IntN(len(of))] }
	coin := func() any { return one(false, true) }
	name := func(s string) string { return s + []string{"", "-x", " of a key", "/v1"}[random.IntN(4)] }
	s := &Service{spent: map[string][]float64{}, keys: map[string]*apiKey{}, agents: map[string]*agentState{}}
	s.limits = []limit{
		{"key_minute", name("per-minute"), one(60, 60, 60, 33, 100).(int), 60, false}, {"ip_minute", name("ip"), 120, 60, true},
		{"key_day", name("daily"), 1000, 86400, false}, {"agent_create_key_day", name("agents"), 50, 86400, false},
		{"agent_create_ip_minute", name("agents-ip"), 10, 60, true}, {"byok_set_key_hour", name("byok"), 5, 3600, false},
		{"warmup_key_hour", name("warm"), one(3, 3, 3, 5, 1).(int), 3600, false},
	}
	for _, key := range keys {
		s.keys[key] = &apiKey{}
	}
	s.odd = one("", "", "", "", "none", "the one").(string)
	others := map[string]any{}
	for i := range s.limits {
		if s.odd == "the one" {
			s.limits[i].name = s.odd
		}
		others[s.limits[i].id] = s.limits[i].name
	}
	minuteName, warmName := others["key_minute"], others["warmup_key_hour"]
	delete(others, "key_minute")
	delete(others, "warmup_key_hour")
	errors := map[string]any{}
	for _, code := range []string{"bad_request", "unauthorized", "payment_required", "forbidden", "not_found", "method_not_allowed", "byok_not_configured", "byok_unavailable"} {
		errors[code] = code + []string{"", "2", ".v1"}[random.IntN(3)]
	}
	sms := map[string]any{}
	for _, mode := range []string{"none", "sandbox", "managed", "byo_twilio"} {
		sms[mode] = one("disabled", "needs_compliance", "pending", "active", "needs_setup")
	}
	s.Decides = map[string]any{
		"status":      map[string]any{"service": one("agents", "Agent Messaging"), "version": one("1.4.2", "v1"), "mode": one("live", "preview")},
		"error_names": errors, "reason": coin(), "unknown_method": one(404, 405), "path_before_key": coin(), "body_before_agent": coin(),
		"times":           one("rfc3339", "rfc3339 with an offset", "unix seconds", "unix milliseconds"),
		"unknown_members": coin(), "null_members": coin(), "duplicate_members": coin(), "other_case_members": coin(), "behind_body": coin(),
		"content_type": coin(), "length_unit": one("code points", "UTF-16 units", "bytes"), "metadata_cap": one(4096, 5, 1000, 16384, 100_000),
		"agent_of_another_key": one(404, 200), "clear_nothing": one(200, 404), "sms_status": sms, "creation_stores_key": coin(),
		"byok_cleared": one(400, 404, 200), "warmup_limit_name": warmName, "refused_operations_spend": coin(),
		"body_before_operation_limit": coin(), "minute_limit_name": minuteName,
		"windows":     one("fixed", "aligned", "sliding", "weighted", "token bucket"),
		"retry_after": one(true, true, false), "several_limits": coin(), "limit_before_body": coin(),
		"refused_requests_spend": map[string]any{"401": coin(), "404": coin(), "400": coin(), "409": coin(), "status": coin()},
		"other_limit_names":      others,
	}
	return s
}

func (s *Service) yes(id string) bool { return s.Decides[id].(bool) }

// counter names what counts a call with a key against the limit.
func (l limit) counter(token string) string {
	if l.perIP {
		return l.id
	}
	return l.id + token
}

// spend counts a call with a key against the limits with these ids.
func (s *Service) spend(token string, now float64, ids ...string) {
	for _, l := range s.limits {
		if slices.Contains(ids, l.id) {
			s.spent[l.counter(token)] = append(s.spent[l.counter(token)], now)
		}
	}
}

// used is how much of a limit is spent if one more call is counted at a time, by the
// definition of each way to count.
func (s *Service) used(l limit, token string, at float64) (n float64) {
	start, last := math.Inf(-1), 0.0
	for _, t := range slices.Concat(s.spent[l.counter(token)], []float64{at}) {
		switch s.Decides["windows"] {
		case "fixed":
			if t >= start+l.seconds {
				start, n = t, 0
			}
			n++
		case "aligned":
			if math.Floor(t/l.seconds) == math.Floor(at/l.seconds) {
				n++
			}
		case "sliding":
			if t > at-l.seconds {
				n++
			}
		case "weighted":
			switch math.Floor(at/l.seconds) - math.Floor(t/l.seconds) {
			case 0:
				n++
			case 1:
				n += 1 - math.Mod(at, l.seconds)/l.seconds
			}
		case "token bucket":
			n, last = max(0, n-(t-last)*float64(l.max)/l.seconds)+1, t
		}
	}
	return n
}

// refuse writes the 429 for those of the limits that are spent; false: none is.
func (s *Service) refuse(w http.ResponseWriter, ids []string, token string, now float64) bool {
	var named *limit
	wait := 0
	for i, l := range s.limits {
		passes := func(after int) bool { return s.used(l, token, now+float64(after)) <= float64(l.max)+1e-9 }
		if !slices.Contains(ids, l.id) || passes(0) {
			continue
		}
		opens := 1 + sort.Search(2*int(l.seconds), func(wait int) bool { return passes(1 + wait) })
		if named == nil || s.yes("several_limits") && opens > wait {
			named, wait = &s.limits[i], opens
		}
	}
	if named == nil {
		return false
	}
	if !s.yes("retry_after") {
		wait = max(1, wait-2)
	}
	w.Header().Set("Retry-After", strconv.Itoa(wait))
	body := map[string]any{"error": "rate_limited", "limit_key": named.name}
	if s.odd == "none" {
		delete(body, "limit_key")
	}
	s.write(w, 429, body)
	return true
}

func (s *Service) write(w http.ResponseWriter, status int, body map[string]any) {
	body["trace_id"] = fmt.Sprint("t-", s.calls)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// flaw is why a call is refused.
type flaw struct {
	status int
	code   string
}

func (s *Service) fail(w http.ResponseWriter, f flaw) {
	body := map[string]any{"error": s.Decides["error_names"].(map[string]any)[f.code]}
	if f.status == 400 && s.yes("reason") {
		body["reason"] = "something is wrong with the body"
	}
	s.write(w, f.status, body)
}

var (
	requests = []string{"key_minute", "ip_minute", "key_day"}
	methods  = map[string]string{"status": "GET", "warmup": "POST", "byok": "GET PUT DELETE", "agents": "POST", "agent": "GET", "agent/messages": "POST", "agent/channels/sms": "POST"}

	// operationsOf are the limits that a call to a route spends, other than those on requests.
	operationsOf = map[string][]string{
		"warmup": {"warmup_key_hour"}, "byok": {"byok_set_key_hour"}, "agents": {"agent_create_key_day", "agent_create_ip_minute"},
	}
)

// ServeHTTP answers one call, in the order that the decisions give.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls++
	now := float64(time.Now().UnixMilli()) / 1000
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	key := s.keys[token]
	if !bearer {
		key = nil
	}
	route, id := routeOf(r.URL.EscapedPath())
	spends := s.Decides["refused_requests_spend"].(map[string]any)
	switch {
	case route == "" && (key != nil || s.yes("path_before_key")):
		s.fail(w, flaw{404, "not_found"})
		return
	case key == nil:
		if spends["401"] == true {
			s.spend(token, now, "ip_minute")
		}
		s.fail(w, flaw{401, "unauthorized"})
		return
	case !slices.Contains(strings.Fields(methods[route]), r.Method):
		s.fail(w, flaw{s.Decides["unknown_method"].(int), map[int]string{404: "not_found", 405: "method_not_allowed"}[s.Decides["unknown_method"].(int)]})
		return
	}
	if r.Method == "GET" && route == "status" || route == "byok" && r.Method != "PUT" { // no limits
		if route == "status" && spends["status"] == true {
			s.spend(token, now, requests...)
		}
		s.act(w, r, route, key, nil, token, nil)
		return
	}
	body, bad := s.body(r, route)
	agent := s.agents[id]
	if agent != nil && agent.owner != token && s.Decides["agent_of_another_key"] == 404 {
		agent = nil
	}
	f := s.flaw(route, key, body, bad, id != "" && agent == nil, agent)
	operations := operationsOf[route]
	if llm, _ := body["llm"].(map[string]any); llm["api_key"] != nil {
		operations = append(operations, "byok_set_key_hour")
	}
	asked, spent := s.cost(f, operations)
	if s.refuse(w, asked, token, now) {
		return
	}
	s.spend(token, now, spent...)
	if f.status != 0 {
		s.fail(w, f)
		return
	}
	s.act(w, r, route, key, body, token, agent)
}

// cost says which limits may refuse a call, and which it spends.
func (s *Service) cost(f flaw, operations []string) (asked, spent []string) {
	if f.status != 400 || s.yes("limit_before_body") {
		asked = append(asked, requests...)
	}
	if f.status == 0 || f.code == "bad_request" && !s.yes("body_before_operation_limit") {
		asked = append(asked, operations...)
	}
	counts, decided := s.Decides["refused_requests_spend"].(map[string]any)[strconv.Itoa(f.status)]
	if f.status == 0 || !decided || counts == true {
		spent = append(spent, requests...)
	}
	if f.status == 0 || f.code == "bad_request" && s.yes("refused_operations_spend") {
		spent = append(spent, operations...)
	}
	return asked, spent
}

var paths = regexp.MustCompile(`^/v1/(?:(status|warmup|byok|agents)|agents/([^/]+)(|/messages|/channels/sms))$`)

// routeOf names the route of a path, and the agent in it. An agent's routes are agent,
// agent/messages and agent/channels/sms.
func routeOf(path string) (route, id string) {
	parts := paths.FindStringSubmatch(path)
	if parts == nil {
		return "", ""
	}
	id, _ = url.PathUnescape(parts[2])
	return cmp.Or(parts[1], "agent"+parts[3]), id
}

func (s *Service) flaw(route string, key *apiKey, body map[string]any, bad, unknown bool, agent *agentState) flaw {
	llm, _ := body["llm"].(map[string]any)
	switch {
	case unknown && (!bad || !s.yes("body_before_agent")):
		return flaw{404, "not_found"}
	case bad:
		return flaw{400, "bad_request"}
	case route == "warmup" && body["mode"] == "byok" && key.byok == nil:
		return flaw{409, "byok_not_configured"}
	case route == "agents" && llm["mode"] == "byok" && key.byok == nil && llm["api_key"] == nil:
		return flaw{400, "byok_not_configured"}
	case route == "agent/messages" && agent.byok && key.byok == nil && s.Decides["byok_cleared"] != 200:
		return flaw{s.Decides["byok_cleared"].(int), "byok_not_configured"}
	}
	return flaw{}
}

func (s *Service) act(w http.ResponseWriter, r *http.Request, route string, key *apiKey, body map[string]any, token string, agent *agentState) {
	reply := map[string]any{"ok": true}
	switch route + " " + r.Method {
	case "status GET":
		for name, v := range s.Decides["status"].(map[string]any) {
			reply[name] = v
		}
	case "warmup POST":
		reply["warmed"], reply["mode"] = true, "hosted"
		if body["mode"] != nil {
			reply["mode"] = body["mode"]
		}
	case "byok GET":
		reply["byok"] = s.config(key)
	case "byok PUT":
		key.byok, key.updated = body, time.Now()
		reply["byok"] = s.config(key)
	case "byok DELETE":
		if key.byok == nil && s.Decides["clear_nothing"] == 404 {
			s.fail(w, flaw{404, "not_found"})
			return
		}
		key.byok = nil
	case "agents POST":
		llm, _ := body["llm"].(map[string]any)
		made := &agentState{owner: token, byok: llm["mode"] == "byok", at: time.Now()}
		id := fmt.Sprintf("ag~%d", 1000+len(s.agents))
		s.agents[id] = made
		reply = map[string]any{"agent_id": id, "status": "active"}
		if sms, asked := body["sms"].(map[string]any); asked {
			made.sms = s.Decides["sms_status"].(map[string]any)[sms["mode"].(string)].(string)
			reply["sms"] = map[string]any{"status": made.sms}
		}
		if llm["api_key"] != nil && (s.yes("creation_stores_key") || key.byok != nil) {
			key.byok, key.updated = llm, time.Now()
		}
	case "agent GET":
		reply = map[string]any{"agent_id": strings.TrimPrefix(r.URL.Path, "/v1/agents/"), "status": "active", "created_at": s.time(agent.at), "updated_at": s.time(agent.at)}
		if agent.sms != "" {
			reply["sms"] = map[string]any{"status": agent.sms}
		}
	case "agent/messages POST":
		reply = map[string]any{"reply_text": "You said " + body["text"].(string)}
	case "agent/channels/sms POST":
		agent.sms = s.Decides["sms_status"].(map[string]any)[body["mode"].(string)].(string)
		reply = map[string]any{"status": agent.sms}
	}
	s.write(w, 200, reply)
}

func (s *Service) config(key *apiKey) any {
	if key.byok == nil {
		return nil
	}
	return map[string]any{
		"provider": key.byok["provider"], "base_url": key.byok["base_url"], "model": key.byok["model"], "fingerprint": "fp-81", "updated_at": s.time(key.updated),
	}
}

func (s *Service) time(t time.Time) string {
	switch s.Decides["times"] {
	case "rfc3339 with an offset":
		return t.In(time.FixedZone("", 7200)).Format(time.RFC3339)
	case "unix seconds":
		return strconv.FormatInt(t.Unix(), 10)
	case "unix milliseconds":
		return strconv.FormatInt(t.UnixMilli(), 10)
	}
	return t.UTC().Format(time.RFC3339)
}

// fieldsOf are the members of each body (interface 2.3 to 2.5 and 4): a
// type, or a bound, or the values with bars between; ! marks the required ones.
var fieldsOf = map[string]map[string]string{
	"warmup":             {"mode": "hosted|byok"},
	"byok":               {"provider": "!openai_compat|openai|anthropic", "api_key": "!text", "base_url": "text", "model": "text", "label": "text"},
	"agents":             {"system_prompt": "2000", "customer_ref": "200", "metadata": "metadata", "sms": "sms", "llm": "llm"},
	"agent/messages":     {"text": "!4000", "user_ref": "text"},
	"agent/channels/sms": {"mode": "!sandbox|managed|byo_twilio"},
	"sms of a creation":  {"mode": "!none|sandbox|managed|byo_twilio"},
	"llm": {"mode": "hosted|byok", "tier": "fast|smart", "model": "200", "provider": "openai_compat|openai|anthropic",
		"base_url": "400", "api_key": "text", "label": "60"},
}

// body reads the call's body; bad is a 400.
func (s *Service) body(r *http.Request, route string) (body map[string]any, bad bool) {
	if r.Method == "GET" || r.Method == "DELETE" {
		return nil, false
	}
	text, _ := io.ReadAll(r.Body)
	if len(text) == 0 {
		return nil, route != "warmup"
	}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	decoder := json.NewDecoder(bytes.NewReader(text))
	if media != "" && media != "application/json" && !s.yes("content_type") || decoder.Decode(&body) != nil || body == nil {
		return nil, true
	}
	if rest, _ := io.ReadAll(decoder.Buffered()); len(bytes.TrimSpace(rest)) > 0 && !s.yes("behind_body") {
		return body, true
	}
	if !s.yes("duplicate_members") && strings.Count(string(text), `"text":`) > 1 {
		return body, true
	}
	return body, s.wrong(route, body)
}

// wrong reports whether an object has a member that its fields do not allow.
func (s *Service) wrong(fields string, object map[string]any) bool {
	known := fieldsOf[fields]
	for name, v := range object {
		lower := strings.ToLower(name)
		if lower != name && s.yes("other_case_members") {
			object[lower] = v
			name = lower
		}
		kind, documented := known[name]
		kind = strings.TrimPrefix(kind, "!")
		switch {
		case !documented && fields == "agent/messages" && s.yes("unknown_members"):
		case !documented:
			return true
		case v == nil && s.yes("null_members"):
		case s.misfit(kind, v):
			return true
		}
	}
	if key, provider := object["api_key"], object["provider"]; fields == "llm" && key != nil && provider == nil {
		return true
	}
	for name, kind := range known {
		if strings.HasPrefix(kind, "!") && object[name] == nil {
			return true
		}
	}
	return false
}

func (s *Service) misfit(kind string, v any) bool {
	text, isText := v.(string)
	object, isObject := v.(map[string]any)
	most, err := strconv.Atoi(kind)
	switch {
	case kind == "metadata":
		compact, _ := json.Marshal(object)
		return !isObject || len(compact) > s.Decides["metadata_cap"].(int)
	case kind == "sms":
		return !isObject || s.wrong("sms of a creation", object)
	case kind == "llm":
		return !isObject || s.wrong("llm", object)
	case kind == "text":
		return !isText
	case err == nil:
		length := map[any]int{"bytes": len(text), "UTF-16 units": len(utf16.Encode([]rune(text))), "code points": utf8.RuneCountInString(text)}
		return !isText || length[s.Decides["length_unit"]] > most
	}
	return !isText || !slices.Contains(strings.Split(kind, "|"), text)
}

// After returns a transport that reaches the service after a random latency below
// most.
func (s *Service) After(random *rand.Rand, most time.Duration) http.RoundTripper {
	return RoundTrip(func(req *http.Request) (*http.Response, error) {
		time.Sleep(time.Duration(random.Int64N(int64(most))))
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, req)
		return answer.Result(), nil
	})
}

// RoundTrip is a function as an http.RoundTripper.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Answering answers every call alike, as JSON and with a Retry-After of a second.
func Answering(status int, body string) RoundTrip {
	return func(req *http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	}
}
