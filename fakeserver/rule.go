package fakeserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// rule is what a Script and an Injection have in common: which calls they are
// for, and at which of those it is their turn.
type rule struct {
	method   string // that made the rule
	says     string // the rule, for messages: no key and no text is in it
	matchers []Matcher
	number   int // in the order of making

	mu       *sync.Mutex // the server's; guards what follows
	withdraw func()      // takes the rule out of its rulebook
	matched  int         // the calls that matched, whoever acted on them
	hits     int         // the calls that the rule acted on
	nth      int         // 0: at any
	times    int         // 0: without end
	chance   *odds
	required bool
	removed  bool
}

// Format prints the rule as it was made, whatever the verb: without the texts
// that it answers, and without keys.
func (r *rule) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(r.says)) }

// odds is a sequence of decisions that depends on its seed alone.
type odds struct {
	p      float64
	random *rand.Rand
}

func (o *odds) fall() bool { return o == nil || o.random.Float64() < o.p }

// newRule describes a rule by its arguments: what, where it is not "", and the
// matchers.
func newRule(mu *sync.Mutex, method, what string, matchers []Matcher) rule {
	checkMatchers(method, matchers)
	var args []string
	if what != "" {
		args = append(args, what)
	}
	for _, m := range matchers {
		args = append(args, m.says)
	}
	return rule{
		mu: mu, method: method, says: method + "(" + strings.Join(args, ", ") + ")",
		matchers: slices.Clone(matchers),
	}
}

// due counts a call that matched, and reports whether it is the rule's turn.
// The lock is held. The odds are asked at every call that matches, so that the
// n-th decision belongs to the n-th of them.
func (r *rule) due() bool {
	if r.removed {
		return false
	}
	r.matched++
	fell := r.chance.fall()
	return fell && (r.nth == 0 || r.matched == r.nth) && (r.times == 0 || r.hits < r.times)
}

// change sets something of the rule under the lock.
func (r *rule) change(set func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set()
}

func (r *rule) setTimes(n int) {
	if n < 1 {
		misuse("Times", "%d is less than 1", n)
	}
	r.change(func() { r.times = n })
}

func (r *rule) setNth(n int) {
	if n < 1 {
		misuse("Nth", "%d is less than 1; the first call is 1", n)
	}
	r.change(func() { r.nth = n })
}

func (r *rule) setChance(p float64, seed uint64) {
	if !(p >= 0 && p <= 1) { // in this form it refuses NaN too
		misuse("Chance", "%v is not between 0 and 1", p)
	}
	r.change(func() { r.chance = &odds{p, rand.New(rand.NewPCG(seed, 0))} })
}

func (r *rule) require() { r.change(func() { r.required = true }) }

func (r *rule) hitCount() (n int) {
	r.change(func() { n = r.hits })
	return n
}

func (r *rule) remove() {
	r.change(func() {
		r.removed = true
		r.withdraw()
	})
}

// without returns a list but for one of its items, in a slice of its own.
func without[T comparable](list []T, item T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(other T) bool { return other == item })
}

// ruled are the kinds of rules.
type ruled interface {
	comparable
	base() *rule
}

func (r *rule) base() *rule { return r }

// hooksOf are the hooks of a call.
func hooksOf(r *record) [5]hook {
	return [...]hook{
		{},
		hookOf(byEndpoint, string(r.call.Endpoint)),
		keyHook(r.token),
		hookOf(byAgent, r.call.AgentID),
		hookOf(byText, r.text),
	}
}

// hook is the one by which a rule is found.
func (r *rule) hook() (best hook) {
	for _, m := range r.matchers {
		if m.hook.kind > best.kind {
			best = m.hook
		}
	}
	return best
}

// rulebook holds the rules of one kind. The server's lock guards it.
type rulebook[R ruled] struct {
	made  int
	lists map[hook][]R // what a list holds never changes in place, so that a copy of the slice is a snapshot
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

// all returns the rules as they were made.
func (b *rulebook[R]) all() (all []R) {
	for _, list := range b.lists {
		all = append(all, list...)
	}
	slices.SortFunc(all, func(r, other R) int { return r.base().number - other.base().number })
	return all
}

// about returns the rules that may match a call.
func (b *rulebook[R]) about(r *record) (found prospects[R]) {
	if len(b.lists) == 0 {
		return found
	}
	for i, h := range hooksOf(r) {
		found[i] = b.lists[h]
	}
	return found
}

// prospects are the rules that may match a call, in a list for each of its
// hooks.
type prospects[R ruled] [5][]R

func (p *prospects[R]) empty() bool {
	return !slices.ContainsFunc(p[:], func(list []R) bool { return len(list) > 0 })
}

// next takes the newest rule off its list; false where none is left.
func (p *prospects[R]) next() (newest R, ok bool) {
	var from int
	for i, list := range p {
		if n := len(list); n > 0 && (!ok || list[n-1].base().number > newest.base().number) {
			newest, from, ok = list[n-1], i, true
		}
	}
	if ok {
		p[from] = p[from][:len(p[from])-1]
	}
	return newest, ok
}
