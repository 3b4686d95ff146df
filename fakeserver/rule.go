package fakeserver

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// rule is the common part of Script and Injection: which calls it is for, and
// at which of them it acts.
type rule struct {
	method   string // OnMessage or Inject
	says     string // the rule in messages, without keys and texts
	matchers []Matcher
	number   int // newer rules have greater numbers

	locked   func(f func()) // runs f under the server's lock, which guards what follows
	withdraw func()         // takes the rule out of its rulebook
	matched  int            // the calls that matched, also where another rule acted
	hits     int            // the calls that the rule acted on
	nth      int            // acts only at this match; 0 means at any
	from     int            // acts only from this match on; 0 means from the first
	times    int            // acts at most so often; 0 means without end
	chance   *odds
	required bool
	removed  bool
}

// Format prints the rule as it was made, whatever the verb: without the texts
// that it answers, and without keys.
func (r *rule) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(r.says)) }

// odds is a sequence of decisions that depends only on its seed.
type odds struct {
	p      float64
	random *rand.Rand
}

func (o *odds) fall() bool { return o == nil || o.random.Float64() < o.p }

// newRule makes a rule. what describes its other arguments, if it has any.
func newRule(locked func(func()), method, what string, matchers []Matcher) rule {
	checkMatchers(method, matchers)
	var args []string
	if what != "" {
		args = append(args, what)
	}
	for _, m := range matchers {
		args = append(args, m.says)
	}
	return rule{
		locked: locked, method: method, says: method + "(" + strings.Join(args, ", ") + ")",
		matchers: slices.Clone(matchers),
	}
}

// due counts a call that matched, and reports whether the rule acts on it. The
// lock is held. Every match asks the odds, so that the n-th match always gets
// the n-th decision.
func (r *rule) due() bool {
	if r.removed {
		return false
	}
	r.matched++
	fell := r.chance.fall()
	return fell && (r.nth == 0 || r.matched == r.nth) && r.matched >= r.from && (r.times == 0 || r.hits < r.times)
}

func (r *rule) count(method string, n int, number *int) {
	if n < 1 {
		misuse(method, "%d is less than 1; the first call is 1", n)
	}
	r.locked(func() { *number = n })
}

func (r *rule) setChance(p float64, seed uint64) {
	if !(p >= 0 && p <= 1) { // in this form it refuses NaN too
		misuse("Chance", "%v is not between 0 and 1", p)
	}
	r.locked(func() { r.chance = &odds{p, rand.New(rand.NewPCG(seed, 0))} })
}

func (r *rule) require() { r.locked(func() { r.required = true }) }

func (r *rule) hitCount() (n int) {
	r.locked(func() { n = r.hits })
	return n
}

func (r *rule) remove() {
	r.locked(func() {
		r.removed = true
		r.withdraw()
	})
}

// without returns a copy of a list without one of its items.
func without[T comparable](list []T, item T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(other T) bool { return other == item })
}

type ruled interface {
	comparable
	base() *rule
}

func (r *rule) base() *rule { return r }

func hooksOf(r *record) [5]hook {
	return [...]hook{
		{},
		hookOf(byEndpoint, string(r.call.Endpoint)),
		keyHook(r.token),
		hookOf(byAgent, r.call.AgentID),
		hookOf(byText, r.text),
	}
}

// hook picks the hook that the fewest calls have.
func (r *rule) hook() (best hook) {
	for _, m := range r.matchers {
		if m.hook.kind > best.kind {
			best = m.hook
		}
	}
	return best
}

// rulebook holds the rules of one kind, each under its hook, so that a call asks few
// of a thousand rules. The server's lock guards it.
type rulebook[R ruled] struct {
	made  int
	lists map[hook][]R
}

func (b *rulebook[R]) add(r R) {
	if b.lists == nil {
		b.lists = map[hook][]R{}
	}
	b.made++
	r.base().number = b.made
	h := r.base().hook()
	b.lists[h] = append(b.lists[h], r)
	r.base().withdraw = func() { b.lists[h] = without(b.lists[h], r) }
}

// all returns the rules in the order in which they were made.
func (b *rulebook[R]) all() []R { return inOrder(slices.Collect(maps.Values(b.lists))...) }

// about returns the rules that may match a call, in the order in which they were
// made.
func (b *rulebook[R]) about(r *record) []R {
	if len(b.lists) == 0 {
		return nil
	}
	var named [5][]R
	for i, h := range hooksOf(r) {
		named[i] = b.lists[h]
	}
	return inOrder(named[:]...)
}

func inOrder[R ruled](lists ...[]R) []R {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(r, other R) int { return r.base().number - other.base().number })
	return all
}
