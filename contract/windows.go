package contract

import "time"

const (
	windowFixed = "window: fixed, from its first counted call"
	waitRounded = "Retry-After: whole seconds rounded up, at least 1, and after exactly that wait the call goes through"
	lastIsNamed = "of several exhausted limits the one that opens last is named"
)

// windowCases pin the arithmetic of a window on a clock that stands still
// between waits.
func windowCases() []testCase {
	warmUps, full := warmUp.limited("warmup_key_hour"), readAgent.limited("key_minute")
	return []testCase{
		rule("fake/window-from-first-call", windowFixed,
			wait(15*time.Second), createAgent.is(200), // no window started with the target
			wait(30*time.Second), readAgent.is(200).times(59), full.opensIn(30*time.Second),
			wait(30*time.Second), readAgent.is(200).times(60), full.opensIn(time.Minute)), // all of them are back at once
		rule("fake/window-starts-with-a-call", windowFixed,
			requests(60, 60),
			wait(90*time.Second), createAgent.is(200).times(4), // the window ended half a minute ago: this starts one
			wait(35*time.Second), readNobody.is(404).times(56), full.opensIn(25*time.Second)),
		rule("fake/retry-after-rounded-up", waitRounded,
			warmUp.is(200).times(3),
			wait(time.Hour-1500*time.Millisecond), warmUps.opensIn(2*time.Second),
			wait(1499*time.Millisecond), warmUps.opensIn(time.Second),
			wait(time.Millisecond), warmUp.is(200)),

		rule("fake/opens-last-is-named/operations", lastIsNamed,
			keyedAgent.is(200).times(5), createAgent.is(200).times(5), keyedAgent.limited("byok_set_key_hour").opensIn(time.Hour)),
		rule("fake/opens-last-is-named/creation", lastIsNamed,
			repeat(4, createAgent.is(200).times(10), wait(time.Minute)), createAgent.is(200).times(10),
			createAgent.limited("agent_create_key_day").opensIn(day-4*time.Minute)),
		rule("fake/opens-last-is-named/request-and-operation", lastIsNamed+"; "+waitRounded,
			warmUp.is(200).times(3), requests(57, 57), warmUps.opensIn(time.Hour),
			// A call that would be refused for its body needs the request limit only.
			badWarmUp.limited("key_minute").opensIn(time.Minute),
			createAgent.limited("key_minute").opensIn(time.Minute)),
		rule("fake/opens-last-is-named/requests", lastIsNamed,
			requests(60, 60).by(another), wait(20*time.Second), requests(60, 60).by(third),
			full.opensIn(time.Minute).by(third)), // the address opens in 40 s, the key in 60 s
	}
}
