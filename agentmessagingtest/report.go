package agentmessagingtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// summary counts what was tried, and by check what was found: many runs fail for
// one reason.
func (s *sweep) summary() string {
	parts := []string{plural(len(s.faults), "fault"), plural(s.runs, "run"), time.Since(s.undertook).Round(time.Millisecond).String()}
	for _, check := range slices.Sorted(maps.Keys(s.failed)) {
		parts = append(parts, fmt.Sprintf("%s in %s", check, plural(s.failed[check], "run")))
	}
	return fmt.Sprintf("swept %s: %s", plural(len(s.baseline.plays[0].calls), "call"), strings.Join(parts, ", "))
}

// report fails the test with what was found, what happened, and how to see it
// again.
func (s *sweep) report(t testing.TB, r *run, found []Finding) {
	t.Helper()
	var b strings.Builder
	for _, f := range found {
		s.failed[f.Check]++
		fmt.Fprintf(&b, "%s: %s\n", f.Check, f.Says)
	}
	for _, h := range r.plan {
		fmt.Fprintf(&b, "  %s meets %s (%s): %s\n", h.target, h.fault.Name, h.lasts, h.fault.Says)
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
