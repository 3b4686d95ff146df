package pacer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// newUsed returns a pacer whose state is not empty.
func newUsed(t testing.TB) *Pacer {
	t.Helper()
	p, err := New(PreviewLimits())
	require.NoError(t, err)
	permit, err := p.Acquire(t.Context(), agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents"})
	require.NoError(t, err)
	permit.Done(agentmessaging.AttemptOutcome{StatusCode: 429, Sent: true, LimitKey: "wärm"})
	return p
}

func TestEncoding(t *testing.T) {
	p := newUsed(t)
	value, limits := p.coordinator.ledger.state.encode(), len(p.coordinator.ledger.bounds)
	assert.Equal(t, p.coordinator.ledger.state, decode(value, limits))
	for _, i := range []int{len(value) / 2, len(value) - 8} { // the state, and its checksum
		damaged := slices.Clone(value)
		damaged[i]++
		assert.Nil(t, decode(damaged, limits), "damaged at byte %d", i)
	}
	assert.Nil(t, decode(value, limits+1))
}

// TestValueInTheStore pins the names of the value's members, by which processes of other
// versions read it. If you rename one, or change what one counts, raise format.
func TestValueInTheStore(t *testing.T) {
	const value = `{"Now":1,"Fresh":2,"Limits":[` +
		`{"Due":4,"Slots":[{"Leaves":5,"Calls":6}],"Held":7,"Level":0.5,"Extra":0.25,"Corrected":8,"Quiet":9,"Early":11,"Trials":10}],` +
		`"Gates":{"1":{"Opens":17,"Key":"k","Trace":"t","RefusedSince":18,"LastOpened":19,"Backoff":20}},` +
		`"Members":{"18":19},"Tickets":[{"ID":1,"Batch":true,"Member":20,"Passed":3,"Calls":21,"Due":22}]}`
	assert.Equal(t, 11, format)
	var s state
	require.NoError(t, json.Unmarshal([]byte(value), &s))
	unzipper, err := gzip.NewReader(bytes.NewReader(s.encode()))
	require.NoError(t, err)
	written, err := io.ReadAll(unzipper)
	require.NoError(t, err)
	assert.Equal(t, value+"\n", string(written), "another layout: raise format")
}

// The first call of a limit that is only counted is no trial, however high the limit.
func TestHighestLimit(t *testing.T) {
	p, err := New([]Limit{{Max: math.MaxInt, Window: spec.Day}})
	require.NoError(t, err)
	for b := range p.coordinator.ledger.budgets(everything) {
		b.spend(b.now)
		assert.Zero(t, b.Trials)
	}
}

// A call waits for all calls of the tickets ahead that spend its limits, and for no others.
func TestTicketsAhead(t *testing.T) {
	l := newUsed(t).coordinator.ledger
	of := func(k costSet, member, calls int64) ticket {
		return ticket{Class: quota.Class{ID: int(k)}, Member: member, Calls: calls}
	}
	clear(l.Gates)
	turn := func(ahead ...ticket) time.Duration {
		l.Tickets = ahead
		return l.placeTicket(of(request, 1, 1)).Turn
	}
	some := turn(of(request, 2, 10))
	pace := turn(of(request, 2, 11)) - some
	assert.Equal(t, 3*pace, turn(of(request, 2, 10), of(request|2, 3, 3))-some)
	assert.Equal(t, some, turn(of(request, 2, 10), of(everything&^request, 3, 3)))
}

// A process that has died loses its ticket soon after its turn. A slow process keeps its ticket.
func TestTicketOfADeadProcess(t *testing.T) {
	s := newUsed(t).coordinator.ledger.state
	s.Tickets = []ticket{{Due: s.Now}}
	s.advance(s.Now + 1500*time.Millisecond)
	assert.Len(t, s.Tickets, 1)
	s.advance(s.Now + 1)
	assert.Empty(t, s.Tickets)
}

// However slow the store is, a process takes no more than ten calls at once.
func TestCallsAtOnce(t *testing.T) {
	l := newUsed(t).coordinator.ledger
	clear(l.Gates)
	l.stepDuration = time.Minute
	assert.Len(t, l.grant(quota.Class{ID: int(request)}, 100).Grants, 10)
}

// A process that returns to the store does not shorten a gate that another process has closed.
func TestMergeKeepsTheLaterGate(t *testing.T) {
	l, mine := newUsed(t).coordinator.ledger, newUsed(t).coordinator.ledger
	later := gate{Opens: l.Now + time.Hour}
	l.Gates[request|2] = later // of creations
	mine.Gates = map[costSet]gate{request | 2: {Opens: mine.Now + time.Minute}, request: {Opens: mine.Now + 2*time.Hour, Key: "k", Trace: "t"}}
	l.merge(&mine, true)
	assert.Equal(t, later, l.Gates[request|2])
	assert.Equal(t, gate{Opens: l.Now + 2*time.Hour, Key: "k", Trace: "t"}, l.Gates[request])
}

// The service's support finds the answer that closed a limit by its trace_id.
func TestLocalRefusalHasTheTraceOfTheAnswer(t *testing.T) {
	p := newUsed(t)
	for _, first := range []bool{true, false} { // only the first of two refusals closes the limit
		assert.Equal(t, first, p.coordinator.engine.Done(&quota.Waiter{Clock: quota.RealClock{}}, quota.Outcome{Refused: true, Sent: true, TraceID: "t", RetryAfter: time.Hour}))
	}
	_, err := p.Acquire(t.Context(), agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/warmup"})
	assert.ErrorContains(t, err, "trace t)")
}

// FuzzDecode checks that a value of another program is refused, or does no harm.
func FuzzDecode(f *testing.F) {
	used := newUsed(f)
	f.Add(used.coordinator.ledger.state.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := New(PreviewLimits())
		require.NoError(t, err)
		if s := decode(value, len(p.coordinator.ledger.bounds)); s != nil {
			p.coordinator.ledger.state = s
			p.State()
		}
	})
}
