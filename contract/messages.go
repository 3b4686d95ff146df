package contract

import (
	"slices"
	"strings"
)

func messageCases() []testCase {
	const (
		reply   = "Response: reply_text (required), warnings (optional array of strings), trace_id (required)."
		request = "`text` (string, required, maxLength 4000) and `user_ref` (string, optional, reserved for future multi-user routing)"
	)
	one := Spend{Requests: 1}
	cases := []testCase{
		{
			ID: "4.8/reply", Rule: reply, Core: true, Needs: []need{needAgent}, Spends: one,
			run: func(s *session) { s.call(sendMessage, `{"text":"Hello"}`).is(200) },
		},
		{
			ID: "fake/reply-fixed", Rule: "default reply: a fixed function of the text", Needs: []need{needAgent}, Spends: Spend{Requests: 3},
			run: func(s *session) {
				first := s.call(sendMessage, `{"text":"one"}`).is(200).text("reply_text")
				s.call(sendMessage, `{"text":"one"}`).is(200).holds("reply_text", first)
				other := s.call(sendMessage, `{"text":"two"}`).is(200)
				other.want(other.text("reply_text") != first, "two texts have this reply")
			},
		},
	}
	return slices.Concat(cases,
		rows("2.5/accepted", request, sendMessage, 200,
			row{"user_ref", `{"text":"Hello","user_ref":"user-1"}`},
			row{"any-script", `{"text":"Grüße 你好 😀 \u00e9 \ud83d\ude00 \n\t\""}`}),
		core(rows("2.5/text-required", request, sendMessage, 400, row{"absent", `{}`})),
		rows("2.5/text-required", request, sendMessage, 400,
			row{"user_ref-alone", `{"user_ref":"user-1"}`}),
		rows("fake/message-text-empty", "a bound that the interface does not state is not invented", sendMessage, 200,
			row{"accepted", `{"text":""}`}),
		rows("fake/message-user_ref-long", "a bound that the interface does not state is not invented", sendMessage, 200,
			row{"accepted", `{"text":"Hello","user_ref":"` + strings.Repeat("u", 10_000) + `"}`}),
		rows("fake/message-no-other-member", "bodies: no unknown members, exact-case names", sendMessage, 400,
			row{"unknown", `{"text":"Hello","mood":"good"}`},
			row{"unknown-null", `{"text":"Hello","mood":null}`}),
	)
}
