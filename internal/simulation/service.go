package simulation

import (
	"sync"
	"time"
)

// service answers the calls of one API key. Times are since midnight of the
// first day.
type service struct {
	mu     sync.Mutex
	minute *size // its first limit, which may change
	limits []window
}

// perMinute is a service with a minute limit.
func (m model) perMinute(most int) *service {
	minute := &size{most, time.Minute}
	return &service{minute: minute, limits: []window{m.window(minute)}}
}

// call counts a call against all limits, or against none if one is spent; then
// wait is until that one has room again.
func (s *service) call(now time.Duration) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.limits {
		if wait := l.wait(now); wait > 0 {
			return wait
		}
	}
	for _, l := range s.limits {
		l.spend(now)
	}
	return 0
}

func (s *service) resize(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.minute.max = most
}

// allowed is how many calls a caller without latency, who asks at the very
// moment when there is room, gets accepted in from..to: what there is to use.
// He is there from begins on, which may be long before from.
func (s *service) allowed(begins, from, to time.Duration) (accepted int) {
	for now := begins; now < to; {
		wait := s.call(now)
		if wait == 0 && now >= from {
			accepted++
		}
		now += wait
	}
	return accepted
}
