package fakeserver

import (
	"fmt"
	"net/http"
	"slices"
)

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
