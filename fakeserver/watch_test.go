package fakeserver_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func seqs(calls []fakeserver.Call) []int {
	numbers := []int{}
	for _, c := range calls {
		numbers = append(numbers, c.Seq)
	}
	return numbers
}

func TestOnCall(t *testing.T) {
	fake, c := newFake(t, frozen())
	var seen []fakeserver.Call
	stop := fake.OnCall(func(call fakeserver.Call) {
		assert.Equal(t, call, fake.Calls()[len(fake.Calls())-1], "it is in Calls already")
		seen = append(seen, call)
	}, fakeserver.ByEndpoint(fakeserver.EndpointCreateAgent))
	c.call("GET", "/v1/status", noBody)
	c.agent(emptyBody)
	fake.Reset()
	c.agent(emptyBody)
	assert.Equal(t, []int{2, 3}, seqs(seen))
	assert.Equal(t, 200, seen[0].Status)
	seen[0].Header.Set("X", "mine")
	stop()
	stop()
	c.agent(emptyBody)
	assert.Len(t, seen, 2)
}

func TestPanicOfAWatcher(t *testing.T) {
	watch, fake, c := newSpied(t)
	fake.OnCall(func(fakeserver.Call) { panic("oops") }, fakeserver.ByKey(c.key))
	c.call("GET", "/v1/status", noBody).wantOK(t)
	assert.Equal(t, []string{"fakeserver: the function of OnCall (ByKey(key_000001)) panicked: oops"}, watch.errors)
}

func TestCallsAfter(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithCallLimit(5))
	assert.Empty(t, fake.Admin().CallsAfter(0, 1))
	assert.Zero(t, fake.Admin().LastSeq())
	for range 7 {
		c.call("GET", "/v1/status", noBody)
		c.call("GET", "/v1/byok", noBody)
	}
	assert.Equal(t, 14, fake.Admin().LastSeq())
	assert.Equal(t, []int{10, 11, 12, 13, 14}, seqs(fake.Admin().CallsAfter(0, 9)), "the ring has turned, and what was dropped is missing")
	assert.Equal(t, []int{12, 13}, seqs(fake.Admin().CallsAfter(11, 2)))
	assert.Equal(t, []int{12, 14}, seqs(fake.Admin().CallsAfter(11, 2, fakeserver.ByEndpoint(fakeserver.EndpointGetBYOK))))
	assert.Empty(t, fake.Admin().CallsAfter(14, 1))
	fake.Reset()
	assert.Empty(t, fake.Admin().CallsAfter(0, 9))
	c.call("GET", "/v1/status", noBody)
	assert.Equal(t, []int{15}, seqs(fake.Admin().CallsAfter(0, 9)), "numbers go on")
}

// By the clock of the bubble, and in the archive in milliseconds.
func TestCallsSayHowLongTheyTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t, fakeserver.WithColdStart(time.Second))
		agent := c.agent(emptyBody)
		fake.Inject(fakeserver.Latency(1500*time.Microsecond), fakeserver.ByAgent(agent))
		fake.Inject(fakeserver.DripReply(1, time.Minute), fakeserver.ByAgent(agent))
		c.send(agent, "hello")
		calls := fake.Calls()
		assert.Zero(t, calls[0].Took)
		assert.Equal(t, time.Second+1500*time.Microsecond, calls[1].Took, "without the way of the answer")
		var out bytes.Buffer
		require.NoError(t, fake.WriteHAR(&out, fakeserver.ByAgent(agent)))
		var har harFile
		require.NoError(t, json.Unmarshal(out.Bytes(), &har))
		e := har.Log.Entries[0]
		assert.Equal(t, []float64{1001.5, 0, 1001.5, 0}, []float64{*e.Time, *e.Timings.Send, *e.Timings.Wait, *e.Timings.Receive})
	})
}

// The clock of a machine may be set back in the middle of a call.
func TestCallsTakeNoNegativeTime(t *testing.T) {
	now := time.Unix(year2040, 0)
	fake, c := newFake(t, fakeserver.WithClock(func() time.Time { now = now.Add(-time.Second); return now }))
	c.call("GET", "/v1/status", noBody)
	assert.Zero(t, fake.Calls()[0].Took)
}
