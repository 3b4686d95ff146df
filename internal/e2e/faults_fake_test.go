package e2e_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// The fault matrix, continued: the fake's catalogue, so that what a user
// injects in a test has the effect that the page states.

var fakeFaults = []struct {
	fault fakeserver.Fault
	name  string
}{
	{fakeserver.Answer(500, ""), "Answer(500)"},
	{fakeserver.RawAnswer(502, "text/html", "<h1>Bad gateway</h1>"), "RawAnswer(502, HTML)"},
	{fakeserver.RawAnswer(200, "application/json", `{"reply_`), "RawAnswer(200, broken JSON)"},
	{fakeserver.RateLimited("20"), "RateLimited(20)"},
	{fakeserver.Latency(30 * time.Millisecond), "Latency(30ms)"},
	{fakeserver.Hang(), "Hang()"},
	{fakeserver.CloseEarly(), "CloseEarly()"},
	{fakeserver.ResetConnection(), "ResetConnection()"},
	{fakeserver.LoseReply(fakeserver.CloseEarly()), "LoseReply(CloseEarly())"},
	{fakeserver.LoseReply(fakeserver.ResetConnection()), "LoseReply(ResetConnection())"},
	{fakeserver.LoseReply(fakeserver.Hang()), "LoseReply(Hang())"},
	{fakeserver.LoseReply(fakeserver.Answer(504, "")), "LoseReply(Answer(504))"},
	{fakeserver.LoseReply(fakeserver.RawAnswer(200, "text/html", "<html>")), "LoseReply(RawAnswer(200, HTML))"},
	{fakeserver.TruncateReply(10), "TruncateReply(10)"},
	{fakeserver.ResetReply(10), "ResetReply(10)"},
	{fakeserver.DripReply(16, time.Millisecond), "DripReply(16, 1ms)"},
	{fakeserver.GoAway(), "GoAway()"},
}

// TestFakeFaultMatrix runs every endpoint against every fault of the fake, over
// both in-memory ways, and one of each column over HTTP/2.
func TestFakeFaultMatrix(t *testing.T) {
	page := newPage("Fault", "GET, PUT, DELETE", "POST")
	for _, f := range fakeFaults {
		row := columns(t, f.name, clienttest.Calls, strings.HasPrefix(f.name, "RateLimited"), func(call clienttest.Call, first bool) (c cell) {
			synctest.Test(t, func(t *testing.T) {
				c = faulted(t, f.fault, overMemory, true, call.Do)
				assert.Equal(t, c, faulted(t, f.fault, directly, true, call.Do), "%s, %s: direct", call.Name, f.name)
			})
			if first {
				over := faulted(t, f.fault, overTLS, false, call.Do)
				over.elapsed = c.elapsed
				assert.Equal(t, c, over, "%s, %s: over HTTP/2", call.Name, f.name)
			}
			return c
		})
		page.row("`"+f.name+"`", row[0], row[1])
	}
	page.hold(t, "fake")
}

// faulted makes a call every attempt of which meets the fault. On a socket,
// where time is not virtual, waits take none: they move the fake's clock, and a
// call that would hang is cancelled.
func faulted(t *testing.T, fault fakeserver.Fault, way wayToFake, virtual bool, do clienttest.Do) cell {
	fake, err := fakeserver.Open()
	require.NoError(t, err)
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{ID: "agent_1"})
	fake.Inject(fault)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	opts := []agentmessaging.Option{clienttest.Jitter(0)}
	if !virtual {
		opts = append(opts, agentmessaging.WithClock(fake))
		if strings.Contains(fault.String(), "Hang") {
			fake.OnCall(func(fakeserver.Call) { cancel() })
		}
	}
	if !strings.Contains(fault.String(), "Hang") {
		ctx = t.Context() // a wait that would pass its deadline is not begun
	}
	client := clientBy(t, fake, way, opts...)
	begin := time.Now()
	err = do(ctx, client)
	clienttest.HoldsLaws(t, err, "canary")
	c := cell{len(fake.Calls()), clienttest.Outcome(err), time.Since(begin)}
	if strings.HasPrefix(fault.String(), "DripReply") {
		c.elapsed = 0 // as long as the body is
	}
	return c
}
