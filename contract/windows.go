package contract

import (
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
)

const (
	windowFixed = "window: fixed, from its first counted call"
	waitRounded = "Retry-After: whole seconds rounded up, at least 1, and after exactly that wait the call goes through"
	lastIsNamed = "of several exhausted limits the one that opens last is named"
)

// windowCases pin the arithmetic of a window on a clock that stands still
// between waits.
func windowCases() []Case { return slices.Concat(fixedWindowCases(), lastIsNamedCases()) }

func fixedWindowCases() []Case {
	frozen := []Need{NeedFrozenClock}
	return []Case{
		{
			ID: "fake/window-from-first-call", Rule: windowFixed, Needs: frozen,
			Spends: Spend{Requests: 122, Creations: 1, Wait: time.Minute + 45*time.Second},
			run: func(s *session) {
				s.wait(15 * time.Second) // no window started with the target
				read := readAgent.of(s.newAgent())
				s.wait(30 * time.Second)
				s.repeat(59, read, "", 200)
				assert.Equal(s, 30*time.Second, s.call(read, "").limited("key_minute").retryAfter())
				s.wait(30 * time.Second)
				s.repeat(60, read, "", 200) // all of them are back at once
				assert.Equal(s, time.Minute, s.call(read, "").limited("key_minute").retryAfter())
			},
		},
		{
			ID: "fake/window-starts-with-a-call", Rule: windowFixed, Needs: frozen,
			Spends: Spend{Requests: 121, Creations: 5, Wait: 125 * time.Second},
			run: func(s *session) {
				next := s.fillRequests(60, 60)
				s.wait(90 * time.Second) // the window ended half a minute ago: the next call starts one
				s.repeat(4, createAgent, `{}`, 200)
				s.wait(35 * time.Second)
				s.repeat(56, readAgent.of("agent-of-nobody"), "", 404)
				assert.Equal(s, 25*time.Second, next().limited("key_minute").retryAfter())
			},
		},
		{
			ID: "fake/retry-after-rounded-up", Rule: waitRounded, Needs: frozen,
			Spends: Spend{Requests: 6, WarmUps: 4, Wait: time.Hour},
			run: func(s *session) {
				next := s.fill(3, warmUp, "")
				s.wait(time.Hour - 1500*time.Millisecond)
				assert.Equal(s, 2*time.Second, next().limited("warmup_key_hour").retryAfter())
				s.wait(1499 * time.Millisecond)
				assert.Equal(s, time.Second, next().limited("warmup_key_hour").retryAfter())
				s.wait(time.Millisecond)
				next().is(200)
			},
		},
	}
}

func lastIsNamedCases() []Case {
	frozen := []Need{NeedFrozenClock}
	return []Case{
		{
			ID: "fake/opens-last-is-named/operations", Rule: lastIsNamed, Needs: frozen, Spends: Spend{Requests: 11, Creations: 10, BYOKSets: 5},
			run: func(s *session) {
				s.repeat(5, createAgent, llmBody(ownKey), 200)
				s.repeat(5, createAgent, `{}`, 200)
				assert.Equal(s, time.Hour, s.call(createAgent, llmBody(ownKey)).limited("byok_set_key_hour").retryAfter())
			},
		},
		{
			ID: "fake/opens-last-is-named/creation", Rule: lastIsNamed, Needs: frozen,
			Spends: Spend{Requests: 51, Creations: 50, Wait: 4 * time.Minute},
			run: func(s *session) {
				for i := range 5 {
					if i > 0 {
						s.wait(time.Minute)
					}
					s.repeat(10, createAgent, `{}`, 200)
				}
				assert.Equal(s, day-4*time.Minute, s.call(createAgent, `{}`).limited("agent_create_key_day").retryAfter())
			},
		},
		{
			ID: "fake/opens-last-is-named/request-and-operation", Rule: lastIsNamed + "; " + waitRounded, Needs: frozen,
			Spends: Spend{Requests: 63, Creations: 1, WarmUps: 3},
			run: func(s *session) {
				next := s.fill(3, warmUp, "")
				s.fillRequests(57, 57)
				assert.Equal(s, time.Hour, next().limited("warmup_key_hour").retryAfter())
				// One that would be refused for its body needs the request limit only.
				assert.Equal(s, time.Minute, s.call(warmUp, `{"mode":"turbo"}`).limited("key_minute").retryAfter())
				assert.Equal(s, time.Minute, s.call(createAgent, `{}`).limited("key_minute").retryAfter())
			},
		},
		{
			ID: "fake/opens-last-is-named/requests", Rule: lastIsNamed, Needs: []Need{NeedFrozenClock, NeedIssueKey},
			Spends: Spend{Requests: 121, Creations: 2, Wait: 20 * time.Second},
			run: func(s *session) {
				s.issue("preview", true).fillRequests(60, 60)
				s.wait(20 * time.Second)
				second := s.issue("preview", true).fillRequests(60, 60)
				// The address opens in 40 s, the key in 60 s.
				assert.Equal(s, time.Minute, second().limited("key_minute").retryAfter())
			},
		},
	}
}
