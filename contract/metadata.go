package contract

import (
	"slices"
	"strings"
)

// metadataCases: the cap that the interface does not show is 4096 characters
// of compact JSON on a target that claims the decisions.
func metadataCases() []testCase {
	const (
		free   = "metadata | object | any properties"
		capped = "metadata cap: 4096 characters of compact JSON"
	)
	return slices.Concat(
		rows("fake/creation-empty", "a bound that the interface does not state is not invented", createAgent, 200,
			row{"system_prompt", `{"system_prompt":""}`},
			row{"customer_ref", `{"customer_ref":""}`},
			row{"llm.model", llmBody(`"model":""`)},
			row{"llm.api_key", llmBody(`"provider":"openai","api_key":""`)}),
		rows("2.3/metadata", free, createAgent, 200,
			row{"empty", `{"metadata":{}}`},
			row{"null-member", `{"metadata":{"a":null}}`},
			row{"nested", `{"metadata":{"a":{"b":[1,2.5,true,null,"x",{"c":{}}]},"":"empty name"}}`},
			row{"names-of-other-members", `{"metadata":{"llm":1,"sms":2,"api_key_hint":"x"}}`}),
		rows("fake/metadata-cap", capped, createAgent, 200,
			row{"at", metadataOf(4096, "")},
			row{"at-with-space", metadataOf(4096, strings.Repeat(" ", 500))}),
		rows("fake/metadata-cap", capped, createAgent, 400,
			row{"over", metadataOf(4097, "")}),
	)
}

// metadataOf is a creation body. Its metadata has n characters as compact JSON,
// and space in two places that compact JSON does not have.
func metadataOf(n int, space string) string {
	const frame = `{"a":""}`
	return `{"metadata":{` + space + `"a":` + space + `"` + strings.Repeat("x", n-len(frame)) + `"}}`
}
