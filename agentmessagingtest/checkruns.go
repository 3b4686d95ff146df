package agentmessagingtest

import (
	"fmt"
	"strings"
	"time"
)

// either calls a check with both executions of the scenario.
func (s *sweep) either(r *run, check func(p, undisturbed *play) string) (Finding, bool) {
	for _, restart := range []bool{false, true} {
		if says := check(r.played(restart), s.baseline.played(restart)); says != "" {
			return Finding{Says: strings.TrimSpace(when(restart) + says)}, true
		}
	}
	return Finding{}, false
}

func (s *sweep) panics(r *run) (Finding, bool) {
	return s.either(r, func(p, _ *play) string {
		if p.panicked == "" {
			return ""
		}
		return "the scenario panicked: " + p.panicked
	})
}

func (s *sweep) endless(r *run) (Finding, bool) {
	return s.either(r, func(p, _ *play) string {
		switch limit := s.longest(p.restart); {
		case p.endless != "":
			return "the scenario had to be ended: " + p.endless
		case p.lasted > limit:
			return fmt.Sprintf("the scenario took %s of virtual time; at most %s are allowed (Within)", p.lasted.Round(time.Second), limit.Round(time.Second))
		}
		return ""
	})
}

func (s *sweep) overQuota(r *run) (Finding, bool) {
	return s.either(r, func(p, undisturbed *play) string {
		if p.requests <= s.quota(p.restart) {
			return ""
		}
		return fmt.Sprintf("the scenario made %s; undisturbed it makes %d", plural(p.requests, "request"), undisturbed.requests)
	})
}

func (s *sweep) deadKey(r *run) (Finding, bool) {
	return s.either(r, func(p, undisturbed *play) string {
		if p.longest <= max(3, undisturbed.longest) {
			return ""
		}
		return fmt.Sprintf("the service has answered 401 or 402 %d times in a row: nothing helps but another key or plan", p.longest)
	})
}

func (s *sweep) leaks(r *run) (Finding, bool) {
	return s.either(r, func(p, undisturbed *play) string {
		if len(p.left) <= len(undisturbed.left) {
			return ""
		}
		return plural(len(p.left), "kind") + " of goroutines left behind:\n" + strings.Join(p.left, "\n")
	})
}

func (s *sweep) tells(r *run) (Finding, bool) {
	return s.either(r, func(p, _ *play) string {
		all := p.told.all()
		for _, key := range append(r.secrets, r.fake.Key()) {
			if strings.Contains(all, key) {
				return "a key stands in what the application told"
			}
		}
		return ""
	})
}
