package fakeserver

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// rule is the common part of Script and Injection: which calls it is for, and
// at which of them it acts.
type rule struct {
	method   string // OnMessage or Inject
	says     string // the rule in messages, without keys and texts
	matchers []Matcher
	server   *Server // whose lock guards what follows
	withdraw func()  // takes the rule out of its generation
	matched  int     // the calls that matched, also where another rule acted
	hits     int     // the calls that the rule acted on
	nth      int     // acts only at this match; 0 means at any
	from     int     // acts only from this match on; 0 means from the first
	times    int     // acts at most so often; 0 means without end
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
func newRule(s *Server, method, what string, matchers []Matcher) rule {
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
	defer r.server.lock().Unlock()
	*number = n
}

func (r *rule) setChance(p float64, seed uint64) {
	if !(p >= 0 && p <= 1) { // in this form it refuses NaN too
		misuse("Chance", "%v is not between 0 and 1", p)
	}
	defer r.server.lock().Unlock()
	r.chance = &odds{p, rand.New(rand.NewPCG(seed, 0))}
}

func (r *rule) require() {
	defer r.server.lock().Unlock()
	r.required = true
}

func (r *rule) countHits() int {
	defer r.server.lock().Unlock()
	return r.hits
}

func (r *rule) remove() {
	defer r.server.lock().Unlock()
	r.removed = true
	r.withdraw()
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

// candidates returns the rules that match a call, newest first. No lock is
// held, since matchers may be functions of the test.
func candidates[R ruled](s *Server, rules []R, e *entry) (found []R) {
	if len(rules) == 0 {
		return nil
	}
	var asked *rule
	defer s.blame("a matcher of ", &asked)
	e.seen = sync.OnceValue((&entry{call: e.call}).copied) // a thousand functions cost one copy
	defer func() { e.seen = nil }()
	for _, r := range slices.Backward(rules) {
		asked = r.base()
		if matchesAll(asked.matchers, e) {
			found = append(found, r)
		}
	}
	return found
}

// unused describes the required rules that were never used, each with the call
// that came nearest.
func (s *Server) unused() (sentences []string) {
	var required []*rule
	for _, r := range s.allRules() {
		if r.required && r.hits == 0 {
			required = append(required, &r)
		}
	}
	if required == nil {
		return nil
	}
	entries := s.entries()
	for _, r := range required {
		sentences = append(sentences, fmt.Sprintf("%s is required and was never used; calls that it matched: %d; %s", r.says, r.matched, r.nearMiss(entries)))
	}
	return sentences
}

// allRules copies all rules: scripts, then injections, each in the order in which
// they were made.
func (s *Server) allRules() (all []rule) {
	defer s.lock().Unlock()
	for _, sc := range s.gen.scripts {
		all = append(all, sc.rule)
	}
	for _, in := range slices.Concat(s.gen.injections, s.gen.refusals) {
		all = append(all, in.rule)
	}
	return all
}

// nearMiss names the call that the most matchers of a rule matched, and the
// matchers that refused it. Of equally near calls it takes the last.
func (r *rule) nearMiss(entries []*entry) string {
	var nearest *entry
	var refused []Matcher
	for _, e := range slices.Backward(entries) {
		if r.method == "OnMessage" && e.call.Endpoint != EndpointSendMessage {
			continue
		}
		if missing := refusing(r.matchers, e); nearest == nil || len(missing) < len(refused) {
			nearest, refused = e, missing
		}
	}
	switch {
	case nearest == nil:
		return "no call came near"
	case len(refused) > 0:
		return fmt.Sprintf("nearest: %s, not matched by %s", nearest.copied(), listed(refused))
	case nearest.call.Status != http.StatusOK:
		return fmt.Sprintf("nearest: %s, which matches, but was not accepted", nearest.copied())
	}
	return fmt.Sprintf("nearest: %s, which matches: it came before the rule was made, or another acted on it", nearest.copied())
}
