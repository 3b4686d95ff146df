package control

import (
	"slices"
	"sync/atomic"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// maxRules bounds the scripts, and the faults.
const maxRules = 1000

// kept are the scripts or the faults.
type kept struct {
	kind string
	made int
	list []item
}

type item struct {
	id     string
	view   func(id string) any
	unmet  func() bool // it is required, and has not acted as often as it should
	remove func()
}

func (k *kept) full() error {
	if len(k.list) >= maxRules {
		return conflict("there are %d already, and no more are kept; DELETE one first", maxRules)
	}
	return nil
}

// add returns how the interface shows what it has added.
func (k *kept) add(one item) any {
	k.made++
	one.id = numbered(k.kind, k.made)
	k.list = append(k.list, one)
	return one.view(one.id)
}

// drop takes out the item that a path names.
func (k *kept) drop(r *request) (any, error) {
	i := slices.IndexFunc(k.list, func(one item) bool { return one.id == r.param("id") })
	if i < 0 {
		return nil, notFound("no " + k.kind + " has this id")
	}
	k.list[i].remove()
	k.list = slices.Delete(k.list, i, i+1)
	return nil, nil
}

// clear takes out all of them.
func (k *kept) clear() {
	for _, one := range k.list {
		one.remove()
	}
	k.list = nil
}

// shown is all of it, under a name.
func (k *kept) shown(name string) (any, error) {
	views := []any{}
	for _, one := range k.list {
		views = append(views, one.view(one.id))
	}
	return map[string]any{name: views}, nil
}

// verify is GET verify: the rules that are required and have not acted.
func (s *Server) verify(*request) (any, error) {
	unmet := []any{}
	for _, one := range append(slices.Clone(s.scripts.list), s.faults.list...) {
		if one.unmet() {
			unmet = append(unmet, one.view(one.id))
		}
	}
	return map[string]any{"met": len(unmet) == 0, "unmet": unmet}, nil
}

// turns say at which of the calls that match a rule acts.
type turns struct {
	Times  int      `json:"times,omitempty" check:"turns"`
	Nth    int      `json:"nth,omitempty" check:"turns"`
	Chance *float64 `json:"chance,omitempty" check:"chance"`
	Seed   *int64   `json:"seed,omitempty" check:"seed"`
	// Required makes GET verify list the rule until it has acted: Times times, or
	// once where there is no Times.
	Required bool `json:"required,omitempty"`
}

func (t turns) unmet(hits int) bool { return t.Required && hits < max(1, t.Times) }

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

func (m match) matchers(s *Server) (all []fakeserver.Matcher, _ error) {
	if m.AgentID != "" {
		all = append(all, fakeserver.ByAgent(m.AgentID))
	}
	if m.Key != "" {
		key, err := s.keyOf("match.key", m.Key)
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
