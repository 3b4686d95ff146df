package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/otherservice"
	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
	"github.com/agent-messaging-service/agentmessaging-go/internal/roundtrip"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

// TestFake runs every case except those that fill the day of the plans Pro and BYOK. Each runs
// on a new fake, without a connection, and its waits move the fake's clock.
func TestFake(t *testing.T) {
	target := Target{Fresh: func(tb testing.TB) Target { return directly(newFake(tb, fakeserver.WithCallLimit(0))) }}
	target.Budget = Spend{Requests: 4000, Creations: 200, BYOKSets: 20, WarmUps: 10}
	Run(t, target)
}

// TestFakeShared runs the cases one after the other on one target, as on a live service, with all
// abilities. TestFake has the decisions of this project.
func TestFakeShared(t *testing.T) {
	target := directly(newFake(t))
	target.Budget, target.Decisions = aDay, false
	target.SecondKey = target.Abilities.IssueKeyOn("preview", true) // no case may revoke it, since later cases need it
	target.Abilities.SetBYOKAvailable(false)                        // as a case that failed may leave it
	Run(t, target)
}

// TestDefaultRunKeepsProgress runs the cases of the default budget, which need nothing but a key.
func TestDefaultRunKeepsProgress(t *testing.T) {
	target, file := directly(newFake(t)), filepath.Join(t.TempDir(), "progress.json")
	Run(t, Target{BaseURL: target.BaseURL, Key: target.Key, HTTPClient: target.HTTPClient, Progress: file})
	done, err := readProgress(file)
	require.NoError(t, err)
	assert.Regexp(t, `^2\d{3}-\d\d-\d\d$`, done["4.1/shape"], "the day on which the case passed")
}

// Flags of TestLive.
var (
	live = flag.Bool("contract.live", false,
		"run the contract against AGENT_MESSAGING_BASE_URL with AGENT_MESSAGING_API_KEY; overwrites the key's BYOK configuration")
	liveBudget   Spend
	liveProgress = flag.String("contract.progress", "", "a file that keeps which cases passed, for a run over several days")
	liveObserved = flag.String("contract.observed", "", "what agentmessaging-fake observe wrote of the service")
)

func init() {
	debug.SetGCPercent(400) // tens of thousands of calls leave only garbage
	flag.Var(&liveBudget, "contract.budget", "such as requests=1000,creations=50,byok=5,warmups=3,wait=1h; 40 requests unless given")
}

// TestLive runs the cases that need nothing but a key, or two, one after the
// other and within the budget.
//
//	go test -v ./contract -run TestLive -contract.live
func TestLive(t *testing.T) {
	if !*live {
		t.Skip("needs -contract.live, AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY")
	}
	target := Target{
		BaseURL: os.Getenv("AGENT_MESSAGING_BASE_URL"), Key: os.Getenv("AGENT_MESSAGING_API_KEY"),
		SecondKey: os.Getenv("AGENT_MESSAGING_SECOND_API_KEY"), Budget: liveBudget, Progress: *liveProgress,
	}
	if *liveObserved != "" {
		var err error
		target.Observed, err = observe.ReadFile(*liveObserved)
		require.NoError(t, err)
	}
	Run(t, target)
}

func directly(fake *fakeserver.Server) Target {
	return targetOf(fake, func(ip string) http.RoundTripper { return fake.Direct(fakeserver.FromIP(ip)) })
}

// targetOf returns the fake with all its abilities, reached by the transport of an
// address.
func targetOf(fake *fakeserver.Server, transport func(ip string) http.RoundTripper) Target {
	client := func(ip string) *http.Client { return &http.Client{Transport: transport(ip)} }
	return Target{
		BaseURL: fake.BaseURL(), Key: fake.Key(), HTTPClient: client("192.0.2.1"), ClientFrom: client, Abilities: fake, FrozenClock: true, Decisions: true,
	}
}

// newFake makes a fake whose clock is still. It does not list its calls when a case fails: the
// case shows the one that matters. A provider key is stored already, since earlier cases or the
// owner of the key may leave one on a target that cases share.
func newFake(tb testing.TB, opts ...fakeserver.Option) *fakeserver.Server {
	fake := fakeserver.New(quiet{tb}, append([]fakeserver.Option{fakeserver.WithClock(still), fakeserver.WithUnknownRoutes()}, opts...)...)
	fake.StoreBYOK(fake.Key(), "sk-earlier", fakeserver.BYOK{Provider: "openai_compat"})
	return fake
}

// still is a clock that only Advance moves.
func still() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

type quiet struct{ testing.TB }

func (quiet) Failed() bool { return false }

func byID(id string) testCase {
	for _, c := range cases() {
		if c.ID == id {
			return c
		}
	}
	panic(fmt.Sprintf("no case %q; a new endpoint needs a row of answered", id))
}

var updateCases = flag.Bool("update-cases", false, "write the cases into "+casesFile)

const casesFile = "testdata/cases.txt"

// TestCases compares the list of cases, and what each spends and needs, with casesFile. So a
// case that was lost, or that spends more than before, shows in a diff.
func TestCases(t *testing.T) {
	ids, list := map[string]bool{}, new(strings.Builder)
	for _, c := range cases() {
		assert.Falsef(t, ids[c.ID], "two cases %s", c.ID)
		ids[c.ID] = true
		assert.Regexp(t, `^(\d+(\.\d+)?|fake)/[^/ ][^ ]*$`, c.ID)
		assert.True(t, c.Rule.Sentence != "" && c.Spends.Requests > 0, "%s has a rule, and makes calls", c.ID)
		for _, st := range c.steps {
			assert.True(t, c.decision() || !strings.Contains(strings.ReplaceAll(st.Body, `"base_url":"h`, ""), `"base_url":"`), "%s: a service may want an address", c.ID)
		}
		fmt.Fprintf(list, "%s: %s", c.ID, c.Spends)
		for i, needs := range []bool{c.agent, c.abilities, c.secondKey, c.clientFrom, c.frozenClock, c.fillsLimit} {
			if needs {
				list.WriteString([]string{", an agent", ", abilities", ", a second key", ", addresses", ", a frozen clock", ", a full limit"}[i])
			}
		}
		fmt.Fprintln(list)
	}
	if *updateCases {
		require.NoError(t, os.WriteFile(casesFile, []byte(list.String()), 0o644))
	}
	want, err := os.ReadFile(casesFile)
	require.NoError(t, err)
	assert.Equal(t, string(want), list.String(), "to accept this: go test -run TestCases ./contract -update-cases")
}

// TestSchedule: which cases of a list run on a target.
func TestSchedule(t *testing.T) {
	one := Spend{Requests: 1}
	costs := func(s Spend) testCase { return testCase{Spends: s} }
	ofAgent, filling, exact := testCase{Spends: one, agent: true}, testCase{Spends: one, fillsLimit: true}, newCase("", "", getStatus.is(200).opensIn(0))
	ofTwoKeys, ofTwoAddresses := newCase("", "", getStatus.is(200).by(another)), newCase("", "", getStatus.is(200).from(otherIP))
	fresh := func(testing.TB) Target { return Target{} }
	for name, tt := range map[string]struct {
		target Target
		cases  []testCase
		runs   []bool
	}{
		"preferred cases get the budget first": {Target{Budget: one}, []testCase{costs(one), {Spends: one, ID: "4.7/read"}}, []bool{false, true}},
		"each part of the budget is a bound":   {Target{Budget: Spend{Requests: 9}}, []testCase{costs(Spend{Creations: 1}), costs(Spend{BYOKSets: 1}), costs(Spend{WarmUps: 1}), costs(Spend{Wait: 1})}, make([]bool, 4)},
		"waits are free with Abilities":        {Target{Budget: one, Abilities: nothing{}}, []testCase{costs(Spend{Requests: 1, Wait: day})}, []bool{true}},
		"one agent for all":                    {Target{Budget: Spend{Requests: 3, Creations: 1}}, []testCase{ofAgent, ofAgent}, []bool{true, true}},
		"an agent is a creation":               {Target{Budget: Spend{Requests: 3}}, []testCase{ofAgent}, []bool{false}},
		"what the target lacks":                {Target{}, []testCase{newCase("", "", getStatus.is(200).by(third)), ofTwoKeys, ofTwoAddresses, newCase("fake/x", "", getStatus.is(200)), exact}, make([]bool, 5)},
		"a second key":                         {Target{SecondKey: "key-2"}, []testCase{ofTwoKeys}, []bool{true}},
		"a clock that stays":                   {Target{FrozenClock: true}, []testCase{exact}, []bool{true}},
		"the default budget":                   {Target{}, []testCase{costs(Spend{Requests: 40, Creations: 5, BYOKSets: 1, WarmUps: 1}), costs(Spend{Requests: 41})}, []bool{true, false}},
		"each fresh one has a budget":          {Target{Fresh: fresh, Budget: one}, []testCase{costs(one), costs(one), costs(Spend{Requests: 2})}, []bool{true, true, false}},
		"fresh ones do not wait":               {Target{Fresh: fresh}, []testCase{costs(Spend{Requests: 1e9}), costs(Spend{Wait: 1})}, []bool{true, false}},
		"limits that nobody observed":          {Target{}, []testCase{filling}, []bool{false}},
		"limits by a clock":                    {Target{Observed: observed("windows", `"aligned"`, 60)}, []testCase{filling}, []bool{false}},
		"limits of a larger plan":              {Target{Observed: observed("windows", `"fixed"`, 300)}, []testCase{filling, costs(one)}, []bool{false, true}},
		"limits of a preview key":              {Target{Observed: observed("windows", `"fixed"`, 60)}, []testCase{filling}, []bool{true}},
		"what is scarce gets the budget last": {Target{Budget: Spend{Requests: 50, Creations: 1, BYOKSets: 1, WarmUps: 1, Wait: 50 * time.Second}},
			[]testCase{costs(Spend{Requests: 31, Creations: 1}), costs(Spend{Requests: 1, BYOKSets: 1}), costs(Spend{Requests: 1, WarmUps: 1}), costs(Spend{Requests: 1, Wait: 50 * time.Second}), costs(Spend{Requests: 50})},
			[]bool{false, false, false, false, true}},
		"refused creations count": {Target{Budget: Spend{Requests: 9, Creations: 1}, Observed: observed("refused_operations_spend", "true", 60)},
			[]testCase{newCase("", "", badCreation.is(400), createAgent.is(200)), newCase("", "", badCreation.is(400))}, []bool{false, true}},
	} {
		planned, _ := newSchedule(tt.cases, tt.target.forCase(t), nil)
		for i, c := range planned {
			assert.Equal(t, tt.runs[i], c.leftOut == "", "%s: case %d: %s", name, i, c.leftOut)
		}
		assert.Equal(t, slices.Contains(tt.runs, true), planned.runsAny(nil), "%s: %s", name, planned)
	}
}

func observed(id, answer string, limit int) *observe.Observation {
	return &observe.Observation{Decisions: map[string]observe.Finding{id: {Answer: []byte(answer)}}, Limits: map[string]int{"key_minute": limit}}
}

// Package rawcall lists the endpoints a second time, from the interface document.
func TestEndpointsTwice(t *testing.T) {
	for i, e := range spec.Endpoints {
		twin := rawcall.Endpoints[i]
		assert.Equal(t, []any{e.Method, e.Path, e.Errors}, []any{twin.Method, twin.Path, twin.Errors})
	}
}

// TestProgress: a case that has passed does not run again on the next day.
func TestProgress(t *testing.T) {
	done := progress{"4.8/reply": "2026-01-31"}
	planned, _ := newSchedule([]testCase{{ID: "4.8/reply"}, {ID: "4.8/other"}}, Target{}, done)
	for _, c := range planned {
		assert.Equal(t, c.ID == "4.8/reply", strings.Contains(c.leftOut, "it passed on 2026-01-31"), c.ID)
	}
	assert.True(t, planned[:1].runsAny(done), "nothing is left to run")
	file := filepath.Join(t.TempDir(), "progress.json")
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err := readProgress(file)
	assert.ErrorContains(t, err, "remove the file to start with every case")
	_, err = readProgress(filepath.Join(file, "no-folder"))
	assert.ErrorContains(t, err, "must be in a folder that can be written to")
}

// TestUnusable: a target that gives no answer, or refuses the key, breaks no rule.
func TestUnusable(t *testing.T) {
	ofStatus, ofAgent := newCase("", "", getStatus.is(200)), newCase("", "", readAgent.is(200))
	const invalid = `invalid port ":[key]" after host`
	noProxy := &url.Error{Op: "parse", URL: "http://user:canary@proxy:x", Err: errors.New(`invalid port ":key-canary" after host`)}
	silent := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, noProxy }}
	for _, tt := range []struct {
		c         testCase
		transport http.RoundTripper
		calls     int
		first     string
		want      string
	}{
		{ofStatus, roundtrip.Answering(502, "<html>"), 3, "want status 200; interface 4.1 lists no 502", "whether the service is up: 502 without JSON"},
		{ofStatus, silent, 3, "got no answer: " + invalid + "\n", "check Target.BaseURL and whether the service is up: " + invalid},
		{ofAgent, silent, 2, "got no answer: " + invalid + "\n", "an earlier case could not create the agent"}, // which is not tried again
		{ofStatus, roundtrip.Answering(401, `{"error":"unauthorized"}`), 1, "", "refuses Target.Key: 401"},
		{newCase("", "", setBYOK.is(200)), roundtrip.Answering(503, `{"error":"byok_off"}`), 1, "", "BYOK is not available on the target"},
	} {
		all, target := newShared(0), Target{BaseURL: "http://service.example", Key: "key-canary", HTTPClient: &http.Client{Transport: tt.transport}}
		for range tt.calls - 1 {
			assert.ErrorContains(t, tt.c.runOn(t.Context(), target, all), tt.first, tt.want)
		}
		assert.ErrorContains(t, tt.c.runOn(t.Context(), target, all), tt.want, tt.want)
		assert.ErrorAs(t, tt.c.runOn(t.Context(), target, all), new(skipped), tt.want)
	}
}

// TestAgentThatBreaksARule: after a case has failed for the creation of an agent, the others
// are skipped, and do not try to create their shared agent again: each try costs a creation.
func TestAgentThatBreaksARule(t *testing.T) {
	target, all := wrong(t, calls(createAgent, set("agent_id", "agent_id", 7))), newShared(0)
	assert.True(t, breaks(byID("4.6/empty-object").runOn(t.Context(), target, all)))
	for _, want := range []string{"not checked: case 4.6/empty-object shows a broken rule", "an earlier case could not create the agent"} {
		err := byID("4.7/read").runOn(t.Context(), target, all)
		assert.ErrorContains(t, err, want)
		assert.False(t, breaks(err), want)
	}
}

// TestLiveRefusals: after a 429 in the middle of a case the case waits, if the budget allows,
// and is skipped otherwise. It fails only where no other call can have used the limit.
func TestLiveRefusals(t *testing.T) {
	once, fills, unlimited := newCase("", "", warmUp.is(200)), newCase("", "", warmUp.is(200), warmUp.is(429)), newCase("", "", getStatus.is(200))
	const passes, skips, fails = "passes", "is skipped", "fails"
	for rule, tt := range map[string]struct {
		c         testCase
		refusals  int
		budget    time.Duration // of waits
		can       Abilities
		wantCalls int
		want      string
	}{
		"waits, if the budget allows":                 {c: once, refusals: 1, budget: time.Second, wantCalls: 2, want: passes},
		"until the budget is used up":                 {c: once, refusals: 2, budget: time.Second, wantCalls: 2, want: skips},
		"three times at most":                         {c: once, refusals: 9, budget: time.Minute, wantCalls: 4, want: skips},
		"not without a budget":                        {c: once, refusals: 1, wantCalls: 1, want: skips},
		"with abilities a wait costs nothing":         {c: once, refusals: 1, can: nothing{}, wantCalls: 2, want: passes},
		"the creation of the shared agent is refused": {c: newCase("", "", readAgent.is(200)), refusals: 1, wantCalls: 1, want: skips},
		"another call may have filled the limit":      {c: fills, refusals: 1, budget: time.Hour, wantCalls: 1, want: skips},
		"with abilities the limit was unused":         {c: fills, refusals: 1, can: nothing{}, wantCalls: 1, want: fails},
		"the interface lists no 429 for the endpoint": {c: unlimited, refusals: 1, budget: time.Hour, wantCalls: 1, want: fails},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			client := &http.Client{Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
				if calls++; calls <= tt.refusals {
					return roundtrip.Answering(429, `{"error":"rate_limited","limit_key":"x","trace_id":"t"}`)(req)
				}
				return roundtrip.Answering(200, `{"ok":true,"warmed":true,"mode":"hosted","trace_id":"t"}`)(req)
			})}
			all := newShared(tt.budget)
			err := tt.c.runOn(t.Context(), Target{BaseURL: "http://service.example", Key: "key-1", HTTPClient: client, Abilities: tt.can}, all)
			assert.True(t, !tt.c.fillsLimit || tt.can != nil || all.wait == tt.budget-time.Minute, "%s: a minute without calls comes first", rule)
			assert.False(t, all.agentFailed, "%s: the next case may create the agent", rule)
			assert.Equal(t, tt.want == fails, breaks(err), "%s: %v", rule, err)
			assert.Equal(t, tt.want == skips, errors.As(err, new(skipped)), "%s: %v", rule, err)
			assert.Equal(t, tt.wantCalls, calls, "%s: calls", rule)
		})
	}
}

// TestWithoutPlanCaps: if the caps of interface 8.2 are not enabled, only a target with
// Decisions fails.
func TestWithoutPlanCaps(t *testing.T) {
	target := directly(newFake(t, fakeserver.WithLimit(fakeserver.LimitKeyMinute, 60)))
	for _, id := range []string{"8.2/pro/key_minute", "8.2/byok/ip_minute", "8.2/pro/key_day"} {
		target.Decisions = true
		assert.True(t, breaks(byID(id).runOn(t.Context(), target, newShared(0))), id)
		target.Decisions = false
		assert.ErrorContains(t, byID(id).runOn(t.Context(), target, newShared(0)), "the caps of 8.2 are not enabled", id)
	}
}

// TestScheduleOfDefaultBudget: a live run with the default budget runs the first of the
// preferred cases, up to the last one of interface 8.4, and no decision.
func TestScheduleOfDefaultBudget(t *testing.T) {
	planned, _ := newSchedule(cases(), Target{}, nil)
	for _, c := range planned {
		assert.False(t, c.leftOut == "" && c.decision(), "%s is a decision, and runs", c.ID)
		assert.True(t, c.leftOut == "" || c.rank > slices.Index(preferred, "8.4/all/max"), "%s is left out: %s", c.ID, c.leftOut)
	}
	for i, pattern := range preferred {
		assert.True(t, slices.ContainsFunc(planned, func(c scheduled) bool { return c.rank == i }), "no case is %s", pattern)
	}
}

// TestScheduleOfLiveDay: the requests of one day and two keys run the cases that notice most
// wrong services (TestTampering). The cases about the others need abilities, or more provider
// keys, creations or requests than a day allows.
func TestScheduleOfLiveDay(t *testing.T) {
	var missed []string
	planned, _ := newSchedule(cases(), Target{SecondKey: "key-2", Budget: aDay, Observed: observed("windows", `"fixed"`, 60)}, nil)
	for _, tt := range wrongServices() {
		if slices.ContainsFunc(planned, func(c scheduled) bool { return c.ID == tt.fails && c.leftOut != "" }) {
			missed = append(missed, tt.name)
		}
	}
	assert.ElementsMatch(t, []string{
		"429 that stores the key", "429 creation that stores the key", "403 that stores the key", "503 that stores the key",
		"a minute that opens three times", "a day that messages escape", "a sixth DELETE refused",
	}, missed, "wrong services that no case of the day notices")
}

// TestFailurePrintsRule: a failure begins with the broken rule, and names the rule that could
// not be checked. A second case that meets the same failure, with the same endpoint and status,
// is skipped and names the first.
func TestFailurePrintsRule(t *testing.T) {
	shown, read := new(sync.Map), 0
	for _, tt := range []struct {
		id     string
		tamper func(*reply)
		broken string
		says   string
	}{
		{"5/credential-revoked/enable-sms", set("version", "region", "eu"), "(interface 4.1): Response: ok (boolean), service", ""},
		{"7/body-invalid/send-message/array", calls(createAgent, on(200, func(r *reply) { r.status = 201 })), "(interface 4): Every success status is 200.", ""},
		{"4.6/byok-set-earlier", calls(setBYOK, badRequest), "(interface 7): 400 | Bad request", ""},
		{"4.6/byok-set-earlier", calls(setBYOK, func(r *reply) { r.refuse(500, strings.Repeat("x", 10_000)) }), "(interface 7): Which endpoints can return which status", ""},
		{"fake/operation/refused-warmup", on(409, func(r *reply) { r.status = 200 }), "(interface 7): 409 | Warm-up in byok mode", ""},
		{"4.8/reply", func(r *reply) { r.header.Set("Content-Type", "text/html") }, "(interface 1): All request", ""},
		{"8.1/warmup_key_hour", retryAfter(func(n int) string { return strconv.Itoa(n - 2) }), "(interface 7): 429 | Rate limited; carries",
			"want status 200 after a wait of exactly 59m58s, which Retry-After"},
		{"fake/uncounted/429", on(404, func(r *reply) {
			if read++; read%2 == 0 { // not the first call after the wait
				r.refuse(429, "rate_limited")
			}
		}), "(our decision, the interface is silent): request limits", "want status 404 (call 2 of 59)\nGET"},
		{"8.1/agent_create_ip_minute", retryAfter(func(int) string { return "7.5" }), "(RFC 9110, 10.2.3): Retry-After is a date or",
			`answered 429, Retry-After 7.5, error "rate_limited", limit_key "agent_create_ip_minute", trace_id "trace_000011"`},
		{"8.1/issued-key/ip_minute", on(429, func(r *reply) { r.status, r.body = 200, nil }), "(interface 8.1): Per IP (backstop) | 120 requests/minute",
			"want status 429\nPOST /v1/agents by key \"three\" {}\nanswered 200, Retry-After 60 null\ncalls before it: 120, waited: 0s"},
		{"8.4/all/max", on(200, func(r *reply) { r.refuse(400, r.key()) }), "(interface 8.4): system_prompt at most 2000 characters; customer_ref",
			`answered 400, error "[key]"`},
		{"7/status-without-429", func(r *reply) { r.refuse(429, "") }, "(interface 7): Which endpoints", "(call 1 of 65); interface 4.1 lists no 429"},
		{"4.1/shape", set("version", "ok", []any{nil, "fake_000001"}), "(interface 4.1): Response", `member "ok": got [null,"[redacted]"], want bool`}, // a part of the key
		{"fake/sms-created/sandbox", calls(readAgent, func(r *reply) { delete(r.body, "sms") }), "(our decision, the interface is silent): SMS at creation",
			`member "sms.status": it is missing, want "active"`},
		{"4.2/byok-not-configured", on(409, func(r *reply) { delete(r.body, "error") }), "(interface 2.1): error | string | yes", ""},
		{"8.1/warmup_key_hour", on(429, func(r *reply) { delete(r.body, "limit_key") }), "(interface 7): Rate-limited body", ""},
	} {
		c := byID(tt.id)
		check := func() error { return c.runOn(t.Context(), wrong(t, tt.tamper), &shared{reported: shown}) }
		first, second, own := check(), check(), c.Rule.String()
		require.ErrorContains(t, first, "broken rule "+tt.broken, tt.id)
		assert.ErrorContains(t, first, tt.says, tt.id)
		assert.True(t, breaks(first) && strings.HasPrefix(first.Error(), "broken rule ("), first)
		assert.Less(t, len(first.Error()), 800, tt.id)
		if strings.HasPrefix(own, tt.broken) {
			assert.Equal(t, first, second, tt.id)
			continue
		}
		assert.True(t, strings.HasSuffix(first.Error(), "\nbefore this rule could be checked "+own), first)
		assert.False(t, breaks(second), tt.id)
		assert.ErrorContains(t, second, "not checked: case "+tt.id+" shows a broken rule "+tt.broken, tt.id)
	}
}

// breaks reports whether a case ended because a rule is broken.
func breaks(err error) bool { return err != nil && !errors.As(err, new(skipped)) }

// nothing has abilities that do nothing.
type nothing struct{ Abilities }

func (nothing) SetBYOKAvailable(bool) {}
func (nothing) Advance(time.Duration) {}

// TestEachAnswerIsHeld: each case notices a service that refuses what it should accept, or
// accepts what it should refuse, in any one of the case's last three calls. To save time, cases
// of more than 70 requests and cases with a body of 1 MiB are left out.
func TestEachAnswerIsHeld(t *testing.T) {
	for _, c := range cases() {
		if c.Spends.Requests > 70 || strings.HasSuffix(c.ID, "1-MiB") {
			continue
		}
		for which := c.Spends.Requests; which > max(0, c.Spends.Requests-3); which-- {
			calls := 0
			err := tampered(t, c, true, func(r *reply) {
				if calls++; calls == which && r.status == 200 {
					r.refuse(405, "method_not_allowed")
				} else if calls == which {
					r.status, r.body = 200, map[string]any{"trace_id": "t"}
				}
			})
			assert.True(t, breaks(err), "%s passes though answer %d was changed", c.ID, which)
		}
	}
}

// TestTampering: a service that breaks a rule fails that rule's case. One that breaks only a
// decision of this project fails only the cases of decisions. All decisions are tried at
// once, in both orders, because the last change of a member is the one that shows.
func TestTampering(t *testing.T) {
	decisions := slices.DeleteFunc(slices.Clone(tamperings), func(tt tampering) bool { return !tt.decision() })
	for _, tt := range slices.Concat(wrongServices(), decisions) {
		err := tampered(t, byID(tt.fails), tt.decision(), tt.tamper)
		assert.True(t, breaks(err), "%s passes with %s", tt.fails, tt.name)
	}
	backwards := slices.Clone(decisions)
	slices.Reverse(backwards)
	for _, together := range [][]tampering{decisions, backwards} {
		for _, c := range cases() {
			if c.Spends.Requests > 66 || strings.HasSuffix(c.ID, "1-MiB") || c.decision() {
				continue // more than a minute's calls, or a mebibyte
			}
			err := tampered(t, c, false, func(r *reply) {
				for _, tt := range together {
					tt.tamper(r)
				}
			})
			assert.False(t, breaks(err), "%s refuses what breaks no rule: %v", c.ID, err)
		}
	}
}

// aDay is the budget of a live run for one day.
var aDay = Spend{Requests: 1000, Creations: 50, BYOKSets: 5, WarmUps: 3, Wait: 2 * time.Hour}

// TestOtherServices: a service that follows the interface document fails no case, whatever
// it decides and however its limits count.
func TestOtherServices(t *testing.T) {
	for seed := range uint64(2) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 11))
			service := otherservice.New(seed, "sk-one", "sk-two")
			maps.Copy(service.Decides, map[string]any{"retry_after": true, "length_unit": "code points", "metadata_cap": 1000}) // other answers break a rule
			client := &http.Client{Transport: service.After(random, 40*time.Millisecond)}
			o, err := observe.Run(t.Context(), observe.Target{BaseURL: "http://other.example", Key: "sk-one", HTTPClient: client}, observe.Spend{})
			require.NoError(t, err, "seed %d", seed)
			time.Sleep(24 * time.Hour)
			target := Target{BaseURL: "http://other.example", Key: "sk-one", SecondKey: "sk-two", HTTPClient: client, Budget: aDay, Observed: o}
			planned, left := newSchedule(cases(), target, nil)
			all, ran := newShared(left.Wait), 0
			for _, c := range planned {
				if c.leftOut == "" {
					ran++
					err := c.runOn(t.Context(), target, all)
					assert.False(t, breaks(err), "seed %d: %s: %v", seed, c.ID, err)
				}
			}
			assert.Greater(t, ran, 150, "cases that run")
		})
	}
}

// TestOtherWindows: the interface does not say how a limit counts, so a service that
// counts in another way than the fake fails no case that fills one.
func TestOtherWindows(t *testing.T) {
	afternoon := func() time.Time { return still().Add(15*time.Hour + 34*time.Minute + 56*time.Second) }
	for _, windows := range []string{"sliding", "aligned", "weighted", "token bucket"} {
		for _, c := range cases() {
			if !c.fillsLimit || c.decision() || c.Spends.Requests > 130 && c.ID != "8.1/key_day" {
				continue // more calls than a minute of the preview allows, but for one day
			}
			target := directly(newFake(t, fakeserver.WithClock(afternoon), fakeserver.WithDecision("windows", windows)))
			target.Decisions = false
			assert.NoError(t, c.runOn(t.Context(), target, newShared(0)), "%s: %s", windows, c.ID)
		}
	}
	for calls, want := range map[int]string{10_010: "10 calls too many passed, and the limit opens in 7h", 1e6: "want status 429"} {
		target := directly(newFake(t, fakeserver.WithClock(afternoon), fakeserver.WithDecision("windows", "aligned"), fakeserver.WithLimit(fakeserver.LimitKeyDay, calls)))
		target.Decisions = false
		assert.ErrorContains(t, byID("8.2/pro/key_day").runOn(t.Context(), target, newShared(0)), want, "a day of %d calls", calls)
	}
}

// tampering changes otherwise right answers, or what a call does.
type tampering struct {
	name string
	// fails is the case that notices the tampering: about a rule of the interface, or about a
	// decision of this project ("fake/...").
	fails  string
	tamper func(r *reply)
}

func (tt tampering) decision() bool { return strings.HasPrefix(tt.fails, "fake/") }

var tamperings = []tampering{
	{"rate_limited respelt", "7/endpoints-without-429", set("limit_key", "error", "rate-limited")},
	{"a number at creation", "2.3/every-member", calls(createAgent, set("agent_id", "sms", map[string]any{"status": "active", "phone_number": "+1"}))},
	{"warnings as text", "4.8/reply", set("reply_text", "warnings", "none")},
	{"a warning that is no text", "4.8/reply", set("reply_text", "warnings", []any{1})},
	{"a text in Latin-1", "4.8/reply", set("reply_text", "reply_text", json.RawMessage("\"caf\xe9\""))},
	{"a charset of Latin-1", "4.8/reply", func(r *reply) { r.header.Set("Content-Type", "application/json; charset=iso-8859-1") }},
	{"member more in byok", "4.4/set-read-clear", set("fingerprint", "label", "x")},
	{"a redirect to the answer", "4.1/shape", calls(getStatus, func(r *reply) {
		if r.req.URL.RawQuery == "" {
			r.header.Set("Location", "?again")
			r.status = 307
		}
	})},
	{"service key echoed in a name", "2.3/every-member", func(r *reply) { r.header.Set("X-"+r.key(), "") }},
	{"service key echoed with an escape", "2.3/every-member", func(r *reply) { r.body["x"] = json.RawMessage(`["\u0061` + r.key()[1:] + `"]`) }},
	{"provider key echoed", "4.4/set-read-clear", func(r *reply) { r.header.Set("X-Provider-Key", r.providerKey()) }},
	{"fingerprint is the last five", "2.4/fingerprint", set("fingerprint", "fingerprint", "sk-...~Jw4")},
	{"fingerprint in hexadecimal", "2.4/fingerprint", set("fingerprint", "fingerprint", "776e7e4a7734")},
	{"fingerprint in base64", "2.4/fingerprint", set("fingerprint", "fingerprint", "c2stY29udHJhY3R+N2YzfmE5Y34yZTR+bm90fm93bn5KdzQ=")},
	{"fingerprint is a plain SHA-256", "2.4/fingerprint", set("fingerprint", "fingerprint", "sha256:ea8098a234438a3d")},
	{"fingerprint is such a hash in base64", "2.4/fingerprint", set("fingerprint", "fingerprint", "6oCYojRDij33")},
	{"a minute of 72 seconds", "8.1/key_minute", retryAfter(func(n int) string { return strconv.Itoa(n * 12 / 10) })},
	{"Retry-After of 0", "7/endpoints-without-429", retryAfter(func(int) string { return "0" })},
	{"Retry-After twice", "7/endpoints-without-429", func(r *reply) { r.header["Retry-After"] = append(r.header["Retry-After"], r.header["Retry-After"]...) }},
	{"429 that stores the key", "7/429-changes-no-byok", on(429, calls(setBYOK, store))},
	{"400 that stores the key", "7/400-changes-no-byok", on(400, calls(setBYOK, store))},
	{"403 that stores the key", "5/not-dashboard/set-byok", on(403, calls(setBYOK, store))},
	{"503 that stores the key", "4.4/unavailable", on(503, calls(setBYOK, store))},
	{"429 creation that stores the key", "7/429-creation-stores-no-byok", on(429, calls(createAgent, store))},
	{"400 that enables SMS", "7/400-changes-no-sms", on(400, calls(enableSMS, enable))},
	{"a bound in UTF-16 units", "8.4/text/outside-bmp/max", having(strings.Repeat("😀", 2001), badRequest)},
	{"a bound on the label of PUT", "4.4/accepted/longer-than-in-llm", calls(setBYOK, having(`"label":"`+strings.Repeat("x", 61), badRequest))},
	{"a bound on user_ref", "2.5/accepted/user_ref", having(strings.Repeat("x", 201), badRequest)},
	{"one agent for a customer_ref", "1/ids-differ", calls(createAgent, having("customer_ref", set("agent_id", "agent_id", "agent_000001")))},
	{"two replies for an agent", "4.7/created-at-stays", after(2, fakeserver.EndpointSendMessage, set("reply_text", "reply_text", nil))},
	{"SMS of another agent enabled", "4.9/one-agent", on(200, calls(enableSMS, enable))},
	{"no messages once SMS is enabled", "4.7/created-at-stays", calls(sendMessage, after(0, fakeserver.EndpointEnableSMS, func(r *reply) { r.refuse(404, "not_found") }))},
	{"created_at moves", "4.7/created-at-stays", change("created_at", func(in map[string]any, name string) { in[name] = in["updated_at"] })},
	{"400 creation that stores the key", "7/400-creation-stores-no-byok", on(400, calls(createAgent, store))},
	{"SMS enabling does not count", "8.1/key_minute-counts/enable-sms", on(429, after(58, fakeserver.EndpointEnableSMS, passes))},
	{"a minute that opens three times", "8.1/key_minute-in-a-window", on(429, passes)},
	{"a minute that PUT escapes", "8.1/key_minute-counts/enable-sms", on(429, calls(setBYOK, passes))},
	{"a day that messages escape", "8.1/key_day", on(429, calls(sendMessage, passes))},
	{"a limit that creations with SMS escape", "8.1/agent_create_ip_minute", on(429, having(`"sms"`, passes))},
	{"a sixth DELETE refused", "7/429-changes-no-byok", calls(clearBYOK, after(5, fakeserver.EndpointClearBYOK, badRequest))},

	{"429 that enables SMS", "fake/429-changes-no-sms", on(429, calls(enableSMS, enable))},
	{"ok is false", "fake/clear-with-none-set", set("ok", "ok", false)},
	{"updated_at never moves", "fake/updated-at", change("created_at", func(in map[string]any, name string) { in["updated_at"] = in[name] })},
	{"updated before it was created", "fake/read-after-creation", set("created_at", "updated_at", "2001-01-01T00:00:00Z")},
	{"times with an offset", "fake/read-after-creation", set("created_at", "created_at", "2026-01-01T01:00:00+01:00")},
	{"member more in an answer", "fake/ids-in-order", set("agent_id", "region", "eu")},
	{"two trace_ids in turn", "fake/reply-fixed", func(r *reply) { r.body["trace_id"] = fmt.Sprintf("trace_%06d", 1+(r.fake.CallCount()+1)%2) }},
	{"another error", "fake/order/409-before-operation-429", on(409, set("error", "error", "wrong"))},
	{"limit_key in capitals", "fake/counted/400-404-409", change("limit_key", func(in map[string]any, name string) { in[name] = strings.ToUpper(fmt.Sprint(in[name])) })},
	{"no Allow", "fake/method/status/POST", func(r *reply) { r.header.Del("Allow") }},
	{"one reply for all", "fake/reply-fixed", set("reply_text", "reply_text", "Hello")},
	{"another reply each time", "fake/reply-fixed", change("reply_text", func(in map[string]any, name string) { in[name] = in["trace_id"] })},
	{"one fingerprint for all", "fake/fingerprint-tells-keys-apart", set("fingerprint", "fingerprint", "fp_8c1d")},
	{"a number in every channel", "fake/sms-absent", set("created_at", "sms", map[string]any{"status": "disabled", "phone_number": "+1"})},
	{"Retry-After with a reserve", "fake/window-exact/key_minute", retryAfter(func(n int) string { return strconv.Itoa(n + 5) })},
}

// answered maps each endpoint to a case in which it answers with success.
var answered = map[string]string{
	"status": "4.1/shape", "warmup": "4.2/body-absent", "get-byok": "4.4/set-read-clear", "set-byok": "4.4/set-read-clear", "clear-byok": "4.4/set-read-clear",
	"create-agent": "4.6/empty-object", "read-agent": "4.7/read", "send-message": "4.8/reply", "enable-sms": "4.9/mode/sandbox",
}

// wrongServices returns services that break one rule of the interface each: those of the table
// and, for each member of an answer, a service that leaves the member out and one that gives it
// another value.
func wrongServices() []tampering {
	all := slices.DeleteFunc(slices.Clone(tamperings), tampering.decision)
	for _, e := range endpoints {
		for sh := range strings.SplitSeq(string(e.Reply), ", ") {
			words := strings.Fields(sh)
			if slices.Contains(words, "optional") || strings.HasPrefix(words[0], "sms.") {
				continue
			}
			name := words[0][strings.Index(words[0], ".")+1:]
			all = append(all,
				tampering{e.Name + " without " + words[0], answered[e.Name], calls(e, change(name, func(in map[string]any, name string) { delete(in, name) }))},
				tampering{e.Name + " with another " + words[0], answered[e.Name], calls(e, change(name, func(in map[string]any, name string) { in[name] = []any{"?"} }))})
		}
	}
	return all
}

// where tampers only with answers for which ok returns true.
func where(ok func(*reply) bool, tamper func(*reply)) func(*reply) {
	return func(r *reply) {
		if ok(r) {
			tamper(r)
		}
	}
}

// calls tampers with the calls to one endpoint.
func calls(e step, tamper func(*reply)) func(*reply) {
	return where(func(r *reply) bool {
		called, _, _ := rawcall.Find(r.req.Method, r.req.URL.EscapedPath())
		return called.Name == e.Name
	}, tamper)
}

// on tampers with the answers of one status.
func on(status int, tamper func(*reply)) func(*reply) {
	return where(func(r *reply) bool { return r.status == status }, tamper)
}

// having tampers with the calls whose body has the text.
func having(text string, tamper func(*reply)) func(*reply) {
	return where(func(r *reply) bool { return strings.Contains(r.sent, text) }, tamper)
}

// after tampers once the endpoint has been called more than n times.
func after(n int, endpoint fakeserver.Endpoint, tamper func(*reply)) func(*reply) {
	return where(func(r *reply) bool { return r.fake.CallCount(fakeserver.ByEndpoint(endpoint)) > n }, tamper)
}

// change changes one member, of the answer or of an object in it.
func change(name string, to func(in map[string]any, name string)) func(*reply) {
	return func(r *reply) {
		for _, v := range append(slices.Collect(maps.Values(r.body)), r.body) {
			in, _ := v.(map[string]any)
			if _, ok := in[name]; ok {
				to(in, name)
			}
		}
	}
}

// set sets the member name in each object that has the member where.
func set(where, name string, value any) func(*reply) {
	return change(where, func(in map[string]any, _ string) { in[name] = value })
}

func badRequest(r *reply) { r.refuse(400, "bad_request") }

// retryAfter changes the Retry-After of an answer that has one.
func retryAfter(other func(seconds int) string) func(*reply) {
	return func(r *reply) {
		if n, err := strconv.Atoi(r.header.Get("Retry-After")); err == nil {
			r.header.Set("Retry-After", other(n))
		}
	}
}

// passes sends a refused call again when all limits are open.
func passes(r *reply) {
	r.fake.Advance(day)
	r.send()
}

// store stores the provider key of a refused call.
func store(r *reply) {
	if key := r.providerKey(); key != "" {
		r.fake.StoreBYOK(r.key(), key, fakeserver.BYOK{Provider: "anthropic"})
	}
}

// enable enables SMS for the first agent.
func enable(r *reply) { r.fake.SetSMS("agent_000001", "pending", "") }

// reply is an answer of the fake on its way to a case, and the call that it
// answers.
type reply struct {
	fake   *fakeserver.Server
	ip     string // the address that calls
	req    *http.Request
	sent   string
	status int
	header http.Header
	body   map[string]any
}

// proxy forwards calls from an address to a fake and changes each answer.
func proxy(fake *fakeserver.Server, ip string, tamper func(*reply)) http.RoundTripper {
	return roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		r := &reply{fake: fake, ip: ip, req: req}
		if req.Body != nil {
			sent, _ := io.ReadAll(req.Body)
			r.sent = string(sent)
		}
		r.send()
		tamper(r)
		body, err := json.Marshal(r.body)
		return &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewReader(body)), Request: req}, err
	})
}

// send makes the call and takes its answer.
func (r *reply) send() {
	req, answer := httptest.NewRequest(r.req.Method, r.req.URL.RequestURI(), strings.NewReader(r.sent)), httptest.NewRecorder()
	req.Header, req.RemoteAddr = r.req.Header, r.ip+":1"
	r.fake.ServeHTTP(answer, req)
	r.status, r.header, r.body = answer.Code, answer.Header(), nil
	if err := json.Unmarshal(answer.Body.Bytes(), &r.body); err != nil {
		panic(err)
	}
}

// refuse replaces the answer by an error of the proxy.
func (r *reply) refuse(status int, code string) {
	r.status, r.body = status, map[string]any{"error": code, "trace_id": "trace_of_the_proxy"}
}

// providerKey returns the provider key that was sent, or "".
func (r *reply) providerKey() string {
	_, key, _ := strings.Cut(r.sent, `"api_key":"`)
	key, _, _ = strings.Cut(key, `"`)
	return key
}

func (r *reply) key() string { return strings.TrimPrefix(r.req.Header.Get("Authorization"), "Bearer ") }

// wrong returns a fake behind a proxy that tampers with each answer. Its clock moves only
// during waits.
func wrong(t *testing.T, tamper func(*reply)) Target {
	fake := newFake(t)
	return targetOf(fake, func(ip string) http.RoundTripper { return proxy(fake, ip, tamper) })
}

// tampered runs the case on a fake behind a proxy that tampers.
func tampered(t *testing.T, c testCase, decisions bool, tamper func(*reply)) error {
	target := wrong(t, tamper)
	target.Decisions = decisions
	return c.runOn(t.Context(), target, newShared(0))
}
