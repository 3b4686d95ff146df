package control

import "time"

// clock is GET clock.
func (w *world) clock(*request) (any, error) {
	return struct {
		Now      time.Time `json:"now"`
		Advanced string    `json:"advanced"`
	}{w.fake.Now(), w.fake.Admin().Advanced().String()}, nil
}

type step struct {
	Duration string `json:"duration" check:"required advance"`
}

// advance is POST clock/advance.
func (w *world) advance(body step) (any, error) {
	d := parsed(body.Duration)
	if d > maxAdvance-w.fake.Admin().Advanced() {
		return nil, badRequest("duration", "the clock goes at most %v forward in all", maxAdvance)
	}
	w.fake.Advance(d)
	return w.clock(nil)
}
