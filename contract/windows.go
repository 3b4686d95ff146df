package contract

import (
	"slices"
	"time"
)

const (
	windowFixed = "window: fixed, from its first counted call"
	waitRounded = "Retry-After: whole seconds rounded up, at least 1, and after exactly that wait the call goes through"
	lastIsNamed = "of several exhausted limits the one that opens last is named"
)

// windowCases pin the arithmetic of a window on a clock that stands still
// between waits.
func windowCases() []testCase { return slices.Concat(fixedWindowCases(), lastIsNamedCases()) }

func fixedWindowCases() []testCase {
	frozen := []need{needFrozenClock}
	return []testCase{
		{
			ID: "fake/window-from-first-call", Rule: windowFixed, Needs: frozen,
			Spends: Spend{Requests: 122, Creations: 1, Wait: time.Minute + 45*time.Second},
			run: func(s *session) {
				s.wait(15 * time.Second) // no window started with the target
				read := readAgent.of(s.newAgent())
				s.wait(30 * time.Second)
				s.repeat(59, read, "", 200)
				s.call(read, "").limited("key_minute").opensIn(30 * time.Second)
				s.wait(30 * time.Second)
				s.repeat(60, read, "", 200) // all of them are back at once
				s.call(read, "").limited("key_minute").opensIn(time.Minute)
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
				next().limited("key_minute").opensIn(25 * time.Second)
			},
		},
		{
			ID: "fake/retry-after-rounded-up", Rule: waitRounded, Needs: frozen,
			Spends: Spend{Requests: 6, WarmUps: 4, Wait: time.Hour},
			run: func(s *session) {
				next := s.fill(3, warmUp, "")
				s.wait(time.Hour - 1500*time.Millisecond)
				next().limited("warmup_key_hour").opensIn(2 * time.Second)
				s.wait(1499 * time.Millisecond)
				next().limited("warmup_key_hour").opensIn(time.Second)
				s.wait(time.Millisecond)
				next().is(200)
			},
		},
	}
}

func lastIsNamedCases() []testCase {
	frozen := []need{needFrozenClock}
	return []testCase{
		{
			ID: "fake/opens-last-is-named/operations", Rule: lastIsNamed, Needs: frozen, Spends: Spend{Requests: 11, Creations: 10, BYOKSets: 5},
			run: func(s *session) {
				s.repeat(5, createAgent, llmBody(ownKey), 200)
				s.repeat(5, createAgent, `{}`, 200)
				s.call(createAgent, llmBody(ownKey)).limited("byok_set_key_hour").opensIn(time.Hour)
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
				s.call(createAgent, `{}`).limited("agent_create_key_day").opensIn(day - 4*time.Minute)
			},
		},
		{
			ID: "fake/opens-last-is-named/request-and-operation", Rule: lastIsNamed + "; " + waitRounded, Needs: frozen,
			Spends: Spend{Requests: 63, Creations: 1, WarmUps: 3},
			run: func(s *session) {
				next := s.fill(3, warmUp, "")
				s.fillRequests(57, 57)
				next().limited("warmup_key_hour").opensIn(time.Hour)
				// One that would be refused for its body needs the request limit only.
				s.call(warmUp, `{"mode":"turbo"}`).limited("key_minute").opensIn(time.Minute)
				s.call(createAgent, `{}`).limited("key_minute").opensIn(time.Minute)
			},
		},
		{
			ID: "fake/opens-last-is-named/requests", Rule: lastIsNamed, Needs: []need{needFrozenClock, needAbilities},
			Spends: Spend{Requests: 121, Creations: 2, Wait: 20 * time.Second},
			run: func(s *session) {
				s.issue("preview", true).fillRequests(60, 60)
				s.wait(20 * time.Second)
				second := s.issue("preview", true).fillRequests(60, 60)
				// The address opens in 40 s, the key in 60 s.
				second().limited("key_minute").opensIn(time.Minute)
			},
		},
	}
}
