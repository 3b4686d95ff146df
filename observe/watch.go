package observe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// Watcher is an http.RoundTripper that looks at the answers that pass. It is
// made by [Watch], and safe for concurrent use.
type Watcher struct {
	transport http.RoundTripper
	seed      maphash.Seed

	mu     sync.Mutex // guards what follows
	o      Observation
	passed map[string]int // answers by endpoint
	keys   map[uint64]*watchedKey
	agents map[uint64]watchedAgent
	plain  map[string]bool // limits that refused a call without an operation to count
}

// watchedKey is what is known of an API key.
type watchedKey struct {
	byok     byokState
	calls    []time.Time            // that count in the limits on requests, of the last day
	acts     map[string][]time.Time // operations that went through, by endpoint
	reopened map[string]time.Time   // when Retry-After said that an endpoint is open again
}

type watchedAgent struct {
	owner uint64
	byok  bool // it uses the key that its owner has stored
}

type byokState int

const (
	byokUnknown byokState = iota
	byokNone
	byokSet
	byokBrought // by a creation, after none was set: stored or not
)

// How much a Watcher remembers.
const (
	mostRemembered = 10_000   // keys, agents
	mostCalls      = 1_100    // of a key
	mostFacts      = 300      // in Observation.Traffic
	mostRead       = 64 << 10 // bytes of a body
)

// Watch returns a transport for production that sends calls by another one, nil
// for http.DefaultTransport, and learns from the answers how the service decides:
//
//	watcher := observe.Watch(http.DefaultTransport)
//	client, err := agentmessaging.NewClient(baseURL, key,
//		agentmessaging.WithHTTPClient(&http.Client{Transport: watcher}))
//
// and, now and then, watcher.Observation().WriteFile("observed.json").
//
// Of the 33 questions it can answer 14 without asking: status, error_names,
// reason, times, metadata_cap (a bound: so much went through), sms_status,
// agent_of_another_key, clear_nothing, creation_stores_key, byok_cleared,
// warmup_limit_name, minute_limit_name, other_limit_names and retry_after. Which
// of them depends on the calls that pass. It also counts statuses, header names,
// forms of Retry-After, and members that the document does not have.
//
// It never fails, delays or changes a call. An observation of it holds no text, no
// key, no id and no hash of them; in memory keys and agents are numbers under a
// secret of the process. Of messages, reads and status it looks at the bodies of
// the first 32 answers and then at one of 32.
func Watch(transport http.RoundTripper) *Watcher {
	w := &Watcher{
		transport: cmp.Or(transport, http.DefaultTransport), seed: maphash.MakeSeed(),
		passed: map[string]int{}, keys: map[uint64]*watchedKey{}, agents: map[uint64]watchedAgent{},
		plain: map[string]bool{},
	}
	w.o.init()
	w.o.Traffic = map[string]Sight{}
	return w
}

// Observation returns a copy of what was learned so far.
func (w *Watcher) Observation() *Observation {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.o
	o.Decisions, o.Traffic = maps.Clone(o.Decisions), maps.Clone(o.Traffic)
	return &o
}

// CloseIdleConnections closes those of the transport, as http.Client does.
func (w *Watcher) CloseIdleConnections() {
	if closer, ok := w.transport.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// RoundTrip sends the call, and looks at its answer when that has been read or
// closed.
func (w *Watcher) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := w.transport.RoundTrip(req)
	if err != nil || res == nil || res.Body == nil {
		return res, err
	}
	e, agent, ok := endpointOf(req.Method, req.URL.EscapedPath())
	if !ok {
		return res, err
	}
	p := passing{key: w.number(req.Header.Get("Authorization")), at: time.Now()}
	p.Endpoint, p.Status, p.Header = e, res.StatusCode, res.Header
	if agent != "" {
		p.agent = w.number(agent)
	}
	if e.Name == rawcall.CreateAgent.Name || e.Name == rawcall.WarmUp.Name || e.Name == rawcall.EnableSMS.Name {
		p.sent = sentBody(req)
	}
	if w.samples(p) {
		res.Body = &tap{ReadCloser: res.Body, w: w, passing: p, length: res.ContentLength}
	} else {
		w.look(p)
	}
	return res, err
}

// number identifies a key or an agent in memory.
func (w *Watcher) number(text string) uint64 { return maphash.String(w.seed, text) }

// samples reports whether the body of an answer is looked at.
func (w *Watcher) samples(p passing) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.passed[p.Name]
	w.passed[p.Name]++
	often := p.Name == rawcall.SendMessage.Name || p.Name == rawcall.ReadAgent.Name || p.Name == rawcall.GetStatus.Name
	return p.Status != http.StatusOK || !often || n < 32 || n%32 == 0
}

// endpointOf finds the endpoint of a path, which may begin with that of a base
// address, and the agent in it.
func endpointOf(method, path string) (e rawcall.Endpoint, agent string, ok bool) {
	_, path, _ = strings.Cut(path, "/v1/")
	rest, ofAgent := strings.CutPrefix(path, "agents/")
	agent, rest, _ = strings.Cut(rest, "/")
	for _, e := range rawcall.Endpoints {
		if e.Method != method {
			continue
		}
		if !ofAgent && e.Path[len("/v1/"):] == path {
			return e, "", true
		}
		if want, is := strings.CutPrefix(e.Path, "/v1/agents/{agent_id}"); ofAgent && is && strings.TrimPrefix(want, "/") == rest {
			agent, _ = url.PathUnescape(agent)
			return e, agent, true
		}
	}
	return e, "", false
}

// sentBody is a copy of the body that was sent, where the request has one to
// give again.
func sentBody(req *http.Request) (body string) {
	if req.GetBody == nil {
		return ""
	}
	again, err := req.GetBody()
	if err != nil || again == nil {
		return ""
	}
	defer again.Close()
	text, _ := io.ReadAll(io.LimitReader(again, mostRead))
	return string(text)
}

// tap copies a body as it is read, up to a bound.
type tap struct {
	io.ReadCloser
	w       *Watcher
	passing passing
	length  int64 // of the whole body, -1 where it is not known
	text    bytes.Buffer
	once    sync.Once
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if n > 0 && t.text.Len() < mostRead {
		t.text.Write(p[:n])
	}
	if err == io.EOF {
		t.done(true)
	}
	return n, err
}

func (t *tap) Close() error {
	err := t.ReadCloser.Close()
	t.done(int64(t.text.Len()) == t.length)
	return err
}

// done looks at the answer once. A body that was not read whole is left out, and
// so is one that is too long.
func (t *tap) done(whole bool) {
	t.once.Do(func() {
		if whole && t.text.Len() < mostRead {
			t.passing.Body = t.text.Bytes()
		}
		t.w.look(t.passing)
	})
}

// passing is a call that passes.
type passing struct {
	rawcall.Exchange
	key, agent uint64
	sent       string // the body, of calls whose answer depends on it
	at         time.Time
}

// look learns from a call. Whatever is wrong with its answer, and with this
// package, is no matter of the call.
func (w *Watcher) look(p passing) {
	defer func() { _ = recover() }()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.keys) > mostRemembered || len(w.agents) > mostRemembered {
		w.keys, w.agents = map[uint64]*watchedKey{}, map[uint64]watchedAgent{}
	}
	key := w.keys[p.key]
	if key == nil {
		key = &watchedKey{acts: map[string][]time.Time{}, reopened: map[string]time.Time{}}
		w.keys[p.key] = key
	}
	w.fact(p, p.Method+" "+p.Path+" "+strconv.Itoa(p.Status))
	if p.Status != http.StatusOK && !slices.Contains(p.Errors, p.Status) {
		w.fact(p, fmt.Sprint("not documented: ", p.Status, " of ", p.Method, " ", p.Path))
	}
	if p.Body != nil && undocumented(p.Exchange) != "" {
		w.fact(p, fmt.Sprint("not documented: a body of ", p.Method, " ", p.Path, " ", p.Status))
		return // of another sender, perhaps
	}
	if p.Body != nil {
		w.members(p)
	}
	w.values(p, key)
	w.states(p, key)
	w.limits(p, key)
}

// fact counts a sight that answers no question.
func (w *Watcher) fact(p passing, what string) {
	s, known := w.o.Traffic[what]
	if known || len(w.o.Traffic) < mostFacts {
		w.o.Traffic[what] = Sight{s.Count + 1, today(p.at)}
	}
}

// found keeps an answer. Another one than before replaces it.
func (w *Watcher) found(p passing, id, member string, answer any) {
	f := w.o.Decisions[id]
	if member != "" {
		members := membersOf(f.Answer)
		if members == nil {
			members = map[string]any{}
		}
		members[member] = answer
		answer = members
	}
	value := jsonOf(answer)
	if f.Answer != nil && !sameJSON(f.Answer, value) {
		f.Count = 0
	}
	w.o.Decisions[id] = Finding{Answer: value, Evidence: evidenceOf(p.Exchange, ""), Seen: today(p.at), Count: f.Count + 1}
}

// labelled is a member that is a name, or "".
func (p passing) labelled(path string) string {
	if text, _ := p.At(path).(string); label.MatchString(text) {
		return text
	}
	return ""
}

// members counts what bodies and headers have besides what the document shows.
func (w *Watcher) members(p passing) {
	body, _ := p.JSON()
	object, _ := body.(map[string]any)
	for name := range object {
		if documented := ", " + string(p.Shape()); !strings.Contains(documented, ", "+name+" ") && !strings.Contains(documented, ", "+name+".") && identifier.MatchString(name) {
			w.fact(p, fmt.Sprintf("member %s of %s %s %d", name, p.Method, p.Path, p.Status))
		}
	}
	for name := range p.Header {
		if identifier.MatchString(name) {
			w.fact(p, "header "+name)
		}
	}
	for _, path := range []string{"error", "limit_key", "sms.status"} {
		if value := p.labelled(path); value != "" {
			w.fact(p, fmt.Sprintf("%s %s of %s %s %d", path, value, p.Method, p.Path, p.Status))
		}
	}
}

// values learns from a body alone, and from what was sent.
func (w *Watcher) values(p passing, key *watchedKey) {
	if p.Body == nil {
		return
	}
	if p.Status != http.StatusOK {
		w.errorNames(p)
		return
	}
	var sent struct {
		Metadata json.RawMessage
		Mode     string
		SMS      struct{ Mode string }
	}
	_ = json.Unmarshal([]byte(p.sent), &sent) // a body that is none says nothing
	switch p.Name {
	case rawcall.GetStatus.Name:
		for _, name := range []string{"service", "version", "mode"} {
			if value := p.labelled(name); value != "" {
				w.found(p, "status", name, value)
			}
		}
	case rawcall.ReadAgent.Name:
		w.found(p, "times", "", timeForm(p.At("created_at").(string)))
		if status := p.labelled("status"); status != "" {
			w.fact(p, "status of an agent "+status)
		}
	case rawcall.CreateAgent.Name:
		w.metadata(p, sent.Metadata)
		if status := p.labelled("sms.status"); status != "" && sent.SMS.Mode != "" {
			w.found(p, "sms_status", sent.SMS.Mode, status)
		}
	case rawcall.EnableSMS.Name:
		if status := p.labelled("status"); status != "" && sent.Mode != "" {
			w.found(p, "sms_status", sent.Mode, status)
		}
	}
}

// errorNames learns what a status is called, from answers that have one cause.
func (w *Watcher) errorNames(p passing) {
	names := map[int]string{401: "unauthorized", 402: "payment_required", 403: "forbidden", 405: "method_not_allowed", 409: "byok_not_configured", 503: "byok_unavailable"}
	name := names[p.Status]
	switch {
	case p.Status == 404 && p.Name == rawcall.ReadAgent.Name:
		name = "not_found"
	case p.Status == 400 && p.Name != rawcall.SendMessage.Name && !strings.Contains(p.sent, `"byok"`) && !strings.Contains(p.sent, `"api_key"`):
		name = "bad_request"
		w.found(p, "reason", "", p.At("reason") != nil)
	}
	if value := p.labelled("error"); name != "" && value != "" {
		w.found(p, "error_names", name, value)
	}
}

// metadata learns that so much went through. Where a text has more than one
// spelling in JSON its length is not known.
func (w *Watcher) metadata(p passing, metadata json.RawMessage) {
	var compacted bytes.Buffer
	if json.Compact(&compacted, metadata) != nil || bytes.ContainsFunc(compacted.Bytes(), func(r rune) bool { return r == '\\' || r > '~' }) {
		return
	}
	if f := w.o.Decisions["metadata_cap"]; compacted.Len() >= f.AtLeast {
		w.o.Decisions["metadata_cap"] = Finding{AtLeast: compacted.Len(), Seen: today(p.at), Count: f.Count + 1, Evidence: evidenceOf(p.Exchange, "")}
	}
}

// states learns from what earlier calls of the process did to key and agent.
func (w *Watcher) states(p passing, key *watchedKey) {
	ok, byok := p.Status == http.StatusOK, strings.Contains(p.sent, `"byok"`)
	agent, created := w.agents[p.agent]
	switch p.Name {
	case rawcall.SetBYOK.Name:
		key.byok = byokUnknown
		if ok {
			key.byok = byokSet
		}
	case rawcall.GetBYOK.Name:
		if !ok || p.Body == nil {
			break
		}
		stored := p.At("byok") != nil
		if key.byok == byokBrought {
			w.found(p, "creation_stores_key", "", stored)
		}
		key.byok = map[bool]byokState{false: byokNone, true: byokSet}[stored]
	case rawcall.ClearBYOK.Name:
		if key.byok == byokNone && (ok || p.Status == http.StatusNotFound) {
			w.found(p, "clear_nothing", "", p.Status)
		}
		if key.byok = byokUnknown; ok || p.Status == http.StatusNotFound {
			key.byok = byokNone
		}
	case rawcall.CreateAgent.Name:
		brought := strings.Contains(p.sent, `"api_key"`)
		if id, _ := p.At("agent_id").(string); ok && id != "" {
			w.agents[w.number(id)] = watchedAgent{p.key, byok && !brought}
		}
		if brought && key.byok == byokNone && ok {
			key.byok = byokBrought
		} else if brought {
			key.byok = byokUnknown
		}
	case rawcall.ReadAgent.Name:
		if created && agent.owner != p.key && (ok || p.Status == http.StatusNotFound) {
			w.found(p, "agent_of_another_key", "", p.Status)
		}
	case rawcall.SendMessage.Name:
		if created && agent.owner == p.key && agent.byok && key.byok == byokNone && (ok || p.Status == 404 || p.Status == 400 && w.anotherError(p)) {
			w.found(p, "byok_cleared", "", p.Status)
		}
	}
}

// anotherError reports whether an error has another name than a wrong body has.
func (w *Watcher) anotherError(p passing) bool {
	wrongBody := membersOf(w.o.Decisions["error_names"].Answer)["bad_request"]
	return wrongBody != nil && wrongBody != p.At("error")
}

// watchedLimits are the limits of interface 8.1 and 8.2 that calls of one key
// meet, with their numbers.
var watchedLimits = []struct {
	id, member string
	endpoint   string // whose operations count; "" is every request
	window     time.Duration
	least      time.Duration // shorter waits may be those of another limit
	numbers    []int
}{
	{"minute_limit_name", "", "", time.Minute, 0, []int{60, 300, 600}},
	{"other_limit_names", "key_day", "", 24 * time.Hour, 2 * time.Minute, []int{1000}},
	{"warmup_limit_name", "", rawcall.WarmUp.Name, time.Hour, 2 * time.Minute, []int{3}},
	{"other_limit_names", "byok_set_key_hour", rawcall.SetBYOK.Name, time.Hour, 2 * time.Minute, []int{5}},
	{"other_limit_names", "agent_create_ip_minute", rawcall.CreateAgent.Name, time.Minute, 0, []int{10}},
	{"other_limit_names", "agent_create_key_day", rawcall.CreateAgent.Name, 24 * time.Hour, time.Hour, []int{50}},
}

// limits learns the name of a limit where the calls of this process alone have
// just filled it and no other, and whether a call went through once Retry-After
// had passed.
func (w *Watcher) limits(p passing, key *watchedKey) {
	switch p.Status {
	case http.StatusTooManyRequests:
		w.refused(p, key)
		return
	case http.StatusUnauthorized, http.StatusPaymentRequired:
		return
	}
	since := p.at.Sub(key.reopened[p.Name])
	if p.Status == http.StatusOK && since >= 0 && since < 2*time.Second {
		w.found(p, "retry_after", "", true)
	}
	delete(key.reopened, p.Name)
	if p.Limited() {
		key.calls = append(key.calls, p.at)
		key.calls = key.calls[max(0, len(key.calls)-mostCalls):]
	}
	act := func(of string) { key.acts[of] = append(key.acts[of], p.at)[max(0, len(key.acts[of])-99):] }
	if p.Status == http.StatusOK && !p.OfAgent() {
		act(p.Name)
	}
	if p.Status == http.StatusOK && p.Name == rawcall.CreateAgent.Name && strings.Contains(p.sent, `"api_key"`) {
		act(rawcall.SetBYOK.Name)
	}
}

func (w *Watcher) refused(p passing, key *watchedKey) {
	wait, problem := p.RetryAfter()
	form := "whole seconds"
	if text := p.Header.Get("Retry-After"); problem != "" {
		_, err := http.ParseTime(text)
		form = map[bool]string{true: "a date", false: "something else"}[err == nil]
	}
	w.fact(p, "Retry-After of "+form)
	if problem != "" {
		return
	}
	if wait > 2*time.Second {
		key.reopened[p.Name] = p.at.Add(wait)
	}
	name, full := p.labelled("limit_key"), -1
	if p.OfAgent() {
		w.plain[name] = true
	}
	for i, l := range watchedLimits {
		calls := key.calls
		if l.endpoint != "" {
			calls = key.acts[l.endpoint]
		}
		n := len(calls) - len(before(calls, p.at.Add(-l.window)))
		asked := l.endpoint == p.Name && !w.plain[name] || l.endpoint == "" && p.OfAgent()
		if !asked || !slices.Contains(l.numbers, n) || wait > l.window || wait < l.least {
			continue
		}
		if full >= 0 {
			return // two limits are full
		}
		full = i
	}
	if name == "" || full < 0 || len(w.keys) > 1 && watchedLimits[full].window == time.Minute {
		return // with several keys it may be the limit of the address
	}
	w.found(p, watchedLimits[full].id, watchedLimits[full].member, name)
}

// before are the times before one of them.
func before(times []time.Time, then time.Time) []time.Time {
	n, _ := slices.BinarySearchFunc(times, then, time.Time.Compare)
	return times[:n]
}
