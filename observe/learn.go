package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// look learns from a call. It recovers from every panic: neither a strange answer
// nor a bug of this package may fail the call.
func (w *Watcher) look(p *passing) {
	defer func() { _ = recover() }()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.keys) > mostRemembered || len(w.agents) > mostRemembered {
		w.keys, w.agents = map[uint64]*watchedKey{}, map[uint64]watchedAgent{}
	}
	key := w.keys[p.key]
	if key == nil {
		key = &watchedKey{calls: map[string][]time.Time{}, opens: map[string]time.Time{}}
		w.keys[p.key] = key
	}
	w.today = today(p.at)
	answer := p.Method + " " + p.Path + " " + strconv.Itoa(p.Status)
	w.fact(answer)
	if p.Status != http.StatusOK && !slices.Contains(p.Errors, p.Status) {
		w.fact("not documented: " + answer)
	}
	if p.Body != nil && undocumented(p.Exchange) != "" {
		w.fact("not documented: a body of " + answer)
		return // of another sender, perhaps
	}
	if p.Body != nil {
		w.members(p, " of "+answer)
		w.metadata(p)
		for _, q := range questions {
			if q.read != nil {
				w.found(p, q.id, q.read(p.Exchange))
			}
		}
	}
	w.states(p, key)
	w.limits(p, key)
}

// fact counts a sight that answers no question.
func (w *Watcher) fact(what string) {
	s, known := w.o.Traffic[what]
	if known || len(w.o.Traffic) < mostFacts {
		w.o.Traffic[what] = Sight{s.Count + 1, w.today}
	}
}

// found keeps an answer, or more members of one. A different answer replaces the
// one before.
func (w *Watcher) found(p *passing, id string, answer any) {
	if answer == nil {
		return
	}
	f := w.o.Decisions[id]
	if members := membersOf(f.Answer); members != nil {
		answer = join(members, answer)
	}
	value := jsonOf(answer)
	if f.Answer != nil && !sameJSON(f.Answer, value) {
		f.Count = 0
	}
	w.o.Decisions[id] = Finding{Answer: value, Evidence: evidenceOf(p.Exchange, ""), Seen: w.today, Count: f.Count + 1}
}

// members counts what bodies and headers have besides what the document shows.
func (w *Watcher) members(p *passing, of string) {
	object, _ := p.Value.(map[string]any)
	for name := range object {
		if identifier.MatchString(name) && !strings.Contains(", "+string(p.Shape()), ", "+name+" ") {
			w.fact("member " + name + of)
		}
	}
	for name := range p.Header {
		if identifier.MatchString(name) {
			w.fact("header " + name)
		}
	}
	for _, path := range []string{"error", "limit_key", "status", "sms.status"} {
		if value := labelAt(p.Exchange, path); value != nil {
			w.fact(fmt.Sprint(path, " ", value, of))
		}
	}
}

// metadata learns the size of metadata that was accepted. It skips metadata with
// characters that JSON can spell in more than one way: their length is not known.
func (w *Watcher) metadata(p *passing) {
	var sent struct{ Metadata json.RawMessage }
	var compacted bytes.Buffer
	switch {
	case p.Name != rawcall.CreateAgent.Name, p.Status != http.StatusOK, json.Unmarshal([]byte(p.Call.Body), &sent) != nil:
		return
	case json.Compact(&compacted, sent.Metadata) != nil, bytes.ContainsFunc(compacted.Bytes(), func(r rune) bool { return r == '\\' || r > '~' }):
		return
	}
	if f := w.o.Decisions["metadata_cap"]; compacted.Len() >= f.AtLeast {
		w.o.Decisions["metadata_cap"] = Finding{AtLeast: compacted.Len(), Seen: w.today, Count: f.Count + 1, Evidence: evidenceOf(p.Exchange, "")}
	}
}

// states learns from what earlier calls of the process did to key and agent.
func (w *Watcher) states(p *passing, key *watchedKey) {
	ok, missing := p.Status == http.StatusOK, p.Status == http.StatusNotFound
	agent, known := w.agents[p.agent]
	switch p.Name {
	case rawcall.SetBYOK.Name:
		key.byok = after(ok, byokSet)
	case rawcall.GetBYOK.Name:
		if !ok || p.Body == nil {
			break
		}
		stored := p.At("byok") != nil
		if key.byok == byokBrought {
			w.found(p, "creation_stores_key", stored)
		}
		if key.byok = byokNone; stored {
			key.byok = byokSet
		}
	case rawcall.ClearBYOK.Name:
		if key.byok == byokNone && (ok || missing) {
			w.found(p, "clear_nothing", p.Status)
		}
		key.byok = after(ok || missing, byokNone)
	case rawcall.CreateAgent.Name:
		brought := strings.Contains(p.Call.Body, `"api_key"`)
		if id, _ := p.At("agent_id").(string); ok && id != "" {
			w.agents[w.number(id)] = watchedAgent{p.key, strings.Contains(p.Call.Body, `"byok"`) && !brought}
		}
		if brought {
			key.byok = after(ok && key.byok == byokNone, byokBrought)
		}
	case rawcall.ReadAgent.Name:
		if known && agent.owner != p.key && (ok || missing) {
			w.found(p, "agent_of_another_key", p.Status)
		}
	case rawcall.SendMessage.Name:
		if known && agent.owner == p.key && agent.byok && key.byok == byokNone && (ok || missing || p.Status == 400 && w.anotherError(p)) {
			w.found(p, "byok_cleared", p.Status)
		}
	}
}

// after returns the state after a call: unknown unless its answer shows that it went
// through.
func after(wentThrough bool, state byokState) byokState {
	if wentThrough {
		return state
	}
	return byokUnknown
}

// anotherError reports whether an error has another name than a wrong body has.
func (w *Watcher) anotherError(p *passing) bool {
	wrongBody := membersOf(w.o.Decisions["error_names"].Answer)["bad_request"]
	return wrongBody != nil && wrongBody != p.At("error")
}

// watchedLimit is a limit of a key or an address.
type watchedLimit struct {
	names    string // the question, or the member of its answer, that the limit's name answers
	endpoint string // whose operations count; "" is every request
	window   time.Duration
	least    time.Duration // a shorter wait may come from another limit
	numbers  []int
}

// watchedLimits are the limits of interface 8.1 and 8.2 that calls of one key
// meet, with their numbers.
var watchedLimits = []watchedLimit{
	{"minute_limit_name", "", time.Minute, 0, []int{60, 300, 600}},
	{"other_limit_names.key_day", "", 24 * time.Hour, 2 * time.Minute, []int{1000}},
	{"warmup_limit_name", rawcall.WarmUp.Name, time.Hour, 2 * time.Minute, []int{3}},
	{"other_limit_names.byok_set_key_hour", rawcall.SetBYOK.Name, time.Hour, 2 * time.Minute, []int{5}},
	{"other_limit_names.agent_create_ip_minute", rawcall.CreateAgent.Name, time.Minute, 0, []int{10}},
	{"other_limit_names.agent_create_key_day", rawcall.CreateAgent.Name, 24 * time.Hour, time.Hour, []int{50}},
}

// limits counts the calls by the limits that they spend. It learns whether a call
// went through as soon as Retry-After had passed.
func (w *Watcher) limits(p *passing, key *watchedKey) {
	switch p.Status {
	case http.StatusTooManyRequests:
		w.refused(p, key)
		return
	case http.StatusUnauthorized, http.StatusPaymentRequired:
		return
	}
	ok := p.Status == http.StatusOK
	// A second later it would show nothing: a wait that is too short is so by whole seconds.
	if since := p.at.Sub(key.opens[p.Name]); ok && since >= 0 && since < time.Second {
		w.found(p, "retry_after", true)
	}
	delete(key.opens, p.Name)
	if p.Limited() {
		key.count("", p.at)
	}
	if ok && !p.OfAgent() {
		key.count(p.Name, p.at)
	}
	if ok && p.Cost(p.Status).BYOKSets > 0 && p.Name == rawcall.CreateAgent.Name {
		key.count(rawcall.SetBYOK.Name, p.at)
	}
}

func (k *watchedKey) count(endpoint string, at time.Time) {
	calls := append(k.calls[endpoint], at)
	k.calls[endpoint] = calls[max(0, len(calls)-mostCalls):]
}

// refused learns the name of a limit if the calls of this process have just filled
// that limit and no other.
func (w *Watcher) refused(p *passing, key *watchedKey) {
	wait, problem := p.RetryAfter()
	form := "whole seconds"
	if _, err := http.ParseTime(p.Header.Get("Retry-After")); err == nil {
		form = "a date"
	} else if problem != "" {
		form = "something else"
	}
	w.fact("Retry-After of " + form)
	if problem == "" && wait > 2*time.Second { // shorter ones are right by chance
		key.opens[p.Name] = p.at.Add(wait)
	}
	name := labelAt(p.Exchange, "limit_key")
	if p.OfAgent() {
		w.onRequests[name] = true
	}
	full := slices.DeleteFunc(slices.Clone(watchedLimits), func(l watchedLimit) bool {
		mayRefuse := l.endpoint == "" && p.OfAgent() || l.endpoint == p.Name && !w.onRequests[name]
		return problem != "" || !mayRefuse || wait < l.least || wait > l.window || !slices.Contains(l.numbers, key.within(l, p.at))
	})
	if name == nil || len(full) != 1 || len(w.keys) > 1 && full[0].window == time.Minute {
		return // with several keys it may be the limit of the address
	}
	id, member, ofMember := strings.Cut(full[0].names, ".")
	if ofMember {
		name = map[string]any{member: name}
	}
	w.found(p, id, name)
}

// within returns how many calls counted in the limit's last window.
func (k *watchedKey) within(l watchedLimit, now time.Time) (n int) {
	for _, at := range k.calls[l.endpoint] {
		if !at.Before(now.Add(-l.window)) {
			n++
		}
	}
	return n
}
