package fakeserver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Each has characters that the encodings below change.
const (
	canaryKey      = "cnrY-key/+=&<é>\"8"
	canaryText     = "cnrY-text/+=&<é>\"8"
	canaryPrompt   = "cnrY-prompt/+=&<é>\"8"
	canaryReply    = "cnrY-reply/+=&<é>\"8"
	canaryStranger = "amk_cnrY-stranger" // no key of the fake
)

// forms are a secret and what encodings make of it.
func forms(secret string) []string {
	quoted, _ := json.Marshal(secret)
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	_ = e.Encode(secret)
	return []string{
		secret, strings.Trim(string(quoted), `"`), strings.Trim(plain.String(), "\"\n"),
		url.QueryEscape(secret), url.PathEscape(secret), fmt.Sprintf("%+q", secret), fmt.Sprintf("%x", secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
}

// canaryCalls are every endpoint, with secrets where they belong and where
// they do not.
func canaryCalls(key string) [][3]string {
	quoted, _ := json.Marshal(canaryKey)
	text, _ := json.Marshal(canaryText)
	prompt, _ := json.Marshal(canaryPrompt)
	llm := `"llm":{"mode":"byok","provider":"openai","api_key":` + string(quoted) + `}`
	return [][3]string{
		{"GET", "/v1/status", ""},
		{"POST", "/v1/warmup", `{"mode":"byok"}`},
		{"PUT", "/v1/byok", `{"provider":"openai","api_key":` + string(quoted) + `,"label":` + string(quoted) + `}`},
		{"PUT", "/v1/byok", `{"provider":"no","api_key":` + string(quoted) + `}`},
		{"GET", "/v1/byok", ""},
		{"POST", "/v1/agents", `{"system_prompt":` + string(prompt) + `,` + llm + `,"metadata":{"k":` + string(quoted) + `}}`},
		{"POST", "/v1/agents", `{"customer_ref":"` + key + `",` + llm + `,` + string(quoted) + `:1}`},
		{"GET", "/v1/agents/agent_000001", ""},
		{"GET", "/v1/agents/" + key, ""},
		{"POST", "/v1/agents/agent_000001/messages", `{"text":` + string(text) + `}`},
		{"POST", "/v1/agents/agent_000001/channels/sms", `{"mode":"sandbox"}`},
		{"DELETE", "/v1/byok", ""},
	}
}

func canaryFaults() []fakeserver.Fault {
	plain := []fakeserver.Fault{
		fakeserver.Answer(500, canaryText), fakeserver.RawAnswer(502, canaryText, canaryText), fakeserver.RateLimited(canaryText),
		fakeserver.Hang(), fakeserver.CloseEarly(), fakeserver.ResetConnection(),
	}
	all := append(plain, fakeserver.Latency(time.Second), fakeserver.TruncateReply(5), fakeserver.ResetReply(5), fakeserver.DripReply(9, time.Second))
	for _, f := range plain {
		all = append(all, fakeserver.LoseReply(f))
	}
	return all
}

// Secrets through every endpoint and every fault, and then everything that the
// fake shows.
func TestCanaries(t *testing.T) {
	for _, texts := range []bool{false, true} {
		t.Run(fmt.Sprint("texts ", texts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sendCanaries(t, texts) })
		})
	}
}

func sendCanaries(t *testing.T, texts bool) {
	opts := append(unlimited(), fakeserver.WithUnknownRoutes(), fakeserver.WithCallLimit(math.MaxInt))
	if texts {
		opts = append(opts, fakeserver.WithMessageTexts())
	}
	watch, fake, c := newSpied(t, opts...)
	issued := fake.IssueKey(fakeserver.KeyOptions{})
	script := fake.OnMessage(fakeserver.ByText(canaryText)).Reply(canaryReply)
	never := fake.OnMessage(fakeserver.ByKey(issued), fakeserver.ByAgent(canaryText), fakeserver.ByTextContaining("never"+canaryText)).Required()
	shown := []any{fake, script, *script, never, *never, fakeserver.ByKey(issued), fakeserver.ByAgent(issued), fakeserver.ByText(canaryText), fakeserver.ByTextContaining(canaryText)}
	for _, key := range []string{c.key, issued, canaryStranger} {
		shown = append(shown, sendAll(c.with(key)))
	}
	stored, err := json.Marshal(fake.Agents()[0].LLM)
	require.NoError(t, err)
	shown = append(shown, string(stored))
	for _, fault := range canaryFaults() {
		in := fake.Inject(fault, fakeserver.ByKey(c.key))
		shown = append(shown, fault, in, *in)
		sendAll(c)
		in.Remove()
	}
	watch.Errorf("fail, so that the transcript is logged")
	shown = append(shown, fake.Limits(issued), fake.Calls(), fake.Calls()[0])
	wantNoCanary(t, fake, watch, shown, c.key, issued, texts)
}

// sendAll makes the calls and returns the refusals.
func sendAll(c caller) (refusals string) {
	for _, call := range canaryCalls(c.key) {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		got := seen(c.wire, c.request(call[0], call[1], call[2], "X-Note: "+c.key, "X-Api-Key: "+canaryKey).WithContext(ctx))
		cancel()
		if strings.HasPrefix(got, "4") || strings.HasPrefix(got, "5") {
			refusals += got
		}
	}
	return refusals
}

func wantNoCanary(t *testing.T, fake *fakeserver.Server, watch *spy, shown []any, key, issued string, texts bool) {
	var out bytes.Buffer
	require.NoError(t, fake.WriteCalls(&out))
	require.Contains(t, out.String(), "LoseReply", "the faults acted")
	watch.finish()
	require.NotEmpty(t, watch.logs, "the transcript")
	fmt.Fprint(&out, watch.logs, watch.errors)
	for _, v := range shown {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	require.Contains(t, out.String(), "fakeserver.Server\n", "a fake shows its name")
	state := written(t, fake) // it has texts, and no API key in any form
	for _, secret := range []string{key, issued, canaryStranger} {
		for _, form := range forms(secret) {
			assert.False(t, strings.Contains(state, form), "the state shows %s", form)
		}
	}
	for _, secret := range []string{key, issued, canaryStranger, canaryKey, canaryText, canaryPrompt, canaryReply} {
		if texts && (secret == canaryText || secret == canaryPrompt || secret == canaryReply) {
			start, _, _ := strings.Cut(secret, "/") // the rest is escaped twice
			assert.True(t, strings.Contains(out.String(), start), "asked for")
			continue
		}
		for _, form := range forms(secret) {
			assert.False(t, strings.Contains(out.String(), form), "%s shows", form)
		}
	}
}

// A secret of the call is redacted at any place of the record, however it is escaped.
func TestCallsHideSecretsInOddPlaces(t *testing.T) {
	const provider = `sk-"canary"/+=<1>`
	const quoted = `"sk-\"canary\"/+=<1>"`
	_, plain := newFake(t)
	escapedToken := `\u0061` + plain.key[1:]
	for name, call := range map[string][3]string{
		"escaped token":           {"POST", "/v1/agents", `{"customer_ref":"a ` + escapedToken + ` b"}`},
		"escaped token as a name": {"POST", "/v1/agents", `{"metadata":{"` + escapedToken + `":1}}`},
		"before its member":       {"PUT", "/v1/byok", `{"label":"\u0073k-\"canary\"\/+=<1>","provider":"openai","api_key":` + quoted + `}`},
		"in metadata":             {"POST", "/v1/agents", `{"metadata":{"provider_key":` + quoted + `},"llm":{"provider":"openai","api_key":` + quoted + `}}`},
		"of metadata":             {"POST", "/v1/agents", `{"metadata":{"a":[{"API_KEY":[` + quoted + `]}],"b":` + quoted + `}}`},
		"capital letters":         {"POST", "/v1/agents", `{"metadata":{"API_KEY":"canary-only","a":"canary-only"}}`},
		"one inside another":      {"POST", "/v1/agents", `{"customer_ref":"sk-12345-canary","metadata":{"api_key":["sk-12345","sk-12345-canary"]}}`},
		"as a member's name":      {"PUT", "/v1/byok", `{` + quoted + `:1,"provider":"openai","api_key":` + quoted + `}`},
		"a name without digits":   {"PUT", "/v1/byok", `{"canary-only":1,"provider":"openai","api_key":"canary-only"}`},
		"alone as a name":         {"POST", "/v1/agents", `{` + quoted + `:1}`},
		"escaped token in a path": {"GET", "/v1/agents/%61" + plain.key[1:], ""},
		"half escaped in a path":  {"GET", "/v1/%2F/" + strings.Replace(plain.key, "_", "%5f", 1) + "%0A", ""},
	} {
		fake, c := newFake(t, fakeserver.WithUnknownRoutes(), fakeserver.WithMessageTexts())
		note := "about nothing"
		if strings.Contains(call[2], quoted) && strings.Contains(strings.ToLower(call[2]), "api_key") { // else nothing says what is a key
			note = "about " + provider
		}
		r := c.call(call[0], call[1], call[2], "X-Note: "+note, "X-"+c.key+": 1")
		var out bytes.Buffer
		require.NoError(t, fake.WriteCalls(&out))
		recorded := out.String() + r.raw
		for _, secret := range []string{c.key, escapedToken, "%61" + c.key[1:], "canary", "amk%5ffake"} {
			assert.NotContains(t, strings.ToLower(recorded), secret, name)
		}
	}
}
