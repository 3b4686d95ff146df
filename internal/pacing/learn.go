package pacing

import (
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// What the service's refusals teach. Figures without a reason of their own
// were found by simulation.
const (
	// fullEnough: with so much of the level used by ourselves, a refusal means
	// that the level is too high; with less, that somebody else uses the key.
	fullEnough = 0.85
	backOff    = 0.95 // of the level that was too high
	nearlyFull = 0.98 // of a long window's level, for it to be suspected before a short one
	foreign    = 0.8  // the most that somebody else's use lowers it at once
	climb      = 0.1  // of the limit, in each quiet window
	nearFailed = 0.97 // of the level that failed: the climb ends there
	forgetting = 10   // windows until the level that failed is tried again
	smallBurst = 30   // windows until a burst that was too large is
	slower     = 1.05 // the pace after a refusal that followed it

	probeLife = 60 * second // a probe without an outcome is given up
	maxSeen   = 64          // names of limits; they are foreign text
)

// mayLearn reports whether the kind of the window is still to be found out.
func (l *limit) mayLearn() bool {
	return l.long() && l.kind == unknown && !l.tuning.NoLearning
}

func (l *limit) probing(now int64) bool {
	return l.probe != 0 && now-l.probeAt < probeLife
}

// mayProbe reports whether nothing but the logs of long windows, whose kind is
// not known, keeps the call: then it may find out.
func (s *State) mayProbe(now int64, spends quota.Set, ahead, crowd *counts) bool {
	for i := range s.limits {
		l := &s.limits[i]
		if !spends.Has(i) || l.earliest(now, ahead[i], crowd[i] > 0) <= now {
			continue
		}
		if ahead[i] > 0 || !l.mayLearn() || l.probing(now) || l.cool > now {
			return false
		}
	}
	return true
}

func (s *State) isProbe(step quota.Step) bool {
	return slices.ContainsFunc(s.limits, func(l limit) bool { return l.probe == step.ID && step.ID != 0 })
}

func (s *State) endProbe(id uint64) {
	for i := range s.limits {
		if s.limits[i].probe == id {
			s.limits[i].probe = 0
		}
	}
}

// accepted: the window is not a sliding one, or the call would have been
// refused. What came before it counts no more.
func (s *State) accepted(step quota.Step) {
	for i := range s.limits {
		l := &s.limits[i]
		if l.probe != step.ID || step.ID == 0 {
			continue
		}
		l.probe = 0
		l.forgetBefore(l.probeAt)
	}
}

func (s *State) refused(now int64, step quota.Step) {
	retryAfter := min(max(0, step.RetryAfter.Microseconds()), farthest)
	s.endProbe(step.ID)
	blamed := s.blame(step, retryAfter)
	if blamed < 0 {
		return // it spent none of the limits
	}
	l := &s.limits[blamed]
	l.cool = max(l.cool, now+retryAfter)
	switch {
	case l.tuning.NoLearning:
	case l.long():
		l.learnKind(now, retryAfter)
	default:
		l.correct(now, retryAfter, now-s.epoch > l.window)
	}
}

// blame finds the limit that a refusal came from. A limit of that name is it.
// Otherwise it is one that all calls spent which were refused under the name,
// whose window is not shorter than the wait, and which is the fullest; a long
// window that has room only if there is no short one, since what is learned of a
// long one lasts. It is -1 for a call that spent none.
func (s *State) blame(step quota.Step, retryAfter int64) int {
	suspects := s.suspects(step)
	best, most := -1, 0.0
	for i := range s.limits {
		l := &s.limits[i]
		if !suspects.Has(i) || retryAfter > l.window+2*second {
			continue
		}
		fill := float64(len(l.log)) / l.level
		if l.long() && fill < nearlyFull {
			fill -= 2 // below all short ones
		}
		if best < 0 || fill > most {
			best, most = i, fill
		}
	}
	if best < 0 {
		return s.longest(suspects)
	}
	return best
}

func (s *State) suspects(step quota.Step) quota.Set {
	for i := range s.limits {
		if step.LimitKey != "" && s.limits[i].key == step.LimitKey && step.Spends.Has(i) {
			return quota.SetOf(i)
		}
	}
	known, ok := s.seen[step.LimitKey]
	if !ok {
		known = step.Spends
	}
	if known&step.Spends == 0 || step.LimitKey == "" {
		return step.Spends
	}
	if ok || len(s.seen) < maxSeen {
		s.seen[step.LimitKey] = known & step.Spends
	}
	return known & step.Spends
}

func (s *State) longest(suspects quota.Set) int {
	best := -1
	for i := range s.limits {
		if suspects.Has(i) && (best < 0 || s.limits[i].window > s.limits[best].window) {
			best = i
		}
	}
	return best
}

// correct lowers what the limit allows, once for all refusals that came of the
// same mistake.
func (l *limit) correct(now, retryAfter int64, old bool) {
	two := int64(2 * float64(l.window) / l.level)
	if now-l.corrected < two {
		return
	}
	switch {
	case l.burst > 1 && retryAfter <= two+second:
		l.burst = max(1, l.burst/2)
		l.burstMost, l.halvedAt = l.burst, now
	case old:
		l.lower(now)
	default:
		return // a young state does not know what was called before it
	}
	l.corrected, l.grown = now, now
}

func (l *limit) lower(now int64) {
	own := float64(len(l.log))
	l.failed, l.failedAt = l.level, now
	if own >= fullEnough*l.level {
		l.level = backOff * l.level
	} else {
		l.failed = max(own, foreign*l.level)
		l.level = l.failed
	}
	l.level = max(1, l.level)
	l.burst = 1
}

// grow raises again what refusals have lowered, a step for each quiet window.
func (l *limit) grow(now int64) {
	if l.long() || l.level >= float64(l.max) && l.burst >= l.burstMost && l.halvedAt == 0 {
		return
	}
	if l.halvedAt != 0 && now-l.halvedAt >= smallBurst*l.window {
		l.halvedAt, l.burstMost = 0, mostBurst(l.max, l.tuning)
	}
	for n := 0; now-l.grown >= l.window && n < forgetting; n++ {
		l.grown += l.window
		l.burst = min(l.burstMost, 2*l.burst)
		most := float64(l.max)
		if now-l.failedAt < forgetting*l.window && l.failed > 0 {
			most = min(most, nearFailed*l.failed)
		}
		l.level = max(l.level, min(most, l.level+climb*float64(l.max)))
	}
}

// learnKind learns from the wait that a long window's refusal asks for: until
// our own oldest call comes free, until the next single one, or until an end
// that has nothing to do with our calls.
func (l *limit) learnKind(now, retryAfter int64) {
	even := l.window / int64(l.max)
	switch {
	case l.kind == paced && retryAfter <= 2*even:
		l.slowDown(now)
	case l.kind == fixed && l.near(now+retryAfter, l.end):
		// It is the window that is known.
	case len(l.log) > 0 && l.near(now+retryAfter, l.log[0].at+l.window):
		l.kind = sliding
	case retryAfter <= even+2*second:
		l.kind, l.burst = paced, max(1, len(l.log))
		l.credit, l.creditAt, l.corrected = 0, now, now
	case l.kind == fixed && 2*len(l.log) < l.max:
		l.kind = unknown
	default:
		l.kind, l.end = fixed, now+retryAfter
	}
}

// slowDown paces the calls more slowly, once for all that were under way.
func (l *limit) slowDown(now int64) {
	if now-l.corrected >= l.distance() {
		l.pace, l.corrected = min(l.pace*slower, float64(l.max)), now
	}
	l.credit, l.creditAt = 0, now
}

// near reports whether two times are the same but for rounding and delays.
func (l *limit) near(a, b int64) bool { return max(a-b, b-a) <= l.window/500+2*second }
