package fakeserver_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type fullDisk struct{}

var errFull = errors.New("the disk is full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// damages are one change each to the state of a furnished fake, and what is said of it.
var damages = []struct{ old, now, want string }{
	{`"version":1`, `"version":2`, "the state has version 2; this fake reads version 1"},
	{`"version":1`, `"version":"1"`, "the state has version 0"},
	{`"traces":5`, `"traces":5,"extra":1`, `damaged: json: unknown field "extra"`},
	{`"traces":5`, `"traces":-5`, "at least 0"},
	{`"advanced_ns":3600000000000`, `"advanced_ns":-1`, "at least 0"},
	{`"agents":2`, `"agents":-2`, "at least 0"},
	{`"label":"key_000002"`, `"label":"key_000001"`, "keys[1].label: is not key_000002"},
	{`"plan":"pro"`, `"plan":"gold"`, "keys[1].plan: is none of preview"},
	{`"plan":"pro"`, `"plan":""`, "keys[1].plan: is none of preview"},
	{`"provider":"anthropic"`, `"provider":"x"`, "keys[1].byok.provider: is none of openai_compat"},
	{`"limit_key":"key_minute"`, `"limit_key":"key_hour"`, "keys[0].windows: a limit_key is unknown"},
	{`"limit_key":"key_minute"`, `"limit_key":"key_day"`, "keys[0].windows: a limit_key is unknown or is there twice"},
	{`"limit_key":"key_minute"`, `"limit_key":"ip_minute"`, "keys[0].windows: ip_minute does not count here"},
	{`"limit_key":"ip_minute"`, `"limit_key":"key_minute"`, "addresses[0].windows: key_minute does not count here"},
	{`"calls":4}`, `"calls":0}`, "keys[0].windows: key_minute: calls: each has a time"},
	{`"calls":4}`, `"calls":1099511627777}`, "keys[0].windows: key_minute: calls: each has a time"},
	{`"called_from":"192.0.2.1"`, `"called_from":"here"`, "keys[0].called_from: is no IP address"},
	{`"calls":4}`, `"calls":4},{"at":"2001-01-01T00:00:00Z","calls":1}`, "calls: each has a time, in order"},
	{`"calls":4}`, `"calls":4},{"at":"2101-01-01T00:00:00Z","calls":1}`, "keys[0].last: is missing, or before"},
	{`"address":"2001:db8::1",`, `"address":"192.0.2.1",`, "addresses[1].address: is there twice"},
	{`"address":"2001:db8::1",`, `"address":"here",`, "damaged"},
	{`"number":1`, `"number":0`, "agent_list[0].agent_id, status and number: one is missing"},
	{`"agent_id":"agent_000002"`, `"agent_id":"agent_000001"`, "agent_list[1].agent_id: is there twice"},
	{`"key":"key_000002"`, `"key":"key_000009"`, "agent_list[1].key: no key has this label"},
	{`"sms":{"status":"pending"}`, `"sms":{"status":""}`, "agent_list[1].sms.status: is missing"},
	{`"text":"again"`, `"text":"` + strings.Repeat("a", 4001) + `"`, "agent_list[0].exchanges[1].text: at most 4000 characters"},
	{`{"k":[1,"é"]}`, `{"k":1,"k":2}`, "agent_list[0].Metadata: a member is there twice"},
}

func TestReadStateRefuses(t *testing.T) {
	from, _ := furnished(t)
	file := written(t, from)
	fake, _ := newFake(t, frozen())
	before := written(t, fake)
	for whole, want := range map[string]string{
		"": "not one JSON document", file[:len(file)-5]: "not one JSON document", file + "{}": "not one JSON document",
		"[]": "not the state of a fake", `{"log":{}}`: "its format is not agentmessaging-fake-state",
	} {
		assert.ErrorContains(t, fake.ReadState(strings.NewReader(whole)), want, clipped(whole))
	}
	for _, tt := range damages {
		require.Contains(t, file, tt.old)
		damaged := strings.Replace(file, tt.old, tt.now, 1)
		assert.ErrorContains(t, fake.ReadState(strings.NewReader(damaged)), tt.want, tt.now)
	}
	wantSame(t, before, written(t, fake), "the state, which has not changed")
	assert.ErrorContains(t, fake.ReadState(iotest.ErrReader(errors.New("the disk is gone"))), "fakeserver: ReadState: the disk is gone")
	for _, write := range []func(io.Writer) error{
		from.WriteState,
		func(w io.Writer) error { return from.WriteCalls(w) },
		func(w io.Writer) error { return from.WriteHAR(w) },
	} {
		assert.ErrorIs(t, write(fullDisk{}), errFull)
	}
}

// A window without times would have closed: its limit would be open again.
func TestReadStateRefusesWithoutTimes(t *testing.T) {
	from, _ := furnished(t)
	file := written(t, from)
	fake, _ := newFake(t, frozen())
	times := regexp.MustCompile(`"(issued_at|at|created_at|updated_at|time|last)":"2[^"]*"`).FindAllStringIndex(file, -1)
	require.Greater(t, len(times), 10)
	for _, at := range times {
		name, _, _ := strings.Cut(file[at[0]:], ":")
		assert.Error(t, fake.ReadState(strings.NewReader(file[:at[0]]+name+`:"0001-01-01T00:00:00Z"`+file[at[1]:])), file[at[0]-20:at[1]])
	}
}

func FuzzReadState(f *testing.F) {
	fake, _ := furnished(f)
	file := written(f, fake)
	f.Add([]byte(file))
	f.Add([]byte(file[:len(file)/2]))
	f.Add([]byte(`{"format":"agentmessaging-fake-state","version":1,"keys":[{"label":"key_000001","plan":"free"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		again, _ := newFake(t, slidingWindows())
		if again.ReadState(bytes.NewReader(raw)) != nil {
			return
		}
		file := written(t, again)
		twin, _ := newFake(t, slidingWindows())
		require.NoError(t, twin.ReadState(strings.NewReader(file)), "what was read can be written and read again")
		wantSame(t, file, written(t, twin), "the state")
	})
}
