package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

// badFlags are flags, some with the file EMPTY or BROKEN, and what is said of them.
var badFlags = []struct{ flag, want string }{
	{"--addr=8460", "--addr: must be host and port, such as 127.0.0.1:8460"},
	{"--addr=127.0.0.1:65536", "--addr: the port must be from 0 to 65535"},
	{"--addr=127.0.0.1:http", "--addr: the port must be"},
	{"--addr=0.0.0.0:0", "--addr: must be a loopback address such as 127.0.0.1:8460; --allow-remote allows others"},
	{"--addr=[::]:0", "--addr: must be a loopback address"},
	{"--addr=192.0.2.1:0", "--addr: must be a loopback address"},
	{"--addr=example.com:0", "--addr: must be a loopback address"},
	{"--allow-remote=maybe", "--allow-remote: must be true or false"},
	{"--json=maybe", "--json: must be true or false"},
	{"--allow-host=http://x", "--allow-host: must be names without port and scheme"},
	{"--token=secret-15-chars", "--token: must be 16 to 256 characters of visible ASCII"},
	{"--token=secret but long enough", "--token: must be 16 to 256 characters of visible ASCII"},
	{"--token=" + strings.Repeat("x", 257), "--token: must be 16 to 256"},
	{"--key=secret key", "--key: must be 1 to 256 characters of visible ASCII, without a comma"},
	{"--key=secret,key", "--key: must be 1 to 256"},
	{"--key=" + strings.Repeat("x", 257), "--key: must be 1 to 256"},
	{"--key=", "--key: must be 1 to 256"},
	{"--token=", "--token: must be 16 to 256"},
	{"--state=", "--state: must be the path of a file"},
	{"--replies=", "--replies: must be a file that can be read"},
	{"--log=loud", "--log: must be one of auto, text, json, off"},
	{"--plan=gold", "--plan: must be one of preview, free, pro, byok"},
	{"--limits=none", "--limits: must be plan, off, one of preview, free, pro, byok, or calls in a window such as key_minute=5 with one of key_minute"},
	{"--limits=key_minute=0", "--limits: must be plan"},
	{"--limits=key_hour=5", "--limits: must be plan"},
	{"--decisions=windows=rolling", "--decisions: must be answers such as windows=sliding,metadata_cap=8000: fakeserver: "},
	{"--cold-start=-1s", "--cold-start: must be whole milliseconds from 0s to 1h"},
	{"--cold-start=5", "--cold-start: must be whole milliseconds"},
	{"--latency=61m", "--latency: must be whole milliseconds"},
	{"--latency=1us", "--latency: must be whole milliseconds"},
	{"--seed=-1", "--seed: must be an integer from 0 to 9007199254740991"},
	{"--seed=9007199254740992", "--seed: must be an integer"},
	{"--calls=0", "--calls: must be an integer from 1 to 1000000"},
	{"--calls=1000001", "--calls: must be an integer"},
	{"--replies=/no/such/file", "--replies: must be a file that can be read"},
	{"--replies=EMPTY", "--replies: must be a file of scripted replies, and is empty"},
	{"--like=/no/such/file", "--like: must be a file that can be read"},
	{"--like=BROKEN", "--like: must be a file that observe wrote: "},
	{"--replies=BROKEN", `--replies: [0].replies[0]: member "tekst" is not allowed; allowed: text, warnings, status, code, reason`},
	{"--state=BROKEN", "--state: BROKEN: fakeserver: ReadState: not the state of a fake: its format is not agentmessaging-fake-state; move it away to begin anew"},
	{"--state=/no/such/folder/state", "--state: cannot be saved to"},
	{"--plan=", "--plan: must be one of"},
	{"--nothing", "flag provided but not defined: -nothing; --help lists the flags"},
	{"start", "there is no such command; the commands are version, healthz, readyz, observe, help"},
}

// One sentence that names the flag and says what is allowed, without the
// value: it may be a secret.
func TestBadFlags(t *testing.T) {
	empty, broken := tempFile(t), tempFile(t)
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	require.NoError(t, os.WriteFile(broken, []byte(`[{"replies":[{"tekst":"x"}]}]`), 0o600))
	names := strings.NewReplacer("EMPTY", empty, "BROKEN", broken)
	for _, tt := range badFlags {
		args := []string{names.Replace(tt.flag)}
		if !strings.HasPrefix(tt.flag, "--addr") && tt.flag != "start" {
			args = append(args, "--addr=127.0.0.1:0")
		}
		status, sentence := refused(t, args)
		assert.Equal(t, exitUsage, status, tt.flag)
		assert.Contains(t, sentence, "agentmessaging-fake: "+names.Replace(tt.want))
		assert.NotContains(t, sentence, "secret")
	}
	status, sentence := refused(t, []string{"--json", "extra"})
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, sentence, "one argument too many")
}

func TestFlagsReachTheOptions(t *testing.T) {
	c, err := parse([]string{
		"--addr=[::1]:9", "--allow-remote", "--allow-host=a, b", "--token=token-16-letters", "--key=k", "--plan=free", "--limits=off",
		"--decisions=windows=sliding", "--cold-start=1s", "--latency=1m", "--seed=7", "--calls=8", "--state=s", "--ready-file=r", "--json", "--log=off",
	}, nil)
	require.NoError(t, err)
	assert.Equal(t, &config{addr: "[::1]:9", readyFile: "r", statePath: "s", json: true, log: "off", allowRemote: true, control: control.Options{
		Hosts: []string{"a", "b"}, Token: "token-16-letters", Key: "k", ColdStart: time.Second, Latency: time.Minute, Seed: 7, Calls: 8,
		Plan: "free", Limits: "off", Decisions: "windows=sliding",
	}}, c)
	c, err = parse(nil, nil)
	require.NoError(t, err)
	assert.Equal(t, &config{addr: "127.0.0.1:8460", log: "auto", control: control.Options{
		Seed: 1, Calls: 10_000, Plan: "preview", Limits: "plan",
	}}, c)
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
