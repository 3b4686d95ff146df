package sweep

import (
	"time"
)

// Collect takes what Sweep finds, in place of failing the test, and last of all
// the summary, with nothing found.
func Collect(take func(report string, found []Finding)) Option {
	return func(c *config) { c.collect = take }
}

// Alarm wakes the watchdog, in place of time.
func Alarm(alarm <-chan time.Time) Option {
	return func(c *config) { c.alarm = func(time.Duration) <-chan time.Time { return alarm } }
}
