package sweep

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// A cause groups failed runs with the same check and endpoint. For checks of a whole run, runs
// with and without a death are separate causes, and so are runs with and without a report.
type cause struct {
	finding      finding // the finding of the first run
	first        *run
	plans        []string
	died, silent bool
}

// runChecks runs the checks, and keeps their findings. On the baseline it runs only
// Secret and the user's own checks.
func (s *sweep) runChecks(r *run) {
	s.t.Helper()
	var hitEndpoint *spec.Endpoint // the endpoint of the first call that the plan's fault hit
	if r.plan != nil {
		hitEndpoint = r.plan.at
	}
	seen := map[Check]bool{} // the checks that an earlier execution of the run has failed
	for _, rec := range r.records {
		if rec.died != "" {
			continue
		}
		rec.checkExecution(func(check Check, about *spec.Endpoint, format string, args ...any) {
			if !seen[check] && (r.name != "" || check == Secret) {
				seen[check] = true
				s.addToCause(r, false, finding{check, r.name, endpointOf(cmp.Or(about, hitEndpoint)), rec.when() + fmt.Sprintf(format, args...)})
			}
		})
	}
	if r.last().stalled != "" {
		return // the scenario may still be running
	}
	if r.name != "" {
		r.checkRun(func(check Check, about *spec.Endpoint, format string, args ...any) {
			s.addToCause(r, true, finding{check, r.name, endpointOf(cmp.Or(about, hitEndpoint)), fmt.Sprintf(format, args...)})
		})
	}
	for _, own := range s.userChecks {
		if err := own.check(r.forCheck()); err != nil {
			s.addToCause(r, false, finding{Check(own.name), r.name, endpointOf(hitEndpoint), err.Error()})
		}
	}
}

// addToCause adds a finding to its cause. aboutRun says that the finding is about a whole
// run, and not about one execution.
func (s *sweep) addToCause(r *run, aboutRun bool, f finding) {
	s.t.Helper()
	switch {
	case s.drops(f):
		return
	case r.name == "":
		s.t.Fatalf("sweep: the check %q fails without faults: %s", f.Check, r.last().withoutKeys(f.Says))
	}
	for _, rec := range slices.Backward(r.records) {
		f.Says = rec.withoutKeys(f.Says) // the texts of a panic and of the user's own checks
		if rec.died != "" {
			f.Says = "the process died " + rec.died + "; " + f.Says
		}
	}
	died := aboutRun && r.died() && r.plan == nil // a fault in the restart is a more likely cause than the death
	silent := aboutRun && len(r.reports()) == 0
	i := slices.IndexFunc(s.causes, func(c *cause) bool {
		alike := c.finding.Check == f.Check && c.finding.Endpoint == f.Endpoint && c.died == died && c.silent == silent
		return alike && (!s.oneRun() || c.finding.Plan == f.Plan)
	})
	if i < 0 {
		i = len(s.causes)
		s.causes = append(s.causes, &cause{finding: f, first: r, died: died, silent: silent})
	}
	if c := s.causes[i]; !slices.Contains(c.plans, r.name) {
		c.plans = append(c.plans, r.name)
	}
}

// oneRun reports whether the flag -run asks for runs by name. Then each of these runs is
// reported, and not only the first of a cause.
func (s *sweep) oneRun() bool {
	asked := flag.Lookup("test.run")
	return asked != nil && strings.Count(asked.Value.String(), "/") > strings.Count(s.t.Name(), "/")
}

// report fails the test with each cause that was found. Causes with the same first run
// are reported together.
func (s *sweep) report() {
	s.t.Helper()
	asked := false // -run asked for a run that exists
	slices.SortStableFunc(s.causes, func(a, b *cause) int { return len(b.plans) - len(a.plans) })
	for len(s.causes) > 0 {
		plan, report, found := s.takeFirst()
		if s.collect != nil {
			s.collect(report, found)
			continue
		}
		delete(s.outcomes, plan)
		s.t.Run(plan, func(t *testing.T) { asked = true; t.Error(report) })
	}
	if s.oneRun() {
		for _, name := range slices.Sorted(maps.Keys(s.outcomes)) {
			s.t.Run(name, func(t *testing.T) { asked = true; t.Log("sweep: " + s.outcomes[name]) })
		}
		if !asked {
			s.t.Log("sweep: there is no such run")
		}
	}
	s.t.Log(s.summary())
	if s.collect != nil {
		s.collect(s.summary(), nil)
	}
}

// takeFirst takes the first cause, and all with the same first run, out of the causes.
func (s *sweep) takeFirst() (plan, report string, found []finding) {
	first := s.causes[0]
	plan = first.finding.Plan
	for _, c := range s.causes {
		if c.finding.Plan == plan {
			found, report = append(found, c.finding), report+s.describeCause(c)
		}
	}
	s.causes = slices.DeleteFunc(s.causes, func(c *cause) bool { return c.finding.Plan == plan })
	return plan, report + s.story(first.first), found
}

// summary counts the runs and the findings in words.
func (s *sweep) summary() string {
	parts := []string{printable.Plural(len(s.faults), "fault"), fmt.Sprintf("%s that leave %s", printable.Plural(s.deaths, "death"), printable.Plural(len(s.states), "state")),
		printable.Plural(s.executions, "execution"), time.Since(s.started).Round(time.Millisecond).String()}
	addIf := func(happened bool, says string) {
		if happened {
			parts = append(parts, says)
		}
	}
	addIf(s.untried > 0, printable.Plural(s.untried, "death")+" had no run, because that would be too many states")
	addIf(s.watch.Missed, "some torn files were not tried")
	addIf(s.missedPlans > 0, printable.Plural(s.missedPlans, "plan")+" hit nothing")
	addIf(!s.restored, "nothing is kept in Env.Dir, so that no restart knows what came before")
	addIf(s.stalls >= maxStalls, printable.Plural(s.stalls, "run")+" stalled and the others were not tried")
	return fmt.Sprintf("swept %s: %s", printable.Plural(len(s.baseline.records[0].calls), "call"), strings.Join(parts, ", "))
}

// describeCause says what is wrong, and which other runs show it.
func (s *sweep) describeCause(c *cause) string {
	says := fmt.Sprintf("%s: %s\n", c.finding.Check, c.finding.Says)
	if others := c.plans[1:]; len(others) > 0 {
		says += fmt.Sprintf("  the same in %s, perhaps for another cause (go test -v -run '%s/NAME'), such as %s\n",
			printable.Plural(len(others), "other run"), pattern(s.t.Name()), strings.Join(others[:min(3, len(others))], ", "))
	}
	return says
}

// pattern returns a pattern for -run that matches only the test with this name.
func pattern(name string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^") + "$"
}

// story describes what happened in a run, and how to see it again.
func (s *sweep) story(r *run) string {
	var b strings.Builder
	if r.plan != nil {
		fmt.Fprintf(&b, "  %s meets %s (%s): %s\n", r.plan.place(), r.plan.fault.Name, r.plan.lasts, r.plan.fault.Description)
	}
	for i, rec := range r.records {
		if i > 0 {
			fmt.Fprintf(&b, "  restart, %s later\n", stages[rec.stage].later)
		}
		rec.transcript(&b)
	}
	fmt.Fprintf(&b, "  again: go test -v -run '%s'", pattern(s.t.Name()+"/"+r.name))
	return b.String()
}

// transcript writes the calls of an execution, one in a line, and its reports.
func (rec *record) transcript(b *strings.Builder) {
	var calls []string
	for _, c := range rec.calls {
		at, name := c.begun.Sub(rec.begun).Round(time.Millisecond), cmp.Or(c.Name, c.spec.Name)
		calls = append(calls, fmt.Sprintf("  %8s  %-16s %-13s %s\n", at, name, c.AgentID, c.line()))
	}
	b.WriteString(strings.Join(shorten(calls), ""))
	said := cmp.Or(strings.TrimSpace(rec.withoutKeys(rec.said())), "nothing")
	fmt.Fprintf(b, "  said: %s\n", strings.Join(shorten(strings.SplitAfter(said, "\n")), "        "))
	if rec.died != "" {
		fmt.Fprintf(b, "  the process dies %s\n", rec.died)
	}
}

// shorten returns the first and the last ten lines, because an application that never stops
// calling would fill pages.
func shorten(lines []string) []string {
	const ends = 10
	if more := len(lines) - 2*ends; more > 0 {
		return slices.Concat(lines[:ends], []string{fmt.Sprintf("  (and %d more)\n", more)}, lines[len(lines)-ends:])
	}
	return lines
}

// line describes the attempts of a call: 502 bad_gateway, 200.
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
	if len(parts) > 0 && !c.ended {
		parts = append(parts, "under way")
	}
	line := cmp.Or(strings.Join(parts, ", "), "not sent")
	if c.Err != nil {
		line += ": " + printable.Line(c.Err.Error(), maxLine)
	}
	return line
}
