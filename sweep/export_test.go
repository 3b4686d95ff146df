package sweep

import (
	"slices"
	"testing"
	"time"
)

// Finding is a check that a run failed.
type Finding = finding

// Collect passes each report and its findings to a function, in place of failing the test. The
// last call has the summary, without findings.
func Collect(take func(report string, found []Finding)) Option {
	return func(c *config) { c.collect = take }
}

// Alarm wakes the watchdog, in place of time.
func Alarm(alarm <-chan time.Time) Option {
	return func(c *config) { c.after = func(time.Duration) <-chan time.Time { return alarm } }
}

// NearlyOver leaves a twentieth of the time that has passed, in place of go test -timeout.
func NearlyOver(c *config) {
	began := time.Now()
	c.deadline = func(*testing.T) (time.Time, bool) { return time.Now().Add(time.Since(began) / 20), true }
}

// Faults tries only these faults, for speed, and the faults that package faults does not have.
// "dies" stands for all deaths.
func Faults(names ...string) Option {
	names = append(names, "agent_gone", "fails")
	return func(c *config) { c.skip = func(fault string) bool { return !slices.Contains(names, fault) } }
}
