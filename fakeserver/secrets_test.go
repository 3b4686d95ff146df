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

// canaryCalls are every endpoint, with secrets where they belong and where they do
// not: <provider> is a provider key, <key> the API key of the call.
var canaryCalls = []string{
	`GET /v1/status `,
	`POST /v1/warmup {"mode":"byok"}`,
	`PUT /v1/byok {"provider":"openai","api_key":<provider>,"label":<provider>}`,
	`PUT /v1/byok {"provider":"no","api_key":<provider>}`,
	`GET /v1/byok `,
	`POST /v1/agents {"system_prompt":<prompt>,"llm":{"mode":"byok","provider":"openai","api_key":<provider>},"metadata":{"k":<provider>}}`,
	`POST /v1/agents {"customer_ref":"<key>","llm":{"provider":"openai","api_key":<provider>},<provider>:1}`,
	`GET /v1/agents/agent_000001 `,
	`GET /v1/agents/<key> `,
	`POST /v1/agents/agent_000001/messages {"text":<text>}`,
	`POST /v1/agents/agent_000001/channels/sms {"mode":"sandbox"}`,
	`DELETE /v1/byok `,
}

// sendCanaries makes the calls and returns the refusals.
func (c caller) sendCanaries() (refusals string) {
	quote := func(text string) string { quoted, _ := json.Marshal(text); return string(quoted) }
	fill := strings.NewReplacer("<provider>", quote(canaryKey), "<text>", quote(canaryText), "<prompt>", quote(canaryPrompt), "<key>", c.key)
	for _, line := range canaryCalls {
		call := strings.SplitN(fill.Replace(line), " ", 3)
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		got := seen(c.wire, c.request(call[0], call[1], call[2], "X-Note: "+c.key, "X-Api-Key: "+canaryKey).WithContext(ctx))
		cancel()
		if strings.HasPrefix(got, "4") || strings.HasPrefix(got, "5") {
			refusals += got
		}
	}
	return refusals
}

// Secrets through every endpoint and every fault, and then everything that the
// fake shows. Texts are shown where the test asks for them.
func TestCanaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { showCanaries(t, canaryText, canaryPrompt, canaryReply) })
	synctest.Test(t, func(t *testing.T) {
		shown := showCanaries(t, "", "", "", fakeserver.WithMessageTexts())
		for _, text := range []string{"cnrY-text", "cnrY-prompt", "cnrY-reply"} {
			assert.True(t, strings.Contains(shown, text), "%s was asked for", text)
		}
	})
}

func showCanaries(t *testing.T, text, prompt, said string, opts ...fakeserver.Option) string {
	watch, fake, c := newSpied(t, append(append(opts, unlimited()...), fakeserver.WithUnknownRoutes(), fakeserver.WithCallLimit(math.MaxInt))...)
	issued := fake.IssueKey(fakeserver.KeyOptions{})
	script := fake.OnMessage(fakeserver.ByText(canaryText)).Reply(canaryReply)
	never := fake.OnMessage(fakeserver.ByKey(issued), fakeserver.ByAgent(canaryText), fakeserver.ByTextContaining("never"+canaryText)).Required()
	shown := []any{fake, script, *script, never, *never, fakeserver.ByKey(issued), fakeserver.ByAgent(issued), fakeserver.ByText(canaryText), fakeserver.ByTextContaining(canaryText)}
	for _, key := range []string{c.key, issued, canaryStranger} {
		shown = append(shown, c.with(key).sendCanaries())
	}
	stored, err := json.Marshal(fake.Agents()[0].LLM)
	require.NoError(t, err)
	shown = append(shown, string(stored))
	for _, row := range append([]faultRow{
		{fault: fakeserver.Answer(500, canaryText)}, {fault: fakeserver.RateLimited(canaryText)},
		{fault: fakeserver.LoseReply(fakeserver.RawAnswer(502, canaryText, canaryText))},
	}, faults...) {
		in := fake.Inject(row.fault, fakeserver.ByKey(c.key))
		shown = append(shown, row.fault, in, *in)
		c.sendCanaries()
		in.Remove()
	}
	watch.Errorf("fail, so that the transcript is logged")
	watch.finish()
	require.NotEmpty(t, watch.logs, "the transcript")
	shown = append(shown, fake.Limits(issued), fake.Calls(), fake.Calls()[0], watch.logs, watch.errors)

	var out bytes.Buffer
	require.NoError(t, fake.WriteCalls(&out))
	require.Contains(t, out.String(), "LoseReply", "the faults acted")
	for _, v := range shown {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	require.Contains(t, out.String(), "fakeserver.Server\n", "a fake shows its name")
	for _, secret := range []string{c.key, issued, canaryStranger, canaryKey, text, prompt, said} {
		for _, form := range forms(secret) {
			assert.False(t, secret != "" && strings.Contains(out.String(), form), "%s shows", form)
		}
	}
	return out.String()
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
