package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// badFlags are flags, some with the file BROKEN, MISTYPED or RUNNING, and the error for
// each.
var badFlags = []struct{ flag, want string }{
	{"--addr=8460", "--addr: must be host and port, such as 127.0.0.1:8460"},
	{"--addr=127.0.0.1:65536", "--addr: must be host and port, such as 127.0.0.1:8460 or [::1]:0, with a port up to 65535"},
	{"--addr=0.0.0.0:0", "--addr: must be a loopback address such as 127.0.0.1:8460; --allow-remote allows others"},
	{"--allow-remote=maybe", "--allow-remote: must be true or false"},
	{"--token=secret-15-chars", "--token: must be 16 to 256 characters of visible ASCII"},
	{"--plan=", "--plan: must not be empty; leave it out instead"},
	{"--log=loud", "--log: must be one of auto, text, json, off"},
	{"--key=secret,key", "--key: must be visible ASCII characters without a comma"},
	{"--limits=none", "--limits: must be off, one of preview, free, pro, byok, or calls in a window such as key_minute=5"},
	{"--limits=key_minute=5,key_minute=6", "--limits: a name appears twice"},
	{"--decisions=windows", "--decisions: must be questions with answers, such as windows=sliding"},
	{"--cold-start=-1s", "--cold-start: must be a duration such as 250ms, 90s or 1h30m, from 0s to 876000h0m0s"},
	{"--calls=0", "--calls: must be an integer from 1 to 1000000"},
	{"--replies=/no/such/file", "--replies: must be a file that can be read"},
	{"--replies=BROKEN", "--replies: [0].replies: give at least one"},
	{"--replies=MISTYPED", "--replies: [1].match.endpoint: must be one of GET /v1/status, "},
	{"--state=BROKEN", "--state: BROKEN: not the state of a fake: its format is not agentmessaging-fake-state; move it away to start with an empty state"},
	{"--state=RUNNING", "--state: RUNNING: open RUNNING: text file busy; move it away to start with an empty state"}, // it cannot be written, even by root
	{"--ready-file=/dev/null", "--ready-file: /dev/null: must be a regular file, or not be there"},
	{"--nothing", "flag provided but not defined: -nothing; --help lists the flags"},
	{"start", "there is no such command; the commands are version, observe, help"},
	{"help more", "one argument too many"},
	{"observe", "observe: set AGENT_MESSAGING_BASE_URL to an address such as https://service.example, without /v1, and AGENT_MESSAGING_API_KEY to a key"},
	{"observe more", "observe: one argument too many"},
	{"observe --budget cats=1", `observe: invalid value "cats=1" for flag -budget: the parts are requests, creations, byok, warmups and wait`},
	{"observe --budget creations=1,requests=1e9", `observe: invalid value "creations=1,requests=1e9" for flag -budget: requests: must be a whole number, and wait a duration such as 6m`},
	{"observe --nothing", "observe: flag provided but not defined: -nothing; observe --help lists the flags"},
}

// The error for a wrong flag is one sentence. It names the flag and says what is allowed. It
// does not repeat the value, which may be a secret.
func TestBadFlags(t *testing.T) {
	broken := tempFile(t, `[{"replies":[]}]`)
	mistyped := tempFile(t, `[{"replies":[{"text":"a"}]},{"replies":[{"text":"a"}],"match":{"endpoint":"GET /v1/statu"}}]`)
	names := strings.NewReplacer("BROKEN", broken, "MISTYPED", mistyped, "RUNNING", os.Args[0])
	for _, tt := range badFlags {
		args := strings.Fields(names.Replace(tt.flag))
		if strings.HasPrefix(tt.flag, "--") && !strings.HasPrefix(tt.flag, "--addr") {
			args = append(args, "--addr=127.0.0.1:0")
		}
		status, sentence := refused(t, args)
		assert.Equal(t, exitUsage, status, tt.flag)
		assert.Contains(t, sentence, "agentmessaging-fake: "+names.Replace(tt.want), tt.flag)
		assert.NotContains(t, sentence, "secret", tt.flag)
	}
	left, err := os.ReadFile(broken)
	require.NoError(t, err)
	assert.Equal(t, `[{"replies":[]}]`, string(left), "a file that cannot be read is not written over")
}

// Each flag of the fake has its effect, as the control interface shows it.
func TestFlags(t *testing.T) {
	a := newAPI(t,
		"--key=k", "--plan=pro", "--limits=key_day=3,key_minute=2", `--decisions=windows=sliding,sms_status={"none":"disabled","sandbox":"pending"}, clear_nothing=404`, "--cold-start=1ms",
		"--latency=1ms", "--calls=1", "--replies", tempFile(t, `{"replies":[{"text":"from the file"}]}`),
		"--like", tempFile(t, `{"format":1,"decisions":{"metadata_cap":{"answer":100}}}`),
	)
	assert.Equal(t, "k", a.startup.APIKey)
	assert.NotContains(t, a.get("/info"), `"key"`, "a key that was chosen may be a secret")
	assert.Contains(t, a.get("/keys/key_000001"), `{"limit_key":"key_minute","max":2,`)
	assert.Regexp(t, `"none":"disabled","sandbox":"pending"},"default":.*{"answer":"sliding","default":"fixed","id":"windows","observed":false,"question":"[^"]+"}`, a.get("/decisions"))
	assert.Regexp(t, `{"answer":100,"default":4096,"id":"metadata_cap","observed":true,"question":"[^"]+"}`, a.get("/decisions"))
	a.play(step{"DELETE /v1/byok", "", 404, ""}, step{"DELETE /v1/byok", "", 404, ""})
	assert.Contains(t, a.get("/calls"), `"dropped":1`)
	for limits, want := range map[string]string{"off": `"max":null,"used":0,"left":null`, "byok": `"max":600`} {
		assert.Contains(t, newAPI(t, "--limits", limits).get("/keys/key_000001"), `{"limit_key":"key_minute",`+want, limits)
	}
}

// Each flag has a variable. If both are given, the flag counts.
func TestEnvironment(t *testing.T) {
	for _, o := range new(config).options() {
		if o.name == "state" || o.name == "ready-file" {
			continue // any path will do, until it is written
		}
		variable := "AGENT_MESSAGING_FAKE_" + strings.ToUpper(strings.ReplaceAll(o.name, "-", "_"))
		_, sentence := refused(t, nil, variable+"=bad, value:", "AGENT_MESSAGING_FAKE_ADDR=127.0.0.1:0")
		assert.Contains(t, sentence, variable+": ", o.name)
	}
	_, sentence := refused(t, nil, "AGENT_MESSAGING_FAKE_STAET=x", "AGENT_MESSAGING_FAKE_ADDR=127.0.0.1:0")
	assert.Contains(t, sentence, "AGENT_MESSAGING_FAKE_STAET: no flag has this variable; --help lists them")
	c, err := parse([]string{"--addr=:0"}, []string{"AGENT_MESSAGING_FAKE_LATENCY=", "AGENT_MESSAGING_FAKE_KEY=mine", "AGENT_MESSAGING_FAKE_ADDR=bad"})
	require.NoError(t, err, "an empty variable is as none, and a flag wins")
	assert.Equal(t, "mine", c.control.Fake.Key())
	assert.Equal(t, ":0", c.addr)
}

// Help and version are printed on standard output.
func TestHelpAndVersion(t *testing.T) {
	for _, command := range []string{"--help", "-h", "help"} {
		status, errs, out := ended(t, []string{command}, "AGENT_MESSAGING_FAKE_CALLS=bad")
		assert.Equal(t, exitOK, status, command)
		assert.Contains(t, out, "agentmessaging-fake [version | observe | help] [flags]\n")
		assert.Regexp(t, `\n  --addr .*\n +AGENT_MESSAGING_FAKE_ADDR, default 127\.0\.0\.1:8460\n(?s:.*)\n  --log `, out, command)
		assert.Empty(t, errs, command)
	}
	for _, command := range []string{"--version", "version"} {
		_, _, out := ended(t, []string{command})
		assert.Regexp(t, `^agentmessaging-fake \S+\n$`, out, command)
	}
}

// --state saves the state at the end. The program starts with the state of the file, also after
// a reset.
func TestState(t *testing.T) {
	path := tempFile(t, "")
	a := newAPI(t, "--state", path)
	a.play(step{"POST /v1/agents", `{"customer_ref":"kept"}`, 200, ""})
	a.stop()
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	link := tempFile(t, "")
	require.NoError(t, os.Symlink(path, link))
	again := newAPI(t, "--state", link)
	again.play(step{"POST /v1/agents", "{}", 200, ""}, step{"POST /reset", "", 204, ""})
	again.play(step{"GET /agents", "", 200, `{"agents":[{"customer_ref":"kept"}]}`})
	again.stop()
	target, err := os.Readlink(link)
	require.NoError(t, err)
	assert.Equal(t, path, target, "the link stays")
	left, err := os.ReadDir(strings.TrimSuffix(path, "/file"))
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file is left")

	_, sentence := refused(t, []string{"--addr=:0", "--state", path, "--ready-file", link})
	assert.Contains(t, sentence, "--ready-file: must not be the file of --state")
}
