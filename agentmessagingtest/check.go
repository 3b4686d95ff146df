package agentmessagingtest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Check is what [Sweep] looks for after a run. "Told" is what the application
// reports, asserts, logs at Warn or above, or prints of this module's errors;
// it is compared with the undisturbed run.
type Check string

// The checks. All are on; see [Without].
const (
	// Swallowed: a call failed, no later call made it good, and the application
	// told of no more errors than in the undisturbed run. A later call makes it good
	// if it has the same text or customer_ref; if there is neither, one to the same
	// endpoint and agent. Creating an agent makes good that another one is gone, and
	// reading an agent or the BYOK configuration that it could not be changed.
	Swallowed Check = "swallowed"
	// Truth: as few errors were told as undisturbed, but the service is in
	// another state, identifiers and times apart.
	Truth Check = "truth"
	// LostAgent: there is an agent whose identifier stands neither in a file of
	// Env.Dir nor in what was told, and undisturbed there are fewer. An
	// application that told of an unknown outcome of a creation is forgiven.
	LostAgent Check = "lost agent"
	// Doubled: an agent has one text, or there are agents with one customer_ref,
	// more often than undisturbed, and no unknown outcome of that call was told.
	Doubled Check = "doubled"
	// Quota: more than nine times the requests of the undisturbed run.
	Quota Check = "quota"
	// DeadKey: more than three answers of 401 or 402 in a row.
	DeadKey Check = "dead key"
	// LostBYOK: a stored provider key was cleared and none took its place, or
	// one is left stored that undisturbed is not, though it was not tried to
	// clear it.
	LostBYOK Check = "lost BYOK"
	// Ends: the scenario takes too long in virtual time ([Within]), makes
	// requests without end, or stalls in real time ([Watchdog]).
	Ends Check = "ends"
	// Panics: the scenario's goroutine panicked.
	Panics Check = "panics"
	// Leak: goroutines are left that the undisturbed run has not left.
	Leak Check = "leak"
	// Secret: the service key or a provider key was told.
	Secret Check = "secret"
	// Resumes: after the restart more errors are told than in an undisturbed
	// second run, or a message that was refused before is missing though none
	// is told.
	Resumes Check = "resumes"
)

// Finding is a check that a run failed.
type Finding struct {
	Check    Check  // or the name of a check of the user's own
	Plan     string // SendMessage_2/reply_lost/once
	Endpoint fakeserver.Endpoint
	Says     string // in one sentence
}

// found takes what a check has found: about an endpoint, or about the one that
// the plan disturbs if it is nil.
type found func(about *spec.Endpoint, says string, args ...any)

// checks are called with both executions of a disturbed run, each of which knows
// the undisturbed one, until one of the two says what is wrong.
var checks = []struct {
	name Check
	look func(*play, found)
}{
	{Panics, (*play).panics}, {Ends, (*play).endless}, {Swallowed, (*play).swallowed}, {Truth, (*play).untrue},
	{LostAgent, (*play).lostAgent}, {Doubled, (*play).doubled}, {Quota, (*play).overQuota}, {DeadKey, (*play).deadKey},
	{LostBYOK, (*play).lostBYOK}, {Leak, (*play).leaks}, {Secret, (*play).tells}, {Resumes, (*play).stuck},
}

// judge runs the checks, and reports what they find. Of the undisturbed run
// only Secret is looked at.
func (s *sweep) judge(t testing.TB, r *run) {
	t.Helper()
	var all []Finding
	add := func(check Check, about *spec.Endpoint, says string) {
		f := Finding{Check: check, Plan: r.name(), Endpoint: endpointOf(cmp.Or(about, r.target())), Says: says}
		if !slices.ContainsFunc(s.off, func(off func(Finding) bool) bool { return off(f) }) {
			all = append(all, f)
		}
	}
	for _, c := range checks {
		ill := false
		for _, p := range r.plays {
			if !ill && (r.plan != nil || c.name == Secret) {
				c.look(p, func(about *spec.Endpoint, says string, args ...any) {
					ill = true
					add(c.name, about, p.when()+fmt.Sprintf(says, args...))
				})
			}
		}
	}
	for _, own := range s.also {
		if err := own.look(r.public(s.public)); err != nil {
			add(Check(own.name), nil, err.Error())
		}
	}
	if len(all) > 0 {
		s.report(t, r, all)
	}
}

// target is the endpoint that the plan disturbs first; nil for a point.
func (r *run) target() *spec.Endpoint {
	if r.plan == nil {
		return nil
	}
	return r.plan[0].at
}

// endpointOf is an endpoint as users know it; "" for none.
func endpointOf(e *spec.Endpoint) fakeserver.Endpoint {
	if e == nil {
		return ""
	}
	return fakeserver.Endpoint(e.Method + " " + e.Path)
}
