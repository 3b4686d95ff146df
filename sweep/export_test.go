package sweep

import (
	"slices"
	"testing"
	"time"
)

// Finding is a check that a run failed.
type Finding = finding

// Collect takes what Test finds, in place of failing the test, and last of all
// the summary, with nothing found.
func Collect(take func(report string, found []Finding)) Option {
	return func(c *config) { c.collect = take }
}

// Alarm wakes the watchdog, in place of time.
func Alarm(alarm <-chan time.Time) Option {
	return func(c *config) { c.after = func(time.Duration) <-chan time.Time { return alarm } }
}

// Deadline sets when the test binary ends, in place of go test -timeout.
func Deadline(at time.Time) Option {
	return func(c *config) { c.deadline = func(*testing.T) (time.Time, bool) { return at, true } }
}

// Faults tries these kinds of faults alone, for speed, and those that package faults
// does not have. "dies" are all deaths.
func Faults(names ...string) Option {
	names = append(names, "agent_gone", "fails")
	return func(c *config) { c.skip = func(fault string) bool { return !slices.Contains(names, fault) } }
}
