package fakeserver

import "slices"

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
