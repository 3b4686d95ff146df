package agentmessaging_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// The fault matrix, continued: the fake's catalogue, so that what a user
// injects in a test has the effect that the page states.

var fakeFaults = []struct {
	fault    fakeserver.Fault
	name     string
	deadline time.Duration
}{
	{fault: fakeserver.Answer(500, ""), name: "Answer(500)"},
	{fault: fakeserver.RawAnswer(502, "text/html", "<h1>Bad gateway</h1>"), name: "RawAnswer(502, HTML)"},
	{fault: fakeserver.RawAnswer(200, "application/json", `{"reply_`), name: "RawAnswer(200, broken JSON)"},
	{fault: fakeserver.RateLimited("20"), name: "RateLimited(20)"},
	{fault: fakeserver.Latency(30 * time.Millisecond), name: "Latency(30ms)"},
	{fault: fakeserver.Hang(), name: "Hang()", deadline: 10 * time.Second},
	{fault: fakeserver.CloseEarly(), name: "CloseEarly()"},
	{fault: fakeserver.ResetConnection(), name: "ResetConnection()"},
	{fault: fakeserver.LoseReply(fakeserver.CloseEarly()), name: "LoseReply(CloseEarly())"},
	{fault: fakeserver.LoseReply(fakeserver.ResetConnection()), name: "LoseReply(ResetConnection())"},
	{fault: fakeserver.LoseReply(fakeserver.Hang()), name: "LoseReply(Hang())", deadline: 10 * time.Second},
	{fault: fakeserver.LoseReply(fakeserver.Answer(504, "")), name: "LoseReply(Answer(504))"},
	{fault: fakeserver.LoseReply(fakeserver.RawAnswer(200, "text/html", "<html>")), name: "LoseReply(RawAnswer(200, HTML))"},
	{fault: fakeserver.TruncateReply(10), name: "TruncateReply(10)"},
	{fault: fakeserver.ResetReply(10), name: "ResetReply(10)"},
	{fault: fakeserver.DripReply(16, time.Millisecond), name: "DripReply(16, 1ms)"},
	{fault: fakeserver.GoAway(), name: "GoAway()"},
}

// TestFakeFaultMatrix runs every endpoint against every fault of the fake, over
// both in-memory ways, and one of each column over HTTP/2.
func TestFakeFaultMatrix(t *testing.T) {
	page := newPage("Injected into every attempt", "GET, PUT, DELETE", "POST")
	for _, fault := range fakeFaults {
		var row [2]string
		for _, call := range nineCalls {
			column := columnOf(call.method)
			first := row[column] == ""
			for _, direct := range []bool{false, true} {
				c := faulted(t, fault.fault, fault.deadline, direct, call.do)
				if fault.name == "DripReply(16, 1ms)" {
					c.elapsed = 0 // as long as the body is
				}
				if first && !direct {
					row[column] = c.String()
				}
				assert.Equal(t, row[column], c.String(), "%s, %s, direct %t", call.name, fault.name, direct)
			}
			if !first {
				continue
			}
			over := faultedOverHTTP2(t, fault.fault, fault.deadline, call.do)
			assert.True(t, strings.HasPrefix(row[column], over+", "), "%s, %s, over HTTP/2: %s", call.name, fault.name, over)
		}
		page.row("`"+fault.name+"`", row[0], row[1])
	}
	page.hold(t, "fake")
}

func faulted(t *testing.T, fault fakeserver.Fault, deadline time.Duration, direct bool, do func(context.Context, *agentmessaging.Client) error) (c cell) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t)
		fake.AddAgent(fake.Key(), fakeserver.Agent{ID: "agent_1"})
		fake.Inject(fault)
		hc := fake.HTTPClient(t)
		if direct {
			hc = &http.Client{Transport: fake.Direct()}
		}
		client := clientOf(t, fake, fake.Key(), agentmessaging.WithHTTPClient(hc), agentmessaging.WithRandom(func() float64 { return 0 }))
		ctx := t.Context()
		if deadline > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, deadline)
			defer cancel()
		}
		begin := time.Now()
		err := do(ctx, client)
		c = cell{len(fake.Calls()), describe(err), time.Since(begin)}
		holdsLaws(t, err, "canary")
	})
	return c
}

// faultedOverHTTP2 is the same on a socket, where waits take no time: the
// client's move the fake's clock, and a deadline is a moment.
func faultedOverHTTP2(t *testing.T, fault fakeserver.Fault, deadline time.Duration, do func(context.Context, *agentmessaging.Client) error) string {
	fake := fakeserver.New(t)
	fake.AddAgent(fake.Key(), fakeserver.Agent{ID: "agent_1"})
	fake.Inject(fault)
	baseURL, transport := overTLS(t, fake)
	client, err := agentmessaging.NewClient(baseURL, fake.Key(), agentmessaging.WithClock(fake),
		agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	ctx := t.Context()
	if deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
	}
	err = do(ctx, client)
	holdsLaws(t, err, "canary")
	c := cell{requests: len(fake.Calls()), outcome: describe(err)}
	return strings.TrimSuffix(c.String(), ", 0s")
}
