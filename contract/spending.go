package contract

import (
	"slices"
	"time"
)

const (
	requestsSpent = "request limits: every call that got past 402, on an endpoint that lists 429, unless itself refused with 429"
	operations    = "operation limits: only an operation that goes through; all its limits are checked before any is taken"
	unlimited     = "GET /v1/status, GET and DELETE /v1/byok are never limited and spend nothing"
)

// step is n calls that are answered with status.
type step struct {
	n      int
	e      endpoint
	body   string
	status int
}

// Steps that switch the store of provider keys instead of calling.
var (
	storeOff = step{e: endpoint{name: "store off"}}
	storeOn  = step{e: endpoint{name: "store on"}}
)

// sequence is a case made of steps. The calls are made by one key; then the
// default key makes others, or the same key's next call meets a limit.
type sequence struct {
	id, rule string
	by       func(s *session) *session // nil: the default key
	steps    []step
	then     []step // by the default key
	next     step
	meets    string // the limit that refuses next
}

var (
	createNext = step{1, createAgent, `{}`, 429}
	setNext    = step{1, setBYOK, setBYOK.body, 429}
	nobody     = readAgent.of("agent-of-nobody")
	keyedAgent = llmBody(ownKey)
	created    = []step{{1, createAgent, `{}`, 200}}
)

func unissued(s *session) *session    { return s.with("Authorization", "") }
func unpaid(s *session) *session      { return s.issue("free", false) }
func issued(s *session) *session      { return s.issue("preview", true) }
func undashboard(s *session) *session { return s.issue("preview", false) }

var spendings = []sequence{
	{
		id: "fake/counted/400-404-409", rule: requestsSpent, next: createNext, meets: "key_minute",
		steps: []step{{20, createAgent, `{"x":1}`, 400}, {20, nobody, "", 404}, {20, warmUp, `{"mode":"byok"}`, 409}},
	},
	{
		id: "fake/counted/403", rule: requestsSpent, by: undashboard, next: createNext, meets: "key_minute",
		steps: []step{{60, setBYOK, setBYOK.body, 403}},
	},
	{
		id: "fake/counted/503", rule: requestsSpent, next: createNext, meets: "key_minute",
		steps: []step{storeOff, {60, setBYOK, setBYOK.body, 503}, storeOn},
	},
	{ // the call that the limit on creations refuses spends no request
		id: "fake/counted/operation-429", rule: requestsSpent, next: step{1, createAgent, `{"x":1}`, 429}, meets: "key_minute",
		steps: []step{{10, createAgent, `{}`, 200}, {1, createAgent, `{}`, 429}, {50, nobody, "", 404}},
	},
	{id: "fake/uncounted/401", rule: requestsSpent, by: unissued, steps: []step{{130, createAgent, `{}`, 401}}, then: created},
	{id: "fake/uncounted/402", rule: requestsSpent, by: unpaid, steps: []step{{130, createAgent, `{}`, 402}}, then: created},
	{
		id: "fake/uncounted/404-405-of-routes", rule: requestsSpent, then: created,
		steps: []step{
			{65, endpoint{name: "unknown", method: "GET", path: "/v1/nothing"}, "", 404},
			{65, endpoint{name: "unknown", method: "PATCH", path: "/v1/agents"}, "", 405},
		},
	},
	{
		id: "fake/uncounted/endpoints-without-429", rule: unlimited, next: createNext, meets: "key_minute",
		steps: []step{
			{130, getStatus, "", 200}, {130, getBYOK, "", 200}, {130, clearBYOK, "", 200},
			{1, createAgent, `{}`, 200}, {59, nobody, "", 404},
		},
	},
	{
		id: "fake/operation/refused-creation", rule: operations, next: createNext, meets: "agent_create_ip_minute",
		steps: []step{{10, createAgent, `{"x":1}`, 400}, {10, createAgent, llmBody(`"mode":"byok"`), 400}, {10, createAgent, `{}`, 200}},
	},
	{
		id: "fake/operation/refused-set", rule: operations, next: setNext, meets: "byok_set_key_hour",
		steps: []step{{6, setBYOK, `{}`, 400}, storeOff, {6, setBYOK, setBYOK.body, 503}, storeOn, {5, setBYOK, setBYOK.body, 200}},
	},
	{
		id: "fake/operation/refused-warmup", rule: operations, next: step{1, warmUp, "", 429}, meets: "warmup_key_hour",
		steps: []step{{4, warmUp, `{"mode":"turbo"}`, 400}, {4, warmUp, `{"mode":"byok"}`, 409}, {3, warmUp, "", 200}},
	},
	{
		id: "fake/operation/clear-is-no-set", rule: operations, next: setNext, meets: "byok_set_key_hour",
		steps: []step{{4, setBYOK, setBYOK.body, 200}, {1, clearBYOK, "", 200}, {1, setBYOK, setBYOK.body, 200}, {1, clearBYOK, "", 200}},
	},
	{
		id: "fake/operation/set-refused-takes-no-creation", rule: operations, next: createNext, meets: "agent_create_ip_minute",
		steps: []step{{5, setBYOK, setBYOK.body, 200}, {10, createAgent, keyedAgent, 429}, {10, createAgent, `{}`, 200}},
	},
	{
		id: "fake/operation/creation-refused-takes-no-set", rule: operations, next: setNext, meets: "byok_set_key_hour",
		steps: []step{{10, createAgent, `{}`, 200}, {10, createAgent, keyedAgent, 429}, {5, setBYOK, setBYOK.body, 200}},
	},
}

// spendingCases tell the calls that a limit counts from those it does not.
func spendingCases() []testCase {
	return append(sequences(spendings), everyLimitedCase(), refusedByMinuteCase(), refusedByDayCase(), dayUntouchedCase())
}

// sequences makes a case of each.
func sequences(list []sequence) (cases []testCase) {
	for _, q := range list {
		c := testCase{ID: q.id, Rule: q.rule, Spends: q.spends(), run: q.run}
		if q.by != nil || slices.ContainsFunc(q.steps, func(s step) bool { return s.n == 0 }) {
			c.Needs = []need{needAbilities}
		}
		cases = append(cases, c)
	}
	return cases
}

func (q sequence) run(s *session) {
	by := s
	if q.by != nil {
		by = q.by(s)
	}
	by.take(q.steps)
	s.take(q.then)
	if q.meets != "" {
		by.call(q.next.e, q.next.body).limited(q.meets)
	}
}

func (s *session) take(steps []step) {
	s.Helper()
	for _, step := range steps {
		switch {
		case step.n == 0:
			s.target.Abilities.SetBYOKAvailable(step.e.name == storeOn.e.name)
		case step.n == 1:
			s.call(step.e, step.body).is(step.status)
		default:
			s.repeat(step.n, step.e, step.body, step.status)
		}
	}
}

func (q sequence) spends() (all Spend) {
	for _, step := range slices.Concat(q.steps, q.then, []step{q.next}) {
		for range step.n {
			all = all.plus(cost(step.e, step.body, step.status))
		}
	}
	return all
}

func everyLimitedCase() testCase {
	return testCase{
		ID: "fake/counted/every-limited-endpoint", Rule: requestsSpent,
		Spends: Spend{Requests: 66, Creations: 1, BYOKSets: 1, WarmUps: 1},
		run: func(s *session) {
			id := s.newAgent()
			s.take([]step{
				{1, warmUp, "", 200}, {1, setBYOK, setBYOK.body, 200}, {19, readAgent.of(id), "", 200},
				{19, sendMessage.of(id), sendMessage.body, 200}, {19, enableSMS.of(id), enableSMS.body, 200},
			})
			for _, e := range []endpoint{warmUp, setBYOK, createAgent, readAgent, sendMessage, enableSMS} {
				s.call(e.of(id), e.body).limited("key_minute")
			}
		},
	}
}

func refusedByMinuteCase() testCase {
	return testCase{
		ID: "fake/uncounted/429", Rule: requestsSpent, Needs: []need{needAbilities},
		Spends: Spend{Requests: 240, Creations: 2, Wait: time.Minute},
		run: func(s *session) {
			s.fillRequests(60, 60)
			s.repeat(60, createAgent, `{}`, 429)
			next := s.issue("preview", true).fillRequests(60, 60) // the address has its other half
			s.wait(next().limited("key_minute").retryAfter())
			s.repeat(59, nobody, "", 404)
		},
	}
}

func refusedByDayCase() testCase {
	return testCase{
		ID: "fake/uncounted/429-by-day", Rule: requestsSpent, Spends: Spend{Requests: 2001, Creations: 1, Wait: 20 * time.Minute},
		run: func(s *session) {
			refused := s.bulk()
			next := refused.fillRequests(60, 60)
			refused.repeat(1000, createAgent, `{}`, 429)
			for range 15 {
				s.wait(time.Minute)
				refused.repeat(60, nobody, "", 404)
			}
			s.wait(time.Minute)
			refused.repeat(40, nobody, "", 404)
			next().limited("key_day")
		},
	}
}

func dayUntouchedCase() testCase {
	return testCase{
		ID: "fake/operation/creation-refused-takes-no-day", Rule: operations,
		Spends: Spend{Requests: 61, Creations: 50, Wait: 5 * time.Minute},
		run: func(s *session) {
			for range 5 {
				s.repeat(10, createAgent, `{}`, 200)
				s.repeat(2, createAgent, `{}`, 429) // by the address; the key's day is not touched
				s.wait(time.Minute)
			}
			s.call(createAgent, `{}`).limited("agent_create_key_day")
		},
	}
}
