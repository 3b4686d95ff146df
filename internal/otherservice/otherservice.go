// Package otherservice is a service for tests, written from the interface document alone. It
// shares nothing with the fake, and counts calls as package loadsim does. Where the document is silent and package observe has a
// question, the service decides at random. Elsewhere it does things that the document
// allows and the fake does not do: a read agent is idle, each agent has an SMS channel,
// replies and trace_ids are empty, messages have warnings, errors have an undocumented
// member and no trace_id.
package otherservice

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
	"github.com/agent-messaging-service/agentmessaging-go/internal/roundtrip"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

// Service is an http.Handler that takes one call at a time. Its clock is time.Now.
type Service struct {
	// Decides holds the service's answers to the questions of package observe, by question
	// id.
	Decides  map[string]any
	limits   []limit
	nameless bool                    // a 429 has no limit_key
	rules    map[string]loadsim.Rule // the counted calls: by limit, and by key unless the limit is per address
	midnight time.Time
	keys     map[string]*apiKey // by the value of Authorization
	agents   map[string]*agent
}

type limit struct {
	id     string
	max    int
	window time.Duration
	perIP  bool
	name   string
}

type apiKey struct {
	text    string
	byok    map[string]any
	updated time.Time
}

type agent struct {
	owner *apiKey
	sms   any // the status of its channel
	byok  bool
	at    time.Time
}

// New returns a service whose random decisions depend on seed. The keys are
// dashboard-issued.
func New(seed uint64, keys ...string) *Service {
	s := &Service{rules: map[string]loadsim.Rule{}, midnight: time.Now().Truncate(24 * time.Hour), keys: map[string]*apiKey{}, agents: map[string]*agent{}}
	for _, key := range keys {
		s.keys["Bearer "+key] = &apiKey{text: key}
	}
	random := rand.New(rand.NewPCG(seed, 7))
	s.decide(func(of ...any) any { return of[random.IntN(len(of))] })
	return s
}

// decideLimits chooses the limits and their names. one returns one of its arguments at random.
func (s *Service) decideLimits(one func(of ...any) any) {
	keyMinute, warmUps := one(60, 60, 60, 33, 100).(int), one(3, 3, 3, 5, 1).(int)
	s.limits = []limit{
		{id: "key_minute", max: keyMinute, window: time.Minute}, {id: "ip_minute", max: 120, window: time.Minute, perIP: true},
		{id: "key_day", max: 1000, window: 24 * time.Hour}, {id: "agent_create_key_day", max: 50, window: 24 * time.Hour},
		{id: "agent_create_ip_minute", max: 10, window: time.Minute, perIP: true}, {id: "byok_set_key_hour", max: 5, window: time.Hour},
		{id: "warmup_key_hour", max: warmUps, window: time.Hour},
	}
	odd := one("", "", "", "", "no names", "one name")
	s.nameless = odd == "no names"
	for i := range s.limits {
		l := &s.limits[i]
		l.name = fmt.Sprint(l.id, one("", "-x", " of a key", "/v1"))
		if odd == "one name" {
			l.name = "the one"
		}
	}
}

// decide makes all decisions, first those about the limits.
func (s *Service) decide(one func(of ...any) any) {
	s.decideLimits(one)
	coin := func() any { return one(false, true) }
	// each chooses a value for each name.
	each := func(names string, draw func(name string) any) map[string]any {
		drawn := map[string]any{}
		for name := range strings.FieldsSeq(names) {
			drawn[name] = draw(name)
		}
		return drawn
	}
	s.Decides = map[string]any{
		"status": map[string]any{"service": one("agents", "Agent Messaging"), "version": one("1.4.2", "v1"), "mode": one("live", "preview")},
		"error_names": each("bad_request unauthorized payment_required forbidden not_found method_not_allowed byok_not_configured byok_unavailable",
			func(name string) any { return fmt.Sprint(name, one("", "2", ".v1")) }),
		"reason": coin(), "unknown_method": one(404, 405), "path_before_key": coin(), "body_before_agent": coin(),
		"times":           one("rfc3339", "rfc3339 with an offset", "unix seconds", "unix milliseconds"),
		"unknown_members": coin(), "null_members": coin(), "duplicate_members": coin(), "other_case_members": coin(), "behind_body": coin(),
		"content_type": coin(), "length_unit": one("code points", "UTF-16 units", "bytes"), "metadata_cap": one(4096, 5, 1000, 16384, 100_000),
		"agent_of_another_key": one(404, 200), "clear_nothing": one(200, 404), "creation_stores_key": coin(), "byok_cleared": one(400, 404, 200),
		"sms_status": each("none sandbox managed byo_twilio", func(string) any {
			return one("disabled", "needs_compliance", "pending", "active", "needs_setup")
		}),
		"warmup_limit_name": s.limits[6].name, "minute_limit_name": s.limits[0].name,
		"refused_operations_spend": coin(), "body_before_operation_limit": coin(), "limit_before_body": coin(),
		"windows":     one("fixed", "aligned", "sliding", "weighted", "token bucket"),
		"retry_after": one(true, true, false), "several_limits": coin(),
		"refused_requests_spend": each("404 400 409 status", func(string) any { return coin() }),
	}
}

func (s *Service) yes(id string) bool { return s.Decides[id].(bool) }

// member returns a member of an answer that is an object.
func (s *Service) member(id, name string) any { return s.Decides[id].(map[string]any)[name] }

// counting has the ways of counting calls.
var counting = map[any]loadsim.Model{
	"fixed": loadsim.Fixed, "aligned": loadsim.Aligned, "sliding": loadsim.Sliding, "weighted": loadsim.Weighted, "token bucket": loadsim.Bucket,
}

// rule returns the counted calls of a limit.
func (s *Service) rule(l limit, key *apiKey) loadsim.Rule {
	counter := l.id
	if !l.perIP {
		counter += key.text
	}
	if s.rules[counter] == nil {
		s.rules[counter] = counting[s.Decides["windows"]](&pacer.Limit{Max: l.max, Window: l.window})
	}
	return s.rules[counter]
}

// spend counts a call against the limits with these ids.
func (s *Service) spend(key *apiKey, now time.Duration, ids ...string) {
	for _, l := range s.limits {
		if slices.Contains(ids, l.id) {
			s.rule(l, key).Spend(now)
		}
	}
}

// refusal returns the wait in seconds and the limit_key of a 429 if one of the limits is spent.
// A wait of 0 means that none is spent.
func (s *Service) refusal(key *apiKey, now time.Duration, ids []string) (wait int, name string) {
	for _, l := range s.limits {
		if !slices.Contains(ids, l.id) {
			continue
		}
		opens := int(math.Ceil(s.rule(l, key).Wait(now).Seconds()))
		if opens > 0 && wait == 0 || s.yes("several_limits") && opens > wait {
			wait, name = opens, l.name
		}
	}
	if wait > 0 && !s.yes("retry_after") {
		wait = max(1, wait-2)
	}
	return wait, name
}

// outcome is the status of an answer, and the error that a refused call meets. The zero
// value means that no check refuses the call.
type outcome struct {
	status int
	code   string
}

// ServeHTTP answers one call.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, body := s.answer(w.Header(), r)
	if f.code != "" {
		body = map[string]any{"error": s.member("error_names", f.code), "detail": map[string]any{"retry": false}}
	}
	if f.status == 400 && s.yes("reason") {
		body["reason"] = "something is wrong with the body"
	}
	if f.status == 200 || f.status == 429 {
		body["trace_id"] = ""
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(body)
}

// answer checks a call in the order that the decisions set. If nothing is wrong, it
// carries the call out.
func (s *Service) answer(header http.Header, r *http.Request) (outcome, map[string]any) {
	now := time.Since(s.midnight)
	key := s.keys[r.Header.Get("Authorization")]
	path := r.URL.EscapedPath()
	e, id, found := rawcall.Find(r.Method, path)
	known := slices.ContainsFunc(rawcall.Endpoints, func(e rawcall.Call) bool { _, _, ok := rawcall.Find(e.Method, path); return ok })
	switch unknownMethod := s.Decides["unknown_method"].(int); {
	case !known && (key != nil || s.yes("path_before_key")):
		return outcome{404, "not_found"}, nil
	case key == nil:
		return outcome{401, "unauthorized"}, nil
	case !found:
		return outcome{unknownMethod, map[int]string{404: "not_found", 405: "method_not_allowed"}[unknownMethod]}, nil
	case !e.Limited():
		if e.Name == "status" && s.member("refused_requests_spend", "status") == true {
			s.spend(key, now, requests...)
		}
		return s.act(e.Name, key, nil, "")
	}
	body, bad := s.body(r, e)
	f := s.check(e, key, body, bad, id)
	asked, spent := s.cost(f, e, body)
	if wait, name := s.refusal(key, now, asked); wait > 0 {
		header.Set("Retry-After", strconv.Itoa(wait))
		body = map[string]any{"error": "rate_limited", "limit_key": name}
		if s.nameless {
			delete(body, "limit_key")
		}
		return outcome{status: 429}, body
	}
	s.spend(key, now, spent...)
	if f.status != 0 {
		return f, nil
	}
	return s.act(e.Name, key, body, id)
}

var (
	requests = []string{"key_minute", "ip_minute", "key_day"}

	// operations has the limits that a call spends in addition to the limits on requests.
	operations = map[string][]string{
		"warmup": {"warmup_key_hour"}, "set-byok": {"byok_set_key_hour"}, "create-agent": {"agent_create_key_day", "agent_create_ip_minute"},
	}
)

// cost returns which limits may refuse a call, and which it spends.
func (s *Service) cost(f outcome, e rawcall.Call, body map[string]any) (asked, spent []string) {
	own := operations[e.Name]
	if llm, _ := body["llm"].(map[string]any); llm["api_key"] != nil {
		own = append(own, "byok_set_key_hour")
	}
	if f.status != 400 || s.yes("limit_before_body") {
		asked = append(asked, requests...)
	}
	if f.status == 0 || f.code == "bad_request" && !s.yes("body_before_operation_limit") {
		asked = append(asked, own...)
	}
	if counts := s.member("refused_requests_spend", strconv.Itoa(f.status)); counts != false {
		spent = append(spent, requests...)
	}
	if f.status == 0 || f.code == "bad_request" && s.yes("refused_operations_spend") {
		spent = append(spent, own...)
	}
	return asked, spent
}

// agentOf returns the agent if the key may see it.
func (s *Service) agentOf(key *apiKey, id string) *agent {
	if a := s.agents[id]; a != nil && (a.owner == key || s.Decides["agent_of_another_key"] == 200) {
		return a
	}
	return nil
}

// check returns the first check that refuses the call.
func (s *Service) check(e rawcall.Call, key *apiKey, body map[string]any, bad bool, id string) outcome {
	llm, _ := body["llm"].(map[string]any)
	a := s.agentOf(key, id)
	switch {
	case id != "" && a == nil && (!bad || !s.yes("body_before_agent")):
		return outcome{404, "not_found"}
	case bad:
		return outcome{400, "bad_request"}
	case e.Name == "warmup" && body["mode"] == "byok" && key.byok == nil:
		return outcome{409, "byok_not_configured"}
	case e.Name == "create-agent" && llm["mode"] == "byok" && key.byok == nil && llm["api_key"] == nil:
		return outcome{400, "byok_not_configured"}
	case e.Name == "send-message" && a.byok && key.byok == nil && s.Decides["byok_cleared"] != 200:
		return outcome{s.Decides["byok_cleared"].(int), "byok_not_configured"}
	}
	return outcome{}
}

// act carries out a call that passed all checks.
func (s *Service) act(name string, key *apiKey, body map[string]any, id string) (outcome, map[string]any) {
	a, reply := s.agentOf(key, id), map[string]any{"ok": true}
	switch name {
	case "status":
		maps.Copy(reply, s.Decides["status"].(map[string]any))
	case "warmup":
		mode, _ := body["mode"].(string)
		reply["warmed"], reply["mode"] = false, cmp.Or(mode, "hosted")
	case "get-byok":
		reply["byok"] = s.config(key)
	case "set-byok":
		key.byok, key.updated = body, time.Now()
		reply["byok"], key.updated = s.config(key), key.updated.Truncate(time.Minute) // the service answers with finer times than it stores
	case "clear-byok":
		if key.byok == nil && s.Decides["clear_nothing"] == 404 {
			return outcome{404, "not_found"}, nil
		}
		key.byok = nil
	case "create-agent":
		reply = s.createAgent(key, body)
	case "read-agent":
		at, sms := s.time(a.at), map[string]any{"status": a.sms}
		reply = map[string]any{"agent_id": id, "status": "idle", "sms": sms, "created_at": at, "updated_at": at}
	case "send-message":
		reply = map[string]any{"reply_text": "", "warnings": []any{"slow"}}
	case "enable-sms":
		a.sms = s.member("sms_status", body["mode"].(string))
		reply = map[string]any{"status": a.sms}
	}
	return outcome{status: 200}, reply
}

func (s *Service) createAgent(key *apiKey, body map[string]any) (reply map[string]any) {
	llm, _ := body["llm"].(map[string]any)
	a := &agent{owner: key, byok: llm["mode"] == "byok", sms: "disabled", at: time.Now()}
	if sms, asked := body["sms"].(map[string]any); asked {
		a.sms = s.member("sms_status", sms["mode"].(string))
	}
	if llm["api_key"] != nil && (s.yes("creation_stores_key") || key.byok != nil) {
		key.byok, key.updated = llm, time.Now()
	}
	id := fmt.Sprintf("ag~%d", 1000+len(s.agents))
	s.agents[id] = a
	return map[string]any{"agent_id": id, "status": "active", "sms": map[string]any{"status": a.sms, "carrier": "x"}}
}

func (s *Service) config(key *apiKey) any {
	if key.byok == nil {
		return nil
	}
	shown := maps.Clone(key.byok)
	maps.DeleteFunc(shown, func(name string, v any) bool {
		return v == nil || !slices.Contains([]string{"provider", "base_url", "model"}, name)
	})
	shown["fingerprint"], shown["updated_at"] = "fp-81", s.time(key.updated)
	return shown
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

// fieldsOf describes the members of each body and of the objects in it (interface 2.3 to
// 2.5 and 4). A member has a type, the longest length, or values separated by bars. !
// means required.
var fieldsOf = map[string]map[string]string{
	"warmup":       {"mode": "hosted|byok"},
	"set-byok":     {"provider": "!openai_compat|openai|anthropic", "api_key": "!text", "base_url": "text", "model": "text", "label": "text"},
	"create-agent": {"system_prompt": "2000", "customer_ref": "200", "metadata": "metadata", "sms": "sms", "llm": "llm"},
	"send-message": {"text": "!4000", "user_ref": "text"},
	"enable-sms":   {"mode": "!sandbox|managed|byo_twilio"},
	"sms":          {"mode": "!none|sandbox|managed|byo_twilio"},
	"llm": {"mode": "hosted|byok", "tier": "fast|smart", "model": "200", "provider": "openai_compat|openai|anthropic",
		"base_url": "400", "api_key": "text", "label": "60"},
}

// body reads the call's body. bad is true for a 400.
func (s *Service) body(r *http.Request, e rawcall.Call) (body map[string]any, bad bool) {
	text, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == "GET":
		return nil, false
	case len(text) == 0:
		return nil, e.Name != "warmup"
	}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	decoder := json.NewDecoder(bytes.NewReader(text))
	if media != "" && media != "application/json" && !s.yes("content_type") || decoder.Decode(&body) != nil || body == nil {
		return nil, true
	}
	rest, _ := io.ReadAll(decoder.Buffered())
	return body, len(bytes.TrimSpace(rest)) > 0 && !s.yes("behind_body") ||
		strings.Count(string(text), `"text":`) > 1 && !s.yes("duplicate_members") || s.wrong(e.Name, body)
}

// wrong reports whether an object has a member that fieldsOf does not allow, or lacks one that
// it requires.
func (s *Service) wrong(fields string, object map[string]any) bool {
	for name, v := range object {
		lower := strings.ToLower(name)
		if lower != name && s.yes("other_case_members") {
			object[lower] = v
			name = lower
		}
		kind, documented := fieldsOf[fields][name]
		switch {
		case !documented && fields == "send-message" && s.yes("unknown_members"):
		case documented && v == nil && s.yes("null_members"):
		case !documented, s.misfit(strings.TrimPrefix(kind, "!"), v):
			return true
		}
	}
	for name, kind := range fieldsOf[fields] {
		if strings.HasPrefix(kind, "!") && object[name] == nil {
			return true
		}
	}
	return fields == "llm" && object["api_key"] != nil && object["provider"] == nil
}

func (s *Service) misfit(kind string, v any) bool {
	text, isText := v.(string)
	object, isObject := v.(map[string]any)
	maxLength, err := strconv.Atoi(kind)
	switch {
	case kind == "metadata":
		compact, _ := json.Marshal(object)
		return !isObject || len(compact) > s.Decides["metadata_cap"].(int)
	case fieldsOf[kind] != nil:
		return !isObject || s.wrong(kind, object)
	case kind == "text":
		return !isText
	case err == nil:
		length := map[any]int{"bytes": len(text), "UTF-16 units": len(utf16.Encode([]rune(text))), "code points": utf8.RuneCountInString(text)}
		return !isText || length[s.Decides["length_unit"]] > maxLength
	}
	return !isText || !slices.Contains(strings.Split(kind, "|"), text)
}

// After returns a transport to the service that adds a random latency shorter than
// maxLatency.
func (s *Service) After(random *rand.Rand, maxLatency time.Duration) http.RoundTripper {
	return roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		time.Sleep(time.Duration(random.Int64N(int64(maxLatency))))
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, req)
		return answer.Result(), nil
	})
}
