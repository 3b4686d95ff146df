package contract

import (
	"slices"
	"time"
)

// step is one thing that a case does: it makes n calls, or arranges something
// between calls.
type step struct {
	n        int
	e        endpoint
	statuses []int // each call is answered with one of them
	key      who
	ip       string // the address that calls; "": the one that the target's client has
	name     string // a header to set
	value    func(key string) string
	checks   []func(answer) string // what else the answer must have; "" where it has
	exact    bool                  // a check needs a clock that stands still between waits

	// Instead of calls:
	wait      time.Duration   // this passes,
	untilOpen bool            // or what Retry-After named, which is wait at most,
	arrange   func(p *player) // or Target.Abilities arrange something,
	inner     []step          // or these are taken n times
}

// who is a key that makes calls. The zero value is the target's own; any other
// is issued when it first calls.
type who struct {
	name, plan string
	dashboard  bool
}

var (
	another     = who{"another", "preview", true}
	third       = who{"third", "preview", true}
	fourth      = who{"fourth", "preview", true}
	fifth       = who{"fifth", "preview", true}
	undashboard = who{"undashboard", "preview", false} // on an active plan, but not dashboard-issued
	unpaid      = who{"unpaid", "free", false}         // on an inactive plan
)

// is makes the call a step: it is answered with one of the statuses.
func (e endpoint) is(statuses ...int) step { return step{n: 1, e: e, statuses: statuses} }

// listed makes the call a step that accepts any status that section 4 lists.
func (e endpoint) listed() step { return e.is(append([]int{200}, e.errors...)...) }

// limited makes the call a step that the limiter refuses. The limiter's name is
// this project's, so it counts only for a target that claims the decisions.
func (e endpoint) limited(limitKey string) step {
	return e.is(429).check(func(a answer) string {
		if a.s.target.Decisions && a.at("limit_key") != limitKey {
			a.s.skipIfBroken()
			return "want limit_key " + limitKey
		}
		return ""
	})
}

func (st step) times(n int) step {
	st.n = n
	return st
}

// repeat is a group of steps, taken n times in a row.
func repeat(n int, steps ...step) step { return step{n: n, inner: steps} }

func (st step) by(key who) step {
	st.key = key
	st.inner = slices.Clone(st.inner)
	for i := range st.inner {
		st.inner[i] = st.inner[i].by(key)
	}
	return st
}

func (st step) from(ip string) step {
	st.ip = ip
	return st
}

// header sets a header. Its value may depend on the key; "" leaves it out.
func (st step) header(name string, value func(key string) string) step {
	st.name, st.value = name, value
	return st
}

func (st step) keyless() step { return st.header("Authorization", always("")) }

func always(value string) func(string) string { return func(string) string { return value } }

func (st step) check(ok func(answer) string) step {
	st.checks = append(slices.Clone(st.checks), ok)
	return st
}

// holds wants a member at a dotted path of the answer: a JSON value (nil is
// null or no member), a check, or a relation.
func (st step) holds(path string, want any) step {
	return st.check(func(a answer) string { return a.holds(path, want) })
}

// opensIn wants the wait that Retry-After names, which is exact only where no
// time passes between calls.
func (st step) opensIn(wait time.Duration) step {
	st.exact = true
	return st.check(func(a answer) string {
		told, _ := a.retryAfter()
		return unless(told == wait, "Retry-After is %v, want %v", told, wait)
	})
}

func wait(d time.Duration) step { return step{wait: d} }

// untilOpen waits as long as the last answer said, which is at most that long.
func untilOpen(most time.Duration) step { return step{wait: most, untilOpen: true} }

var (
	storeOff = step{arrange: func(p *player) { p.target.Abilities.SetBYOKAvailable(false) }}
	storeOn  = step{arrange: func(p *player) { p.target.Abilities.SetBYOKAvailable(true) }}
)

func revoke(key who) step {
	return step{arrange: func(p *player) { p.target.Abilities.RevokeKey(p.keyOf(key)) }}
}

// walk calls do with each step in order, and with those of a group as often as
// it is repeated.
func walk(steps []step, do func(step)) {
	for _, st := range steps {
		if st.inner == nil {
			do(st)
			continue
		}
		for range st.n {
			walk(st.inner, do)
		}
	}
}

// spends adds up what steps take. Where several statuses are right, the first
// counts.
func spends(steps []step) (all Spend) {
	walk(steps, func(st step) {
		all.Wait += st.wait
		for range st.n {
			all = all.plus(cost(st.e, st.statuses[0]))
		}
	})
	return all
}

// needs lists what steps ask of the target. A call that gets as far as its
// body needs an agent, if the case itself has not created one.
func needs(steps []step) (all []need) {
	created := false
	add := func(needed bool, n need) {
		if needed && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	walk(steps, func(st step) {
		passes := st.n > 0 && st.statuses[0] == 200
		reaches := passes || slices.Contains(st.statuses, 400)
		add(st.e.ofAgent() && reaches && !created, needAgent)
		add(st.arrange != nil || st.key != who{}, needAbilities)
		add(st.ip != "", needClientFrom)
		add(st.exact, needFrozenClock)
		created = created || (passes && st.e.name == createAgent.name)
	})
	return all
}
