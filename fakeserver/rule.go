package fakeserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// rule is what a Script and an Injection have in common: which calls they are
// for, and at which of those it is their turn.
type rule struct {
	server   *Server
	method   string // that made the rule
	says     string // the rule, for messages: no key and no text is in it
	matchers []Matcher

	// The server's lock guards what follows.
	matched  int // the calls that matched, whoever acted on them
	hits     int // the calls that the rule acted on
	nth      int // 0: at any
	times    int // 0: without end
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

// ruled are the kinds of rules.
type ruled interface {
	*Script | *Injection
	base() *rule
}

func (r *rule) base() *rule { return r }

// newRule describes a rule by its arguments: what, where it is not "", and the
// matchers.
func (s *Server) newRule(method, what string, matchers []Matcher) rule {
	checkMatchers(method, matchers)
	var args []string
	if what != "" {
		args = append(args, what)
	}
	for _, m := range matchers {
		args = append(args, m.says)
	}
	return rule{
		server: s, method: method, says: method + "(" + strings.Join(args, ", ") + ")",
		matchers: slices.Clone(matchers),
	}
}

// candidates returns the rules that match a call, the newest first. No lock is
// held, since matchers may be functions of the test.
func candidates[R ruled](s *Server, rules []R, rec *record) []R {
	var found []R
	for _, r := range slices.Backward(rules) {
		matched := false
		b := r.base()
		s.guard("a matcher of "+b.says, func() { matched = matchesAll(b.matchers, rec) })
		if matched {
			found = append(found, r)
		}
	}
	return found
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
func (r *rule) change(set func()) { r.server.locked(func(*world) { set() }) }

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

// without returns a list but for one of its items, in a slice of its own.
func without[T comparable](list []T, item T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(other T) bool { return other == item })
}

// rules returns all rules: the scripts, then the injections, as they were made.
func (s *Server) rules() []*rule {
	return look(s, func(w *world) (all []*rule) {
		for _, sc := range w.scripts {
			all = append(all, &sc.rule)
		}
		for _, in := range w.injections {
			all = append(all, &in.rule)
		}
		return all
	})
}

// reportUnused reports the required rules that never acted.
func (s *Server) reportUnused(rules []*rule, calls []*record) {
	for _, r := range rules {
		var unused bool
		var matched int
		r.change(func() { unused, matched = r.required && r.hits == 0, r.matched })
		if unused {
			s.reportf("%s is required and was never used; calls that it matched: %d; %s", r.says, matched, r.nearMiss(calls))
		}
	}
}
