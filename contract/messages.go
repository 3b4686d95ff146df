package contract

import (
	"slices"
	"strings"
)

func messageCases() []testCase {
	const (
		request  = "`text` (string, required, maxLength 4000) and `user_ref` (string, optional, reserved for future multi-user routing)"
		notBound = "a bound that the interface does not state is not invented"
	)
	one, two := sendMessage.with(`{"text":"one"}`), sendMessage.with(`{"text":"two"}`)
	return slices.Concat(
		[]testCase{
			rule("4.8/reply", "Response: reply_text (required), warnings (optional array of strings), trace_id (required).", sendMessage.is(200)),
			rule("fake/reply-fixed", "default reply: a fixed function of the text",
				one.is(200), one.is(200).holds("reply_text", same), two.is(200).holds("reply_text", differs)),
		},
		rows("2.5/accepted", request, sendMessage, 200,
			row{"user_ref", `{"text":"Hello","user_ref":"user-1"}`},
			row{"any-script", `{"text":"Grüße 你好 😀 \u00e9 \ud83d\ude00 \n\t\""}`}),
		rows("2.5/text-required", request, sendMessage, 400,
			row{"absent", `{}`},
			row{"user_ref-alone", `{"user_ref":"user-1"}`}),
		rows("fake/message-text-empty", notBound, sendMessage, 200, row{"accepted", `{"text":""}`}),
		rows("fake/message-user_ref-long", notBound, sendMessage, 200,
			row{"accepted", `{"text":"Hello","user_ref":"` + strings.Repeat("u", 10_000) + `"}`}),
		rows("fake/message-no-other-member", "bodies: no unknown members, exact-case names", sendMessage, 400,
			row{"unknown", `{"text":"Hello","mood":"good"}`},
			row{"unknown-null", `{"text":"Hello","mood":null}`}),
	)
}
