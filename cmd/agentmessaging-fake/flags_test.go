package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// badFlags are flags, some with the file BROKEN, and what is said of them.
var badFlags = []struct{ flag, want string }{
	{"--addr=8460", "--addr: must be host and port, such as 127.0.0.1:8460"},
	{"--addr=0.0.0.0:0", "--addr: must be a loopback address such as 127.0.0.1:8460; --allow-remote allows others"},
	{"--addr=example.com:0", "--addr: must be a loopback address"},
	{"--allow-remote=maybe", "--allow-remote: must be true or false"},
	{"--token=secret-15-chars", "--token: must be 16 to 256 characters of visible ASCII"},
	{"--token=", "--token: must be 16 to 256"},
	{"--key=secret key", "--key: fakeserver: WithKey: only visible ASCII characters but the comma"},
	{"--key=", "--key: fakeserver: WithKey: the text is empty"},
	{"--state=", "--state: must be the path of a file"},
	{"--log=loud", "--log: must be one of auto, text, json, off"},
	{"--plan=gold", "--plan: fakeserver: WithPlan: unknown plan; the plans are preview, free, pro and byok"},
	{"--limits=none", "--limits: must be plan, off, one of preview, free, pro, byok, or calls in a window such as key_minute=5"},
	{"--limits=key_hour=5", "--limits: fakeserver: WithLimit: unknown limit; the limits are key_minute, "},
	{"--decisions=windows=rolling", "--decisions: fakeserver: WithDecision: \"windows\": "},
	{"--cold-start=-1s", "--cold-start: must be a duration such as 250ms or 1.5s, and not negative"},
	{"--latency=5", "--latency: must be a duration"},
	{"--calls=0", "--calls: must be an integer from 1 to 1000000"},
	{"--replies=/no/such/file", "--replies: must be a file that can be read"},
	{"--replies=BROKEN", `--replies: body: member "tekst" is not allowed`},
	{"--like=/no/such/file", "--like: must be a file that can be read"},
	{"--like=BROKEN", "--like: fakeserver: Like: "},
	{"--state=BROKEN", "--state: BROKEN: fakeserver: ReadState: not the state of a fake: its format is not agentmessaging-fake-state; move it away to begin anew"},
	{"--state=/no/such/folder/state", "--state: cannot be saved to"},
	{"--nothing", "flag provided but not defined: -nothing; --help lists the flags"},
	{"start", "there is no such command; the commands are version, observe, help"},
	{"help more", "one argument too many"},
}

// One sentence that names the flag and says what is allowed, without the
// value: it may be a secret.
func TestBadFlags(t *testing.T) {
	broken := tempFile(t)
	require.NoError(t, os.WriteFile(broken, []byte(`[{"replies":[{"tekst":"x"}]}]`), 0o600))
	names := strings.NewReplacer("BROKEN", broken)
	for _, tt := range badFlags {
		args := []string{names.Replace(tt.flag)}
		if tt.flag == "help more" {
			args = strings.Fields(tt.flag)
		} else if strings.HasPrefix(tt.flag, "--") && !strings.HasPrefix(tt.flag, "--addr") {
			args = append(args, "--addr=127.0.0.1:0")
		}
		status, sentence := refused(t, args)
		assert.Equal(t, exitUsage, status, tt.flag)
		assert.Contains(t, sentence, "agentmessaging-fake: "+names.Replace(tt.want))
		assert.NotContains(t, sentence, "secret")
	}
}

func TestFlags(t *testing.T) {
	replies := tempFile(t)
	require.NoError(t, os.WriteFile(replies, []byte(`{"replies":[{"text":"from the file"}]}`), 0o600))
	r := begin(t, []string{
		"--key=k", "--plan=pro", "--limits=key_day=3,key_minute=2", "--decisions=windows=sliding,clear_nothing=404", "--cold-start=1ms",
		"--latency=1ms", "--calls=1", "--replies", replies, "--log=off",
	})
	assert.Equal(t, "k", r.facts.APIKey)
	assert.NotContains(t, r.control("/info"), `"key"`, "a key that was chosen may be a secret")
	assert.Contains(t, r.control("/keys"), `"plan":"pro"`)
	assert.Contains(t, r.control("/keys/key_000001"), `{"limit_key":"key_minute","max":2,`)
	assert.Contains(t, r.control("/decisions"), `"answer":"sliding"`)
	assert.Contains(t, r.control("/faults"), `"name":"Latency(1ms)"`)
	assert.Contains(t, r.control("/replies"), `"text":"from the file"`)
	for range 2 {
		status, _ := r.service("DELETE", "/v1/byok", "")
		assert.Equal(t, 404, status)
	}
	assert.Contains(t, r.control("/calls"), `"dropped":1`)
	r.stop()
	for limits, want := range map[string]string{"off": `"max":null,"used":0,"left":null`, "byok": `"max":600`} {
		r := begin(t, []string{"--limits", limits})
		assert.Contains(t, r.control("/keys/key_000001"), `{"limit_key":"key_minute",`+want)
		r.stop()
	}
}

// Each flag has a variable, and the flag wins.
func TestEnvironment(t *testing.T) {
	for _, o := range new(config).options() {
		if o.name == "state" || o.name == "ready-file" {
			continue // any path will do, until it is written
		}
		variable := "AGENT_MESSAGING_FAKE_" + strings.ToUpper(strings.ReplaceAll(o.name, "-", "_"))
		status, sentence := refused(t, nil, variable+"=bad, value:", "AGENT_MESSAGING_FAKE_ADDR=127.0.0.1:0")
		assert.Equal(t, exitUsage, status, o.name)
		assert.Contains(t, sentence, variable+": ", o.name)
	}
	status, sentence := refused(t, nil, "AGENT_MESSAGING_FAKE_STAET=x", "AGENT_MESSAGING_FAKE_ADDR=127.0.0.1:0")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, sentence, "AGENT_MESSAGING_FAKE_STAET: no flag has this variable; --help lists them")
	r := begin(t, []string{"--plan=pro"}, "AGENT_MESSAGING_FAKE_LATENCY=", "AGENT_MESSAGING_FAKE_PLAN=free", "AGENT_MESSAGING_FAKE_KEY=mine", "AGENT_MESSAGING_FAKE_ADDR=bad")
	assert.Equal(t, "mine", r.facts.APIKey)
	assert.Contains(t, r.control("/keys"), `"plan":"pro"`)
	r.stop()
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help"}} {
		var out, errs bytes.Buffer
		assert.Equal(t, exitOK, run(context.Background(), args, nil, &out, &errs))
		for _, o := range new(config).options() {
			assert.Contains(t, out.String(), "--"+o.name)
			assert.Contains(t, out.String(), o.variable())
		}
		assert.Contains(t, out.String(), "AGENT_MESSAGING_FAKE_ADDR, default 127.0.0.1:8460")
		assert.Empty(t, errs.String())
	}
	for _, args := range [][]string{{"--version"}, {"version"}} {
		var out bytes.Buffer
		assert.Equal(t, exitOK, run(context.Background(), args, nil, &out, &out))
		assert.Regexp(t, `^agentmessaging-fake \S+\n$`, out.String())
	}
}
