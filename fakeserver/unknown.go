package fakeserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// maxUnknown is how many calls to unknown routes are reported: a client that
// polls one would fill the log of a test.
const maxUnknown = 10

// reportUnknown fails the test for a call that no endpoint is there for: in
// tests that is a wrong path, not an answer to handle. A fake without a test
// reports none, since it may get foreign traffic.
func (s *Server) reportUnknown(req *request) {
	if req.misrouted == nil || s.tb == nil || s.config.unknownOK {
		return
	}
	switch n := s.unknown.Add(1); {
	case n < maxUnknown:
		s.reportf("%s", unknownRoute(req.record.call.Method, req.record.call.Path))
	case n == maxUnknown:
		s.reportf("%s; further calls to unknown routes are not reported", unknownRoute(req.record.call.Method, req.record.call.Path))
	}
}

// unknownRoute says where the call went, and which endpoint it may have meant.
// The path is that of the record: without query and without the call's key.
func unknownRoute(method, path string) string {
	best, least := routes[0], -1
	for _, r := range routes {
		if d := distance(&r, method, path); least < 0 || d < least {
			best, least = r, d
		}
	}
	return fmt.Sprintf("no endpoint is at %s %s; nearest: %s (%s); WithUnknownRoutes allows such calls",
		bounded(method), bounded(path), best.name, difference(&best, method, path))
}

// What a difference counts: a wrong letter 1, another method less than a
// segment too few or too many, and another word as much as two of those.
const (
	otherMethod  = 3
	gapSegment   = 4
	otherSegment = 2 * gapSegment
)

func distance(r *route, method, path string) int {
	want, got := segments(r.spec.Path), segments(path)
	total := edits(len(want), len(got), gapSegment, func(i, j int) int { return apart(want[i], got[j]) })
	if r.spec.Method != method {
		total += otherMethod
	}
	return total
}

// apart is how far a segment is from what the template wants, and at most
// otherSegment.
func apart(want, got string) int {
	switch {
	case fits(want, got):
		return 0
	case want == "{agent_id}": // one that is empty was forgotten
		return 1
	case len(got) > len(want)+otherSegment: // no need to look at all of it
		return otherSegment
	}
	letters := edits(len(want), len(got), 1, func(i, j int) int {
		if want[i] == got[j] {
			return 0
		}
		return 1
	})
	return min(letters, otherSegment)
}

func fits(want, got string) bool {
	_, ok := match("/"+want, "/"+got)
	return ok
}

// edits is the least that it costs to make one list, of length n, of another,
// of length m: gap for each item too many or too few, and cost for an item that
// stands in place of another.
func edits(n, m, gap int, cost func(i, j int) int) int {
	row := make([]int, m+1)
	for j := range row {
		row[j] = j * gap
	}
	for i := range n {
		diagonal := row[0]
		row[0] += gap
		for j := range m {
			replaced := diagonal + cost(i, j)
			diagonal, row[j+1] = row[j+1], min(replaced, row[j]+gap, row[j+1]+gap)
		}
	}
	return row[m]
}

// difference is the first thing that keeps the path from being the route's, or
// the method where nothing does.
func difference(r *route, method, path string) string {
	want, got := segments(r.spec.Path), segments(path)
	i := 0
	for i < len(want) && i < len(got) && fits(want[i], got[i]) {
		i++
	}
	switch {
	case i < len(got) && fit(want[i:], got[i+1:]):
		return fmt.Sprintf("segment %d, %s, is one too many", i+1, quoteName(got[i]))
	case i < len(want) && fit(want[i+1:], got[i:]):
		return fmt.Sprintf("segment %d, %s, is missing", i+1, want[i])
	case i < len(want) && i < len(got):
		return fmt.Sprintf("segment %d is %s, not %q", i+1, quoteName(got[i]), want[i])
	case len(want) != len(got):
		return fmt.Sprintf("it has %d segments, not %d", len(got), len(want))
	}
	return fmt.Sprintf("the method is %s, not %s", bounded(method), r.spec.Method)
}

func fit(want, got []string) bool { return slices.EqualFunc(want, got, fits) }

func segments(path string) []string { return strings.Split(strings.TrimPrefix(path, "/"), "/") }

// nearMiss says which of the calls came nearest to what a rule waited for, and
// which of its matchers refused it. Of calls that are as near, the last.
func (r *rule) nearMiss(calls []*record) string {
	var nearest *record
	var refused []Matcher
	for _, rec := range slices.Backward(calls) {
		if r.method == "OnMessage" && rec.call.Endpoint != EndpointSendMessage {
			continue
		}
		if missing := refusing(r.matchers, rec); nearest == nil || len(missing) < len(refused) {
			nearest, refused = rec, missing
		}
	}
	if nearest == nil {
		return "no call came near"
	}
	return fmt.Sprintf("nearest: %s, %s", nearest.call, r.verdict(refused, nearest))
}

// verdict says why a call was not the rule's.
func (r *rule) verdict(refused []Matcher, rec *record) string {
	switch {
	case len(refused) == len(r.matchers) && len(refused) > 0:
		return "not matched by " + listed(refused)
	case len(refused) > 0:
		return fmt.Sprintf("matched by %s but not by %s", listed(r.passing(rec)), listed(refused))
	case rec.call.Status != http.StatusOK:
		return "which matches, but was not accepted"
	default:
		return "which matches: it came before the rule was made, or another acted on it"
	}
}

func (r *rule) passing(rec *record) []Matcher {
	return slices.DeleteFunc(slices.Clone(r.matchers), func(m Matcher) bool { return !passes(m, rec) })
}

// refusing returns the matchers that do not match.
func refusing(matchers []Matcher, rec *record) []Matcher {
	return slices.DeleteFunc(slices.Clone(matchers), func(m Matcher) bool { return passes(m, rec) })
}

// passes asks a matcher in a test that has failed already: that it panics is
// no more than a no.
func passes(m Matcher, rec *record) (matched bool) {
	defer func() { _ = recover() }()
	return m.matches(rec)
}
