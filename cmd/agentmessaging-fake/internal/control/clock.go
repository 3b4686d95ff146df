package control

import "time"

// clock is GET clock.
func (s *Server) clock(*request) (any, error) {
	return struct {
		Now      time.Time `json:"now"`
		Advanced string    `json:"advanced"`
	}{s.fake.Now(), s.admin().Advanced().String()}, nil
}

// step is the body of POST clock.
type step struct {
	Duration string    `json:"duration" check:"advance"`
	Until    time.Time `json:"until"`
}

func (b step) flaw() error {
	if (b.Duration == "") == b.Until.IsZero() {
		return badRequest("body", "needs duration or until")
	}
	return nil
}

// advance is POST clock. A time that has passed leaves the clock as it is, so
// that a client which waits in the fake's time need not ask first.
func (s *Server) advance(body step) (any, error) {
	d := max(0, body.Until.Sub(s.fake.Now()))
	if body.Duration != "" {
		d = parsed(body.Duration)
	}
	if d > maxAdvance-s.admin().Advanced() {
		return nil, badRequest("duration", "the clock goes at most %v forward in all", maxAdvance)
	}
	s.fake.Advance(d)
	return s.clock(nil)
}
