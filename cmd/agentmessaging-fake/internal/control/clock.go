package control

import "time"

// clock is GET clock.
func (s *Server) clock(*request) (any, error) {
	return struct {
		Now      time.Time `json:"now"`
		Advanced string    `json:"advanced"`
	}{s.fake.Now(), s.fake.Admin().Advanced().String()}, nil
}

type step struct {
	Duration string `json:"duration" check:"required advance"`
}

// advance is POST clock/advance.
func (s *Server) advance(body step) (any, error) {
	d := parsed(body.Duration)
	if d > maxAdvance-s.fake.Admin().Advanced() {
		return nil, badRequest("duration", "the clock goes at most %v forward in all", maxAdvance)
	}
	s.fake.Advance(d)
	return s.clock(nil)
}
