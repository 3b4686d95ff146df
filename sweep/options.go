package sweep

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Option changes how [Test] works.
type Option func(*config)

// config holds the values of Test's options.
type config struct {
	clientOptions  []agentmessaging.Option
	fakeOptions    []fakeserver.Option
	without        []without
	userChecks     []userCheck
	bubble         bool
	maxVirtualTime time.Duration
	watchdog       time.Duration

	// For tests of Test:
	collect  func(report string, found []finding) // gets the report in place of failing the test
	after    func(time.Duration) <-chan time.Time // wakes the watchdog
	deadline func(*testing.T) (time.Time, bool)   // when the test binary ends
	skip     func(fault string) bool              // skips a fault, for speed; "dies" means all deaths
}

// without is one use of the option Without: a check, and the endpoints for which it is off;
// none means all.
type without struct {
	check     Check
	endpoints []fakeserver.Endpoint
}

// userCheck is a check of WithCheck.
type userCheck struct {
	name string
	look func(*Run) error
}

// check returns the result of the check for a run. A panic is a finding too.
func (u userCheck) check(r *Run) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the check panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return u.look(r)
}

// newConfig applies the options to the defaults.
func newConfig(opts []Option) config {
	c := config{
		maxVirtualTime: 2 * time.Hour, watchdog: 10 * time.Second,
		after: time.After, deadline: (*testing.T).Deadline, skip: func(string) bool { return false },
	}
	for _, opt := range opts {
		opt(&c)
	}
	return c
}

// Without switches a check off for findings about calls to these endpoints. Without
// endpoints it switches the check off completely. An unknown check or endpoint fails the
// test.
func Without(check Check, endpoints ...fakeserver.Endpoint) Option {
	return func(c *config) { c.without = append(c.without, without{check, endpoints}) }
}

// drops reports whether [Without] drops a finding.
func (c *config) drops(f finding) bool {
	return slices.ContainsFunc(c.without, func(w without) bool {
		return w.check == f.Check && (len(w.endpoints) == 0 || slices.Contains(w.endpoints, f.Endpoint))
	})
}

// validate returns what is wrong with an option.
func (c *config) validate() error {
	switch {
	case c.watchdog <= 0:
		return fmt.Errorf("Watchdog(%s): the time has to be more than 0", c.watchdog)
	case c.maxVirtualTime < 0:
		return fmt.Errorf("MaxVirtualTime(%s): the time is negative", c.maxVirtualTime)
	}
	known := slices.Clone(allChecks)
	for _, own := range c.userChecks {
		if own.name == "" || own.look == nil || slices.Contains(known, Check(own.name)) {
			return fmt.Errorf("WithCheck(%q): a check needs a function, and a name that no other check has", own.name)
		}
		known = append(known, Check(own.name))
	}
	for _, w := range c.without {
		if !slices.Contains(known, w.check) {
			return fmt.Errorf("Without: there is no check %q; the checks are %q", w.check, known)
		}
		for _, e := range w.endpoints {
			if !slices.ContainsFunc(spec.Endpoints[:], func(row *spec.Endpoint) bool { return endpointOf(row) == e }) {
				return fmt.Errorf("Without: there is no endpoint %q; the endpoints are constants of package fakeserver", e)
			}
		}
	}
	return nil
}

// WithCheck adds a check of the user, under a name that no other check has. The check is
// called after each run that the watchdog did not end, and an error is a finding. The
// first call is after the run without faults, where an error ends the test.
func WithCheck(name string, check func(*Run) error) Option {
	return func(c *config) { c.userChecks = append(c.userChecks, userCheck{name, check}) }
}

// InBubble runs the scenario in a testing/synctest bubble. There the waits and deadlines
// of the application take no time either, and time.Now shows the time of a restart. The
// time of a bubble stops while a goroutine waits for something outside, such as a socket,
// or for a mutex that is held across a call: the watchdog ends such a run. Test itself is
// called outside of a bubble.
func InBubble() Option { return func(c *config) { c.bubble = true } }

// ClientOptions adds options for Env.Client, after the options that Test sets. All runs share
// what the options hold. A Pacer would remember in one run what another has met, so make it
// in the scenario and give it to Env.Client.With.
func ClientOptions(opts ...agentmessaging.Option) Option {
	return func(c *config) { c.clientOptions = append(c.clientOptions, opts...) }
}

// FakeOptions adds options for Env.Fake.
func FakeOptions(opts ...fakeserver.Option) Option {
	return func(c *config) { c.fakeOptions = append(c.fakeOptions, opts...) }
}

// MaxVirtualTime bounds how much longer, in virtual time, a run with a fault may take
// than the run without. The default is 2 hours. 0 allows no extra time.
func MaxVirtualTime(d time.Duration) Option { return func(c *config) { c.maxVirtualTime = d } }

// Watchdog bounds the real time of a run. It is more than 0, and 10 seconds by default.
func Watchdog(d time.Duration) Option { return func(c *config) { c.watchdog = d } }
