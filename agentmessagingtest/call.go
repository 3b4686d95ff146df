package agentmessagingtest

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"runtime"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Call is a call of the client, as the client's events and its wire told it.
type Call struct {
	// Name names the call within the scenario: SendMessage_2 is the second
	// SendMessage. Where goroutines race, it is named by what it does instead,
	// such as SendMessage_9f1c2a.
	Name     string
	Endpoint fakeserver.Endpoint
	AgentID  string    // the agent that it names, or has created
	Attempts []Attempt // those that left the client
	Err      error     // what the client returned; nil too while the call is under way

	spec    *spec.Endpoint
	begun   time.Time // by the fake's clock
	ended   bool
	routine string // that made it, in an undisturbed run
	content uint64 // digest of what it sends, the agent included
	subject string // of the content: the text, or the customer_ref
}

// Attempt is one request.
type Attempt struct {
	Status int    // 0: no answer
	Fault  string // of the plan, by name; "" where it was left alone
	Err    error  // no answer, or none that is whole
}

// failed reports a call that ended with an error.
func (c *Call) failed() bool { return c.ended && c.Err != nil }

type callKey struct{}

// Observe implements agentmessaging.Observer.
func (p *play) Observe(ctx context.Context, event agentmessaging.Event) context.Context {
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

func (p *play) begin(e agentmessaging.CallStart) *Call {
	row := slices.IndexFunc(spec.Endpoints, func(row *spec.Endpoint) bool { return row.Name == e.Endpoint.Name })
	c := &Call{AgentID: e.AgentID, spec: spec.Endpoints[row], begun: p.run.fake.Now()}
	c.Endpoint = endpointOf(c.spec)
	if p.run.plan == nil {
		c.routine = routine()
	}
	p.note(func() {
		if p.ended == "" {
			p.calls = append(p.calls, c)
			if len(p.calls) > 100+2*p.quota { // by then it is over its quota too, which is reported
				p.stop("it has made " + plural(len(p.calls), "call") + " by then")
			}
		} else if p.refusals++; p.refusals > 10 { // it does not look at its context
			runtime.Goexit()
		}
	})
	return c
}

func (p *play) end(c *Call, e agentmessaging.CallEnd) {
	p.note(func() {
		p.name(c) // of a call that the limiter has refused
		c.ended, c.Err, c.AgentID = true, e.Err, e.AgentID
		if c.spec == spec.CreateAgent && e.Err == nil {
			p.origins[e.AgentID] = c.content
		}
	})
}

// sent is what a request's body says of its call.
type sent struct {
	Text        string `json:"text"`
	CustomerRef string `json:"customer_ref"`
	APIKey      string `json:"api_key"`
	LLM         struct {
		APIKey string `json:"api_key"`
	} `json:"llm"`
}

// identify learns from its first request what a call does, and names it.
func (p *play) identify(c *Call, body []byte) {
	var s sent
	_ = json.Unmarshal(body, &s)
	p.note(func() {
		for _, key := range []string{s.APIKey, s.LLM.APIKey} {
			if key != "" {
				p.run.secrets = append(p.run.secrets, key)
			}
		}
		h := fnv.New64a()
		if origin, known := p.origins[c.AgentID]; known {
			fmt.Fprint(h, origin)
		} else {
			fmt.Fprint(h, c.AgentID)
		}
		_, _ = h.Write(body)
		c.content, c.subject = h.Sum64(), s.Text+s.CustomerRef
		p.name(c)
	})
}

// name gives a call its name: its number among those of its endpoint or, where
// goroutines race, among those that do the same. The lock is held.
func (p *play) name(c *Call) {
	if c.Name != "" {
		return
	}
	c.Name = c.spec.Name
	if p.run.sweep.racing[c.spec] {
		c.Name = fmt.Sprintf("%s_%06x", c.spec.Name, c.content&0xffffff)
	}
	p.names[c.Name]++
	if n := p.names[c.Name]; !p.run.sweep.racing[c.spec] || n > 1 {
		c.Name = fmt.Sprintf("%s_%d", c.Name, n)
	}
}
