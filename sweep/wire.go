package sweep

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Call is a call of the client, as its events and its requests show it.
type Call struct {
	// Name names the call within the scenario: SendMessage_2 is the second
	// SendMessage. A call of another goroutine than the scenario's is named by
	// what it sends and to whom instead, such as SendMessage_9f1c2a, in all runs
	// and restarts alike. SendMessage_000000 sent nothing: the client refused it.
	Name     string
	Endpoint fakeserver.Endpoint
	AgentID  string    // the agent that it names, or has created
	Attempts []Attempt // those that left the client
	Err      error     // what the client returned; nil too while the call is under way

	spec    *spec.Endpoint
	begun   time.Time // by the fake's clock
	ended   bool
	routine string // that made it
	own     bool   // that is the scenario's own goroutine
	late    bool   // its deadline has passed by the fake's clock
	content uint64 // digest of what it sends, and of the agent
	subject string // of the content: the text, or the customer_ref
}

// Attempt is one request.
type Attempt struct {
	Status int    // 0: no answer
	Fault  string // of the plan, by name; "" where it was left alone
	Err    error  // no answer, or none that is whole
}

func (c *Call) failed() bool    { return c.ended && c.Err != nil }
func (c *Call) succeeded() bool { return c.ended && c.Err == nil }

// onAgent reports a call about an agent that is there.
func (c *Call) onAgent() bool { return c.AgentID != "" && c.spec != spec.CreateAgent }

type callKey struct{}

// Observe implements agentmessaging.Observer.
func (p *execution) Observe(ctx context.Context, event agentmessaging.Event) context.Context {
	switch e := event.(type) {
	case agentmessaging.CallStart:
		return context.WithValue(ctx, callKey{}, p.begin(e))
	case agentmessaging.CallEnd:
		if c, ok := ctx.Value(callKey{}).(*Call); ok {
			p.end(c, e)
		}
	}
	return ctx
}

func (p *execution) begin(e agentmessaging.CallStart) *Call {
	row := slices.IndexFunc(spec.Endpoints, func(row *spec.Endpoint) bool { return row.Name == e.Endpoint.Name })
	c := &Call{AgentID: e.AgentID, spec: spec.Endpoints[row], begun: p.fake.Now(), routine: routine()}
	c.Endpoint, c.own = endpointOf(c.spec), c.routine == p.routine
	p.note(func() {
		if p.ended == "" {
			p.startedLocked(c)
			if len(p.calls) > 100+2*p.quota { // by then it is over its quota too, which is reported
				p.stopLocked("it has made " + plural(len(p.calls), "call") + " by then")
			}
		} else if p.refusals++; p.refusals > 10 { // it does not look at its context
			runtime.Goexit()
		}
	})
	return c
}

func (p *execution) end(c *Call, e agentmessaging.CallEnd) {
	p.note(func() {
		p.nameLocked(c) // of a call that the limiter has refused
		c.AgentID = e.AgentID
	})
	p.moment(c.Name+"/dies_answered", "after the answer of "+c.Name+" had arrived")
	p.note(func() {
		c.ended, c.Err = true, e.Err
	})
}

// sent has the members of a request's body that identify its call.
type sent struct {
	Text        string `json:"text"`
	CustomerRef string `json:"customer_ref"`
	APIKey      string `json:"api_key"`
	LLM         struct {
		APIKey string `json:"api_key"`
	} `json:"llm"`
}

// identify learns from its first request what a call does, and names it.
func (p *execution) identify(c *Call, body []byte) {
	var s sent
	_ = json.Unmarshal(body, &s)
	p.note(func() {
		for _, key := range []string{s.APIKey, s.LLM.APIKey} {
			if key != "" {
				p.secrets = append(p.secrets, key)
			}
		}
		h := fnv.New64a()
		_, _ = h.Write(body)
		if a, found := p.fake.Agent(c.AgentID); found {
			p.agents[c.AgentID] = fmt.Sprint(a.CustomerRef, a.SystemPrompt, string(a.Metadata))
		}
		_, _ = io.WriteString(h, p.agents[c.AgentID]) // its identifier depends on which goroutine was first
		c.content, c.subject = h.Sum64(), s.Text+s.CustomerRef
		p.nameLocked(c)
	})
}

// nameLocked gives a call its name: its number among those of its endpoint or, on a
// goroutine that may race, among those that do the same.
func (p *execution) nameLocked(c *Call) {
	if c.Name != "" {
		return
	}
	c.Name = c.spec.Name
	if !c.own {
		c.Name = fmt.Sprintf("%s_%06x", c.spec.Name, c.content&0xffffff)
	}
	p.names[c.Name]++
	if n := p.names[c.Name]; c.own || n > 1 {
		c.Name = fmt.Sprintf("%s_%d", c.Name, n)
	}
}

// wire is the transport of a client that is swept.
type wire struct {
	execution *execution
	direct    http.RoundTripper
}

// planHeader names, in the records of the fake, the plan that strikes a request.
const planHeader = "Sweep-Plan"

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	c, known := req.Context().Value(callKey{}).(*Call)
	if !known {
		return w.direct.RoundTrip(req)
	}
	if len(c.Attempts) == 0 {
		w.execution.identify(c, body(req))
	}
	w.execution.moment(c.Name+"/dies_before", "before "+c.Name+" left")
	fault, err := w.execution.planAttempt(c)
	if err != nil {
		return nil, err
	}
	w.execution.serving.RLock()
	resp, err := w.send(req, c, fault)
	w.execution.serving.RUnlock()
	w.execution.answered(c, resp, err)
	w.execution.moment(c.Name+"/dies_arrived", "after "+c.Name+" had arrived")
	return resp, err
}

// body reads what a request sends, and puts it back.
func body(req *http.Request) []byte {
	if req.Body == nil {
		return nil
	}
	read, _ := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(read))
	return read
}

// planAttempt counts an attempt and finds the fault that befalls it, if any. It ends
// a scenario that would go on without end.
func (p *execution) planAttempt(c *Call) (f *fault, err error) {
	err = context.Canceled
	p.note(func() {
		p.requests++
		p.deadKeyRequests = max(p.deadKeyRequests, p.dead[c.routine])
		if elapsed := p.fake.Now().Sub(p.begun); elapsed > p.longest {
			p.overdueLocked(elapsed)
		}
		if p.ended != "" {
			return
		}
		a := Attempt{}
		if f = p.plan.next(p.stage, c.Name, c); f != nil {
			a.Fault = f.Name
			if f.Status == http.StatusNotFound && c.onAgent() {
				p.gone[c.AgentID] = true
			}
		}
		c.Attempts, err = append(c.Attempts, a), nil
	})
	return f, err
}

// answered notes how an attempt ended.
func (p *execution) answered(c *Call, resp *http.Response, err error) {
	p.note(func() {
		a := &c.Attempts[len(c.Attempts)-1]
		a.Err = err
		if resp != nil {
			a.Status = resp.StatusCode
		}
		if p.dead[c.routine]++; a.Status != http.StatusUnauthorized && a.Status != http.StatusPaymentRequired {
			p.dead[c.routine] = 0
		}
	})
}

// send makes an attempt, with its fault if it has one.
func (w *wire) send(req *http.Request, c *Call, f *fault) (*http.Response, error) {
	if _, stored := w.execution.fake.BYOK(w.execution.fake.Key()); stored && c.spec == spec.ClearBYOK {
		w.execution.note(func() { w.execution.cleared = true })
	}
	if c.late {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
	}
	switch {
	case f == nil:
		return w.direct.RoundTrip(req)
	case f.change != nil:
		undo := f.change(w.execution, c)
		w.execution.note(func() { w.execution.plan.undo = undo })
		return w.direct.RoundTrip(req)
	case w.execution.sweep.bubble:
		return w.inject(req, f.Fault.Fault)
	}
	switch f.Name {
	case "silence":
		return nil, w.wait(req.Context(), c, forEver)
	case "reply_silent":
		return w.after(req, c, forEver)
	case "reply_dripping":
		return w.after(req, c, dripping)
	}
	return w.inject(req, f.Fault.Fault)
}

// inject applies a fault of the fake to one request.
func (w *wire) inject(req *http.Request, f fakeserver.Fault) (*http.Response, error) {
	plan := w.execution.plan.String()
	mine := fakeserver.Where(func(c fakeserver.Call) bool { return c.Header.Get(planHeader) == plan })
	injection := w.execution.fake.Inject(f, mine)
	defer injection.Remove()
	req.Header.Set(planHeader, plan)
	return w.direct.RoundTrip(req)
}

const (
	forEver  = 1 << 62
	dripping = 30 * time.Second
)

// after sends a request and holds its answer back for d.
func (w *wire) after(req *http.Request, c *Call, d time.Duration) (*http.Response, error) {
	resp, err := w.direct.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := w.wait(req.Context(), c, d); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// wait lets d pass by the fake's clock, or what is left until the deadline, which
// counts real time outside of a bubble: the call is late from then on.
func (w *wire) wait(ctx context.Context, c *Call, d time.Duration) error {
	deadline, has := ctx.Deadline()
	left := time.Until(deadline)
	switch {
	case has && left <= d:
		c.late = true
		return cmp.Or(w.execution.clock.Sleep(ctx, left), context.DeadlineExceeded)
	case d == forEver:
		return errors.New("sweep: an answer that never comes, and a context without a deadline")
	}
	return w.execution.clock.Sleep(ctx, d)
}
