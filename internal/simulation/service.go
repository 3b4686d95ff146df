package simulation

import (
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// Endpoints that the workers call, who have all the patience there is.
var (
	sendMessage = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents/{agent_id}/messages", MaxWait: patience}
	createAgent = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents", MaxWait: patience}
)

const patience = 1000 * time.Hour

// serviceLimit is a limit as the service enforces it.
type serviceLimit struct {
	key    string
	window window
	// only is the path of the endpoint that spends it; empty means all.
	only string
}

func (l serviceLimit) counts(a agentmessaging.LimitedAttempt) bool {
	return l.only == "" || l.only == a.Path
}

// service answers the calls of one API key.
type service struct {
	mu     sync.Mutex
	limits []serviceLimit
}

// answer is the service's to a call.
type answer struct {
	accepted   bool
	key        string
	retryAfter time.Duration // whole seconds
}

// call counts a call against all of its limits, or against none and names the
// first that is spent.
func (s *service) call(now time.Duration, a agentmessaging.LimitedAttempt) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.judge(now, a)
	if !got.accepted {
		return got
	}
	for _, l := range s.limits {
		if l.counts(a) {
			l.window.spend(now)
		}
	}
	return got
}

func (s *service) judge(now time.Duration, a agentmessaging.LimitedAttempt) answer {
	for _, l := range s.limits {
		if !l.counts(a) {
			continue
		}
		if wait := l.window.wait(now); wait > 0 {
			return answer{key: l.key, retryAfter: seconds(wait)}
		}
	}
	return answer{accepted: true}
}

// seconds rounds up, as Retry-After does.
func seconds(wait time.Duration) time.Duration {
	return (wait + time.Second - 1).Truncate(time.Second)
}

// resize changes how many calls a limit allows.
func (s *service) resize(limit, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch w := s.limits[limit].window.(type) {
	case *fixedWindow:
		w.max = most
	case *slidingLog:
		w.max = most
	case *slidingCounter:
		w.max = most
	case *tokenBucket:
		w.every, w.burst = w.every*time.Duration(w.burst)/time.Duration(most), most
	}
}

// allowed is how many calls a caller without latency, who asks at the very
// moment when there is room, gets accepted in from..to: what there is to use.
// He is there from begins on, which may be long before from.
func (s *service) allowed(begins, from, to time.Duration, a agentmessaging.LimitedAttempt) int {
	accepted := 0
	for now := begins; now < to; {
		if wait := s.longestWait(now, a); wait > 0 {
			now += wait
			continue
		}
		s.call(now, a)
		if now >= from {
			accepted++
		}
	}
	return accepted
}

func (s *service) longestWait(now time.Duration, a agentmessaging.LimitedAttempt) time.Duration {
	var longest time.Duration
	for _, l := range s.limits {
		if l.counts(a) {
			longest = max(longest, l.window.wait(now))
		}
	}
	return longest
}
