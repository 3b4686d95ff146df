package control

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// maxRules bounds the scripts, and the faults, of a world.
const maxRules = 1000

// rules are the scripts or the faults that are in force, as they were made.
type rules[T any] struct {
	kind string
	made int
	list []rule[T]
}

type rule[T any] struct {
	id     string
	made   T
	hits   func() int
	remove func()
}

func newRules[T any](kind string) rules[T] { return rules[T]{kind: kind} }

func (rs *rules[T]) full() *refusal {
	if len(rs.list) >= maxRules {
		return conflict("there are %d already, and no more are kept; DELETE those that are done", maxRules)
	}
	return nil
}

func (rs *rules[T]) add(made T, hits func() int, remove func()) rule[T] {
	rs.made++
	r := rule[T]{numbered(rs.kind, rs.made), made, hits, remove}
	rs.list = append(rs.list, r)
	return r
}

// remove takes the rule of a path out.
func (rs *rules[T]) remove(r *request) *refusal {
	i := slices.IndexFunc(rs.list, func(r2 rule[T]) bool { return r2.id == r.param("id") })
	if i < 0 {
		return notFound("nothing in force has this id")
	}
	rs.list[i].remove()
	rs.list = slices.Delete(rs.list, i, i+1)
	return nil
}

// turns say at which of the calls that match a rule acts.
type turns struct {
	Times  *int     `json:"times,omitempty"`
	Nth    *int     `json:"nth,omitempty"`
	Chance *float64 `json:"chance,omitempty"`
	Seed   *int64   `json:"seed,omitempty"`
}

const (
	maxTurns = 1_000_000_000
	maxSeed  = 1<<53 - 1 // what every language's JSON holds exactly
)

func (t turns) flaw() *refusal {
	if t.Chance != nil && (*t.Chance < 0 || *t.Chance > 1) {
		return badRequest("chance", "must be from 0 to 1")
	}
	if t.Seed != nil && t.Chance == nil {
		return badRequest("seed", "goes with chance only")
	}
	return first(within("times", t.Times, 1, maxTurns), within("nth", t.Nth, 1, maxTurns), within("seed", t.Seed, 0, maxSeed))
}

// turning is a rule of the fake.
type turning[R any] interface {
	Times(n int) R
	Nth(n int) R
	Chance(p float64, seed uint64) R
}

func apply[R turning[R]](r R, t turns, seed uint64) {
	if t.Times != nil {
		r.Times(*t.Times)
	}
	if t.Nth != nil {
		r.Nth(*t.Nth)
	}
	if t.Seed != nil {
		seed = uint64(*t.Seed)
	}
	if t.Chance != nil {
		r.Chance(*t.Chance, seed)
	}
}

// match picks calls; a script's has no endpoint.
type match struct {
	AgentID        *string `json:"agent_id,omitempty"`
	Key            *string `json:"key,omitempty"`
	Text           *string `json:"text,omitempty"`
	TextContaining *string `json:"text_containing,omitempty"`
}

type faultMatch struct {
	Endpoint *string `json:"endpoint,omitempty"`
	match
}

func (m match) matchers(w *world) (all []fakeserver.Matcher, _ *refusal) {
	if refused := first(notEmpty("match.agent_id", m.AgentID), notEmpty("match.text_containing", m.TextContaining)); refused != nil {
		return nil, refused
	}
	if m.AgentID != nil {
		all = append(all, fakeserver.ByAgent(*m.AgentID))
	}
	if m.Key != nil {
		key, refused := w.keyOf("match.key", *m.Key)
		if refused != nil {
			return nil, refused
		}
		all = append(all, fakeserver.ByKey(key))
	}
	if m.Text != nil {
		all = append(all, fakeserver.ByText(*m.Text))
	}
	if m.TextContaining != nil {
		all = append(all, fakeserver.ByTextContaining(*m.TextContaining))
	}
	return all, nil
}

func (m faultMatch) matchers(w *world) ([]fakeserver.Matcher, *refusal) {
	all, refused := m.match.matchers(w)
	if refused != nil || m.Endpoint == nil {
		return all, refused
	}
	endpoint, refused := byEndpoint(w, *m.Endpoint)
	if refused != nil {
		refused.Reason = "match." + refused.Reason
	}
	return append(all, endpoint), refused
}

func notEmpty(name string, text *string) *refusal {
	if text != nil && *text == "" {
		return badRequest(name, "must not be empty")
	}
	return nil
}

// gate is a matcher that lets nothing through until it is opened: a rule is
// made in steps, and must not act before the last.
func gate() (closed fakeserver.Matcher, open func()) {
	var opened atomic.Bool
	return fakeserver.Where(func(fakeserver.Call) bool { return opened.Load() }), func() { opened.Store(true) }
}

func indexed(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }
