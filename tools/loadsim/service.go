package loadsim

import (
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// Message is the attempt of SendMessage.
var Message = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents/{agent_id}/messages"}

// service answers the calls of one API key. Times are since midnight of the
// first day.
type service struct {
	mu     sync.Mutex
	limits []limit
}

type limit struct {
	*pacer.Limit
	window
}

// service is an unused one with the limits.
func (m Model) service(limits ...pacer.Limit) *service {
	s := &service{}
	for _, l := range limits {
		s.limits = append(s.limits, limit{&l, m.window(&l)})
	}
	return s
}

// call counts a call against all its limits, or against none if one is spent;
// then wait is until that one has room again.
func (s *service) call(attempt agentmessaging.LimitedAttempt, now time.Duration) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.limits {
		if Counts(*l.Limit, attempt) {
			wait = max(wait, l.wait(now))
		}
	}
	for _, l := range s.limits {
		if wait == 0 && Counts(*l.Limit, attempt) {
			l.spend(now)
		}
	}
	return wait
}

// retryAfter is a wait as a service tells it: in whole seconds, rounded up.
func retryAfter(wait time.Duration) time.Duration {
	return (wait + time.Second - 1).Truncate(time.Second)
}

// Counts reports whether a limit counts an attempt.
func Counts(l pacer.Limit, attempt agentmessaging.LimitedAttempt) bool {
	endpoint := spec.Find(attempt.Method, attempt.Path)
	return l.Counts == "" || endpoint.Counts(spec.Counted(l.Counts), attempt.SetsBYOK)
}

// resize changes the first limit.
func (s *service) resize(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits[0].Max = most
}

// allowed is how many messages a caller without latency, who asks at the very
// moment when there is room, gets accepted in from..to: what there is to use.
// He is there from begins on, which may be long before from.
func (s *service) allowed(begins, from, to time.Duration) (accepted int) {
	for now := begins; now < to; {
		wait := s.call(Message, now)
		if wait == 0 && now >= from {
			accepted++
		}
		now += wait
	}
	return accepted
}
