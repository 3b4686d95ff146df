package main

import (
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

// observed runs observe against a fake behind a socket. It never waits: the
// budget has no wait.
func observed(t *testing.T, args []string, opts ...fakeserver.Option) (status int, stdout, stderr string, fake *fakeserver.Server) {
	t.Helper()
	fake = fakeserver.New(t, append(opts, fakeserver.WithUnknownRoutes())...)
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	environment := []string{"AGENT_MESSAGING_BASE_URL=" + server.URL, "AGENT_MESSAGING_API_KEY=" + fake.Key()}
	var out, problems bytes.Buffer
	args = append([]string{"observe", "--budget", "wait=0s"}, args...)
	status = run(context.Background, args, environment, &out, &problems)
	return status, out.String(), problems.String(), fake
}

// TestObserve: one command asks, keeps earlier answers and compares, as a cron job uses it.
func TestObserve(t *testing.T) {
	file := filepath.Join(t.TempDir(), "observed.json")
	cron := []string{"--out", file, "--baseline", file}
	status, stdout, stderr, fake := observed(t, cron)
	assert.Equal(t, exitOK, status, stderr)
	assert.Zero(t, fake.CallCount(fakeserver.ByEndpoint(fakeserver.EndpointSetBYOK)), "that overwrites what is stored")
	assert.Equal(t, "nothing to compare with: "+file+" has no answers yet\n", stdout)
	assert.Contains(t, stderr, "observe spends at most ")

	status, stdout, _, _ = observed(t, cron)
	assert.Equal(t, exitOK, status)
	assert.Equal(t, "unchanged: 20\n", stdout)

	status, stdout, _, _ = observed(t, cron, fakeserver.WithDecision("metadata_cap", 5000))
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, stdout, "changed: metadata_cap: How many characters of compact JSON may metadata have? It was 4096, it is 5000.\n")
	assert.Contains(t, stdout, "not seen this time: sms_status (last seen 2")
	assert.Contains(t, stdout, "unchanged: 18\n")
	assert.Equal(t, "5000", answerIn(t, file, "metadata_cap"))
	assert.Contains(t, answerIn(t, file, "sms_status"), "needs_setup", "an answer that was not seen stays")

	status, stdout, _, _ = observed(t, append(cron, "--budget", "requests=0"))
	assert.Equal(t, exitUnfinished, status)
	assert.Equal(t, 20, strings.Count(stdout, "not seen this time: "))
}

func answerIn(t *testing.T, file, id string) string {
	t.Helper()
	found, err := observe.ReadFile(file)
	require.NoError(t, err)
	return string(found.Decisions[id].Answer)
}

// TestObserveResumes: a question that the file answers is not asked again, and all findings are
// printed.
func TestObserveResumes(t *testing.T) {
	file := tempFile(t, `{"format":1,"decisions":{"status":{"answer":"earlier"}}}`)
	_, stdout, _, fake := observed(t, []string{"--out", file, "--byok"})
	assert.Zero(t, fake.CallCount(fakeserver.ByEndpoint(fakeserver.EndpointStatus), fakeserver.ByKey(fake.Key())))
	assert.Equal(t, `"earlier"`, answerIn(t, file, "status"))
	assert.Contains(t, stdout, "| How many characters of compact JSON may metadata have? | `4096` | `4096` |")
	assert.Equal(t, 1, fake.CallCount(fakeserver.ByEndpoint(fakeserver.EndpointSetBYOK)))
	assert.Equal(t, "4096", answerIn(t, file, "metadata_cap"))
}

// A file that cannot be read ends observe, with a sentence that names the flag.
func TestObserveRefuses(t *testing.T) {
	broken := tempFile(t, `{"4.8/reply":"2026-01-31"}`) // what package contract writes
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--baseline", broken + "x"}, exitUsage, "the first run makes it if --out is the same file"},
		{[]string{"--baseline", broken}, exitUnfinished, "--baseline: observe: the observation has another format"},
		{[]string{"--out", broken}, exitUnfinished, "--out: observe: the observation has another format"},
		{[]string{"--out", "/no/such/folder/file"}, exitUsage, "--out: /no/such/folder/file: must be in a folder that can be written to"},
	} {
		status, _, stderr, _ := observed(t, tt.args)
		assert.Equal(t, tt.status, status, tt.args)
		assert.Contains(t, stderr, tt.want, tt.args)
	}
	o, err := parseObserve([]string{"--byok", "--budget", "byok=1"}, []string{"AGENT_MESSAGING_BASE_URL=http://x", "AGENT_MESSAGING_API_KEY=x"})
	assert.Equal(t, []any{1, nil}, []any{o.budget.BYOKSets, err}, "--byok raises no budget")
	assert.ErrorContains(t, (&observeCommand{target: observe.Target{BaseURL: "127.0.0.1:8460", Key: "x"}}).check(), "set AGENT_MESSAGING_BASE_URL to an address")
	reader, full := io.Pipe()
	_ = reader.Close()
	assert.ErrorIs(t, new(observeCommand).write(new(observe.Observation), full), io.ErrClosedPipe)
}
