package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// callKey is the key of the Call in the context of a request.
type callKey struct{}

// Observe implements agentmessaging.Observer.
func (x *execution) Observe(ctx context.Context, event agentmessaging.Event) context.Context {
	switch e := event.(type) {
	case agentmessaging.CallStart:
		return context.WithValue(ctx, callKey{}, x.begin(e))
	case agentmessaging.CallEnd:
		if c, begun := ctx.Value(callKey{}).(*Call); begun { // begin may have ended the goroutine
			x.end(c, e)
		}
	}
	return ctx
}

const (
	// extraCalls is how many calls a scenario may make in addition to two for each request
	// that it may send. It is needed because a call that the client refuses sends no
	// request, and a 429 does not count as one.
	extraCalls = 100
	// lateCalls is how many calls a scenario may make after its context has ended, before
	// the goroutine that makes them is ended.
	lateCalls = 10
)

// begin records the start of a call. It ends a scenario that never stops calling.
func (x *execution) begin(e agentmessaging.CallStart) *Call {
	c := &Call{AgentID: e.AgentID, spec: spec.Find(e.Endpoint.Method, e.Endpoint.Path), begun: x.record.fake.Now(), goroutine: currentGoroutine()}
	c.Endpoint, c.fromScenario = endpointOf(c.spec), c.goroutine == x.goroutine
	x.whileRunning(func() {
		if x.record.ended == "" {
			x.collectTornLocked(false)
			x.record.calls = append(x.record.calls, c)
			if made := len(x.record.calls); made > extraCalls+2*x.record.maxRequests {
				x.stopLocked("it had made " + printable.Plural(made, "call"))
			}
		} else if x.callsAfterEnd++; x.callsAfterEnd > lateCalls {
			runtime.Goexit()
		}
	})
	return c
}

// end records the end of a call. The process may die before the application sees the
// result.
func (x *execution) end(c *Call, e agentmessaging.CallEnd) {
	x.whileRunning(func() {
		x.nameLocked(c, "unsent") // a call that has no name yet has sent nothing
		c.AgentID = e.AgentID
	})
	x.moment(c.Name+"/dies_answered", "after the answer of "+c.Name+" had arrived")
	x.whileRunning(func() {
		c.ended, c.Err = true, e.Err
		if start := errorStart.FindString(fmt.Sprint(e.Err)); start != "" {
			x.record.seen.errors[start] = true
		}
	})
}

// sentBody has the members of a request's body that identify its call.
type sentBody struct {
	Text        string `json:"text"`
	CustomerRef string `json:"customer_ref"`
	APIKey      string `json:"api_key"`
	LLM         struct {
		APIKey string `json:"api_key"`
	} `json:"llm"`
}

// identify reads the first request of a call, and names the call.
func (x *execution) identify(c *Call, body []byte) {
	var s sentBody
	_ = json.Unmarshal(body, &s)
	h := fnv.New64a()
	x.whileRunning(func() {
		agents := x.record.seen.agents
		if a, found := x.record.fake.Agent(c.AgentID); found {
			agents[c.AgentID] = fmt.Sprint(a.CustomerRef, a.SystemPrompt, string(a.Metadata))
		}
		fmt.Fprint(h, string(body), agents[c.AgentID]) // not the identifier, which depends on the order of the goroutines
		c.content, c.subject, c.key = h.Sum64(), s.Text+s.CustomerRef, s.APIKey+s.LLM.APIKey
		x.nameLocked(c, fmt.Sprintf("%06x", c.content&0xffffff))
	})
}

// nameLocked names a call by its endpoint and its number among the calls of this
// endpoint. Calls of other goroutines than the scenario's may come in any order. So the
// name of such a call also has a digest of its content, and its number counts the calls
// with the same content.
func (x *execution) nameLocked(c *Call, suffix string) {
	if c.Name != "" {
		return
	}
	c.Name = c.spec.Name
	if !c.fromScenario {
		c.Name += "_" + suffix
	}
	x.names[c.Name]++
	if n := x.names[c.Name]; c.fromScenario || n > 1 {
		c.Name = fmt.Sprintf("%s_%d", c.Name, n)
	}
}

// transport sends the requests of a client, with the faults of the run's plan.
type transport struct {
	*execution
	direct http.RoundTripper
}

// planHeader is a header that shows the plan of a request in the records of the fake.
const planHeader = "Sweep-Plan"

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := req.Context().Value(callKey{}).(*Call)
	if c.Name == "" {
		t.identify(c, exchange.PeekBody(req))
	}
	t.moment(c.Name+"/dies_before", "before "+c.Name+" left")
	resp, err := t.attempt(req, c)
	t.moment(c.Name+"/dies_arrived", "after "+c.Name+" had arrived")
	return resp, err
}

// attempt sends a request, with its fault if it has one, and records the result. If the
// scenario was ended, it refuses the request.
func (t *transport) attempt(req *http.Request, c *Call) (*http.Response, error) {
	fault, ended := t.beginAttempt(c)
	if ended {
		return nil, context.Canceled
	}
	resp, err := t.send(req, c, fault)
	a := Attempt{Fault: fault.Name, Err: err}
	if resp != nil {
		a.Status = resp.StatusCode
	}
	t.whileRunning(func() {
		t.underWay--
		t.noteProviderKeyLocked(t.record.fake)
		c.Attempts = append(c.Attempts, a)
		if a.Status != http.StatusTooManyRequests {
			t.record.requests++
		}
		if t.refusedInARow[c.goroutine]++; a.Status != http.StatusUnauthorized && a.Status != http.StatusPaymentRequired {
			t.refusedInARow[c.goroutine] = 0
		}
	})
	return resp, err
}

// beginAttempt returns the fault for a request, if any. It also reports whether the
// scenario was ended, so that the request must not be sent. It ends a scenario that takes
// too long.
func (x *execution) beginAttempt(c *Call) (f faults.Fault, ended bool) {
	running := x.whileRunning(func() {
		r := &x.record
		r.deadKeyRequests = max(r.deadKeyRequests, x.refusedInARow[c.goroutine])
		if elapsed := r.fake.Now().Sub(r.begun); elapsed > r.maxLasted {
			x.overdueLocked(elapsed)
		}
		if ended = r.ended != ""; ended {
			return
		}
		x.underWay++
		x.noteProviderKeyLocked(r.fake)
		x.sentKey = cmp.Or(c.key, x.sentKey)
		if x.plan.hit(x.stage, c.Name, c.spec) {
			f = x.plan.fault
		}
		if f.Status == http.StatusNotFound && c.onAgent() {
			r.seen.gone[c.AgentID] = true
		}
	})
	return f, ended || !running
}

// noteProviderKeyLocked notes which provider key is stored. A fingerprint that is new
// belongs to the key that was sent last.
func (x *execution) noteProviderKeyLocked(fake *fakeserver.Server) {
	stored, found := fake.BYOK(fake.Key())
	if _, known := x.record.seen.providerKeys[stored.Fingerprint]; found && !known {
		x.record.seen.providerKeys[stored.Fingerprint] = x.sentKey
	}
	x.record.hadKey = x.record.hadKey || found
}

// send makes an attempt, with its fault if it has one.
func (t *transport) send(req *http.Request, c *Call, f faults.Fault) (*http.Response, error) {
	if _, found := t.record.fake.Agent(c.AgentID); found && f == agentGone {
		t.record.fake.RemoveAgent(c.AgentID)
	}
	switch {
	case c.expired:
		httptrace.ContextClientTrace(req.Context()).GetConn("") // as net/http would before it dials; the client always sets this hook
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
	case f.Name == "" || f == agentGone:
		return t.direct.RoundTrip(req)
	case t.bubble || f.Duration == 0:
		return t.inject(req, f.Fault)
	}
	return t.slow(req, c, f)
}

// slow makes an attempt with a fault that takes time: no answer comes, or it comes late.
// inject would let the fault take real time.
func (t *transport) slow(req *http.Request, c *Call, f faults.Fault) (resp *http.Response, err error) {
	if f.Name != faults.Silence {
		resp, err = t.direct.RoundTrip(req)
	} else if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body) // the client has sent the whole request
	}
	if err == nil {
		err = t.passTime(req.Context(), c, f.Duration)
	}
	if err != nil {
		return nil, err // an answer need not be closed: its body is in memory
	}
	return resp, nil
}

// inject applies a fault of the fake to one request.
func (t *transport) inject(req *http.Request, f fakeserver.Fault) (*http.Response, error) {
	mine := fakeserver.Where(func(c fakeserver.Call) bool { return c.Header.Get(planHeader) != "" })
	injection := t.record.fake.Inject(f, mine)
	defer injection.Remove()
	req.Header.Set(planHeader, t.plan.String())
	return t.direct.RoundTrip(req)
}

// passTime moves the fake's clock by d, but not beyond the deadline of the context.
// Inside a bubble the fake's own faults take their time. If the deadline is reached,
// passTime marks the call as expired. Outside of a bubble the context ends in real time,
// so without the mark another attempt could be sent.
func (t *transport) passTime(ctx context.Context, c *Call, d time.Duration) error {
	deadline, has := ctx.Deadline()
	left := time.Until(deadline)
	switch {
	case has && left <= d:
		c.expired = true
		return cmp.Or(t.clock.Sleep(ctx, left), context.DeadlineExceeded)
	case d == faults.Forever:
		return errors.New("sweep: an answer that never comes, and a context without a deadline")
	}
	return t.clock.Sleep(ctx, d)
}
