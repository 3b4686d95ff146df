package agentmessagingtest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Check is what [Sweep] looks for after a run. "Told" is what the application
// reports, asserts, logs at Warn or above, or prints of this module's errors;
// it is compared with the undisturbed run.
type Check string

// The checks. All are on; see [Without].
const (
	// Swallowed: a call failed, no later call made it good, and no more errors
	// were told than undisturbed. What makes good is the same text, the same
	// customer_ref, or else the same endpoint of the same agent; a new agent for
	// one that is gone; and a look at the agent, or at the BYOK configuration,
	// after an attempt to change it.
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

// judge runs the checks, and reports what they find. Of the undisturbed run
// only Secret is looked at.
func (s *sweep) judge(t testing.TB, r *run) {
	t.Helper()
	var found []Finding
	add := func(check Check, says string, about *spec.Endpoint) {
		f := Finding{Check: check, Plan: r.name(), Endpoint: endpointOf(cmp.Or(about, r.target())), Says: says}
		if !slices.ContainsFunc(s.off, func(off func(Finding) bool) bool { return off(f) }) {
			found = append(found, f)
		}
	}
	for _, c := range checks {
		for _, p := range r.plays {
			if r.plan == nil && c.name != Secret {
				continue
			}
			if says, about := c.find(p, s.baseline.like(p)); says != "" {
				add(c.name, when(p)+says, about)
				break
			}
		}
	}
	for _, own := range s.also {
		if err := own.look(r.public(s.public)); err != nil {
			add(Check(own.name), err.Error(), nil)
		}
	}
	if len(found) > 0 {
		s.report(t, r, found)
	}
}

// target is the endpoint that the plan disturbs first; nil for a point.
func (r *run) target() *spec.Endpoint {
	if r.plan == nil {
		return nil
	}
	return r.plan.hits[0].at
}

// endpointOf is an endpoint as users know it; "" for none.
func endpointOf(e *spec.Endpoint) fakeserver.Endpoint {
	if e == nil {
		return ""
	}
	return fakeserver.Endpoint(e.Method + " " + e.Path)
}

// report fails the test with what was found, what happened, and how to see it
// again.
func (s *sweep) report(t testing.TB, r *run, found []Finding) {
	t.Helper()
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s: %s\n", f.Check, f.Says)
	}
	if r.plan != nil {
		for _, h := range r.plan.hits {
			fmt.Fprintf(&b, "  %s meets %s (%s): %s\n", h.target, h.fault.Name, h.lasts, h.fault.Says)
		}
	}
	for _, p := range r.plays {
		if p != nil {
			p.transcript(&b)
		}
	}
	fmt.Fprintf(&b, "  again: %s", s.repeat(t))
	if s.collect != nil {
		s.collect(b.String(), found)
		return
	}
	t.Errorf("%s", b.String())
}

// transcript writes the calls of a play, each in a line, and what was told.
func (p *play) transcript(b *strings.Builder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.restart {
		fmt.Fprintf(b, "  restart, 25 h later\n")
	}
	for _, c := range p.calls {
		fmt.Fprintf(b, "  %8s  %-16s %-13s %s\n", c.begun.Sub(p.begun).Round(time.Millisecond), c.Name, c.AgentID, c.line())
	}
	told := strings.TrimSpace(p.told.all())
	if told == "" {
		told = "nothing"
	}
	fmt.Fprintf(b, "  told: %s\n", strings.ReplaceAll(told, "\n", "\n        "))
}

// line is what became of a call: 502 bad_gateway, 200.
func (c *Call) line() string {
	var parts []string
	for _, a := range c.Attempts {
		part := fmt.Sprint(a.Status)
		if a.Err != nil {
			part = a.Err.Error()
		}
		if a.Fault != "" {
			part += " [" + a.Fault + "]"
		}
		parts = append(parts, part)
	}
	line := strings.Join(parts, ", ")
	switch {
	case len(parts) == 0:
		line = "not sent"
	case !c.ended:
		line += ", under way"
	}
	if c.Err != nil {
		line += ": " + oneLine(c.Err.Error())
	}
	return line
}

const maxLine = 300

// oneLine is a text in one bounded line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxLine {
		text = text[:maxLine] + "…"
	}
	return text
}

// repeat is the command that makes a run alone.
func (s *sweep) repeat(t testing.TB) string {
	var parts []string
	for _, part := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return fmt.Sprintf("go test -run '%s'", strings.Join(parts, "/"))
}
