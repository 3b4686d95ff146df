package contract

import (
	"cmp"
	"context"
	"net/http"
	"time"
)

// player makes the calls of steps. It knows the keys in use and the agents that
// they created last.
type player struct {
	caller
	target Target
	bulk   bool // thousands of calls: by Target.BulkClient
	keys   map[who]string
	agents map[who]string
	last   string // the agent that any of the keys created last
}

func newPlayer(target Target) player {
	return player{
		caller: newCaller(target), target: target,
		keys: map[who]string{{}: target.Key}, agents: map[who]string{},
	}
}

// play makes one call of the step. {agent_id} in its path is the agent of the
// key that calls, or else of any key, or one that does not exist.
func (p *player) play(ctx context.Context, st step) (exchange, error) {
	e := st.e.of(cmp.Or(p.agents[st.by], p.last, noAgent))
	x, err := p.callerOf(st).send(ctx, e)
	x.endpoint = st.e
	if x.status == http.StatusOK && e.name == createAgent.name {
		p.last, _ = x.at("agent_id").(string)
		p.agents[st.by] = p.last
	}
	return x, err
}

// callerOf is the caller of a step: its key, address and header.
func (p *player) callerOf(st step) caller {
	c := p.caller
	c.key = p.keyOf(st.by)
	switch {
	case st.ip != "":
		c.client = withoutRedirects(p.target.ClientFrom(st.ip))
	case p.bulk && p.target.BulkClient != nil:
		c.client = withoutRedirects(p.target.BulkClient)
	}
	if st.name != "" {
		c = c.with(st.name, st.value(c.key))
	}
	return c
}

// keyOf is the key, issued where it has not called before.
func (p *player) keyOf(by who) string {
	if p.keys[by] == "" {
		p.keys[by] = p.target.Abilities.IssueKeyOn(by.plan, by.dashboard)
	}
	return p.keys[by]
}

// pass lets d pass: by the target's clock, or by sleeping.
func (target Target) pass(d time.Duration) {
	if target.Abilities != nil && !target.Bubble {
		target.Abilities.Advance(d)
		return
	}
	time.Sleep(d)
}
