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

// spendingCases tell the calls that a limit counts from those it does not.
func spendingCases() []Case {
	return slices.Concat(countedCases(), uncountedCases(), operationCases())
}

// countedCases: a refused call costs a request too.
func countedCases() []Case {
	return []Case{
		{
			ID: "fake/counted/400-404-409", Rule: requestsSpent, Spends: Spend{Requests: 61},
			run: func(s *session) {
				s.repeat(20, createAgent, `{"x":1}`, 400)
				s.repeat(20, readAgent.of("agent-of-nobody"), "", 404)
				s.repeat(20, warmUp, `{"mode":"byok"}`, 409)
				s.call(createAgent, `{}`).limited("key_minute")
			},
		},
		{
			ID: "fake/counted/403", Rule: requestsSpent, Needs: []Need{NeedIssueKey}, Spends: Spend{Requests: 61},
			run: func(s *session) {
				other := s.issue("preview", false)
				other.repeat(60, setBYOK, setBYOK.body, 403)
				other.call(createAgent, `{}`).limited("key_minute")
			},
		},
		{
			ID: "fake/counted/503", Rule: requestsSpent, Needs: []Need{NeedBYOKSwitch}, Spends: Spend{Requests: 61},
			run: func(s *session) {
				s.target.Abilities.SetBYOKAvailable(false)
				s.repeat(60, setBYOK, setBYOK.body, 503)
				s.call(createAgent, `{}`).limited("key_minute")
			},
		},
		{
			ID: "fake/counted/operation-429", Rule: requestsSpent, Spends: Spend{Requests: 62, Creations: 10},
			run: func(s *session) {
				s.repeat(10, createAgent, `{}`, 200)
				// Refused by the limit on creations, these spend nothing.
				s.repeat(1, createAgent, `{}`, 429)
				s.repeat(50, readAgent.of("agent-of-nobody"), "", 404)
				s.call(createAgent, `{"x":1}`).limited("key_minute")
			},
		},
		{
			ID: "fake/counted/every-limited-endpoint", Rule: requestsSpent,
			Spends: Spend{Requests: 66, Creations: 1, BYOKSets: 1, WarmUps: 1},
			run: func(s *session) {
				id := s.newAgent()
				s.call(warmUp, "").is(200)
				s.call(setBYOK, setBYOK.body).is(200)
				s.repeat(19, readAgent.of(id), "", 200)
				s.repeat(19, sendMessage.of(id), sendMessage.body, 200)
				s.repeat(19, enableSMS.of(id), enableSMS.body, 200)
				for _, e := range []endpoint{warmUp, setBYOK, createAgent, readAgent, sendMessage, enableSMS} {
					s.call(e.of(id), e.body).limited("key_minute")
				}
			},
		},
	}
}

// uncountedCases: calls that take nothing of anybody's allowance.
func uncountedCases() []Case {
	return []Case{
		{
			ID: "fake/uncounted/401", Rule: requestsSpent, Spends: Spend{Requests: 131, Creations: 1},
			run: func(s *session) {
				s.with("Authorization", "").repeat(130, createAgent, `{}`, 401)
				s.call(createAgent, `{}`).is(200)
			},
		},
		{
			ID: "fake/uncounted/402", Rule: requestsSpent, Needs: []Need{NeedIssueKey}, Spends: Spend{Requests: 131, Creations: 1},
			run: func(s *session) {
				s.issue("free", true).repeat(130, createAgent, `{}`, 402)
				s.call(createAgent, `{}`).is(200)
			},
		},
		{
			ID: "fake/uncounted/404-405-of-routes", Rule: requestsSpent, Spends: Spend{Requests: 131, Creations: 1},
			run: func(s *session) {
				s.repeat(65, endpoint{name: "unknown", method: "GET", path: "/v1/nothing"}, "", 404)
				s.repeat(65, endpoint{name: "unknown", method: "PATCH", path: "/v1/agents"}, "", 405)
				s.call(createAgent, `{}`).is(200)
			},
		},
		{
			ID: "fake/uncounted/429", Rule: requestsSpent, Needs: []Need{NeedIssueKey},
			Spends: Spend{Requests: 240, Creations: 2, Wait: time.Minute},
			run: func(s *session) {
				s.fillRequests(60, 60)
				s.repeat(60, createAgent, `{}`, 429)
				next := s.issue("preview", true).fillRequests(60, 60) // the address has its other half
				s.wait(next().limited("key_minute").retryAfter())
				s.repeat(59, readAgent.of("agent-of-nobody"), "", 404)
			},
		},
		{
			ID: "fake/uncounted/429-by-day", Rule: requestsSpent, Spends: Spend{Requests: 2001, Creations: 1, Wait: 20 * time.Minute},
			run: func(s *session) {
				refused := s.bulk()
				next := refused.fillRequests(60, 60)
				refused.repeat(1000, createAgent, `{}`, 429)
				for range 15 {
					s.wait(time.Minute)
					refused.repeat(60, readAgent.of("agent-of-nobody"), "", 404)
				}
				s.wait(time.Minute)
				refused.repeat(40, readAgent.of("agent-of-nobody"), "", 404)
				next().limited("key_day")
			},
		},
		{
			ID: "fake/uncounted/endpoints-without-429", Rule: unlimited, Spends: Spend{Requests: 451, Creations: 1},
			run: func(s *session) {
				for _, e := range []endpoint{getStatus, getBYOK, clearBYOK} {
					s.repeat(130, e, "", 200)
				}
				next := s.fillRequests(60, 60)
				next().limited("key_minute")
			},
		},
		{
			ID: "fake/uncounted/endpoints-without-429-when-exhausted", Rule: unlimited, Spends: Spend{Requests: 64, Creations: 1},
			run: func(s *session) {
				s.fillRequests(60, 60)().limited("key_minute")
				for _, e := range []endpoint{getStatus, getBYOK, clearBYOK} {
					s.call(e, "").is(200)
				}
			},
		},
	}
}

// operationCases: a refused operation takes nothing of any operation limit.
func operationCases() []Case {
	keyed := llmBody(ownKey)
	return []Case{
		{
			ID: "fake/operation/refused-creation", Rule: operations, Spends: Spend{Requests: 31, Creations: 10},
			run: func(s *session) {
				s.repeat(10, createAgent, `{"x":1}`, 400)
				s.repeat(10, createAgent, llmBody(`"mode":"byok"`), 400)
				s.fill(10, createAgent, `{}`)().limited("agent_create_ip_minute")
			},
		},
		{
			ID: "fake/operation/refused-set", Rule: operations, Needs: []Need{NeedBYOKSwitch}, Spends: Spend{Requests: 18, BYOKSets: 5},
			run: func(s *session) {
				s.repeat(6, setBYOK, `{}`, 400)
				s.target.Abilities.SetBYOKAvailable(false)
				s.repeat(6, setBYOK, setBYOK.body, 503)
				s.target.Abilities.SetBYOKAvailable(true)
				s.fill(5, setBYOK, setBYOK.body)().limited("byok_set_key_hour")
			},
		},
		{
			ID: "fake/operation/refused-warmup", Rule: operations, Spends: Spend{Requests: 12, WarmUps: 3},
			run: func(s *session) {
				s.repeat(4, warmUp, `{"mode":"turbo"}`, 400)
				s.repeat(4, warmUp, `{"mode":"byok"}`, 409)
				s.fill(3, warmUp, "")().limited("warmup_key_hour")
			},
		},
		{
			ID: "fake/operation/clear-is-no-set", Rule: operations, Spends: Spend{Requests: 11, BYOKSets: 5},
			run: func(s *session) {
				for range 5 {
					s.call(setBYOK, setBYOK.body).is(200)
					s.call(clearBYOK, "").is(200)
				}
				s.call(setBYOK, setBYOK.body).limited("byok_set_key_hour")
			},
		},
		{
			ID: "fake/operation/set-refused-takes-no-creation", Rule: operations, Spends: Spend{Requests: 26, Creations: 10, BYOKSets: 5},
			run: func(s *session) {
				s.repeat(5, setBYOK, setBYOK.body, 200)
				s.repeat(10, createAgent, keyed, 429)
				s.fill(10, createAgent, `{}`)().limited("agent_create_ip_minute")
			},
		},
		{
			ID: "fake/operation/creation-refused-takes-no-set", Rule: operations, Spends: Spend{Requests: 26, Creations: 10, BYOKSets: 5},
			run: func(s *session) {
				s.repeat(10, createAgent, `{}`, 200)
				s.repeat(10, createAgent, keyed, 429)
				s.fill(5, setBYOK, setBYOK.body)().limited("byok_set_key_hour")
			},
		},
		{
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
		},
	}
}
