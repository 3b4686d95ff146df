package control

import (
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

func (rs *rules[T]) full() error {
	if len(rs.list) >= maxRules {
		return conflict("there are %d already, and no more are kept; DELETE one first", maxRules)
	}
	return nil
}

func (rs *rules[T]) add(made T, hits func() int, remove func()) rule[T] {
	rs.made++
	r := rule[T]{numbered(rs.kind, rs.made), made, hits, remove}
	rs.list = append(rs.list, r)
	return r
}

// drop takes the rule of a path out.
func (rs *rules[T]) drop(r *request) (any, error) {
	i := slices.IndexFunc(rs.list, func(one rule[T]) bool { return one.id == r.param("id") })
	if i < 0 {
		return nil, notFound("nothing in force has this id")
	}
	rs.list[i].remove()
	rs.list = slices.Delete(rs.list, i, i+1)
	return nil, nil
}

// viewed shows all rules, under the name of the list.
func viewed[T, V any](rs rules[T], name string, view func(rule[T]) V) (any, error) {
	views := []V{}
	for _, r := range rs.list {
		views = append(views, view(r))
	}
	return map[string]any{name: views}, nil
}

// turns say at which of the calls that match a rule acts.
type turns struct {
	Times  int      `json:"times,omitempty" check:"turns"`
	Nth    int      `json:"nth,omitempty" check:"turns"`
	Chance *float64 `json:"chance,omitempty" check:"chance"`
	Seed   *int64   `json:"seed,omitempty" check:"seed"`
}

func (t turns) flaw() error {
	if t.Seed != nil && t.Chance == nil {
		return badRequest("seed", "goes with chance only")
	}
	return nil
}

// turning is a rule of the fake.
type turning[R any] interface {
	Times(n int) R
	Nth(n int) R
	Chance(p float64, seed uint64) R
}

func apply[R turning[R]](r R, t turns, seed uint64) {
	if t.Times > 0 {
		r.Times(t.Times)
	}
	if t.Nth > 0 {
		r.Nth(t.Nth)
	}
	if t.Seed != nil {
		seed = uint64(*t.Seed)
	}
	if t.Chance != nil {
		r.Chance(*t.Chance, seed)
	}
}

// match picks messages.
type match struct {
	AgentID        string  `json:"agent_id,omitempty" check:"filled"`
	Key            string  `json:"key,omitempty" check:"filled"`
	Text           *string `json:"text,omitempty"`
	TextContaining string  `json:"text_containing,omitempty" check:"filled"`
}

func (m match) matchers(w *world) (all []fakeserver.Matcher, _ error) {
	if m.AgentID != "" {
		all = append(all, fakeserver.ByAgent(m.AgentID))
	}
	if m.Key != "" {
		key, err := w.keyOf("match.key", m.Key)
		if err != nil {
			return nil, err
		}
		all = append(all, fakeserver.ByKey(key))
	}
	if m.Text != nil {
		all = append(all, fakeserver.ByText(*m.Text))
	}
	if m.TextContaining != "" {
		all = append(all, fakeserver.ByTextContaining(m.TextContaining))
	}
	return all, nil
}

// gate is a matcher that lets nothing through until it is opened: a rule is
// made in steps, and must not act before the last.
func gate() (closed fakeserver.Matcher, open func()) {
	var opened atomic.Bool
	return fakeserver.Where(func(fakeserver.Call) bool { return opened.Load() }), func() { opened.Store(true) }
}
