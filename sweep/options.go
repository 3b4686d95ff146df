package sweep

import (
	"fmt"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Option changes how [Test] works.
type Option func(*config)

type config struct {
	clientOptions []agentmessaging.Option
	fakeOptions   []fakeserver.Option
	off           []func(Finding) bool
	also          []ownCheck
	pairs         bool
	seed          uint64
	bubble        bool
	within        time.Duration
	watchdog      time.Duration
	wrong         string // what no option can mean

	// For tests of Test:
	collect func(report string, found []Finding) // in place of failing the test
	alarm   <-chan time.Time                     // that wakes the watchdog
	skip    func(fault string) bool              // for speed
}

type ownCheck struct {
	name string
	look func(*Run) error
}

func newConfig(opts []Option) config {
	c := config{seed: 1, within: 2 * time.Hour, watchdog: 10 * time.Second}
	for _, opt := range opts {
		opt(&c)
	}
	return c
}

// Without switches a check off: for findings about calls to these endpoints,
// or, where none is given, altogether. A check or an endpoint that is unknown
// fails the test.
func Without(check Check, endpoints ...fakeserver.Endpoint) Option {
	return func(c *config) {
		if !slices.Contains(checkNames(), check) {
			c.wrong = fmt.Sprintf("Without: there is no check %q; there are %q", check, checkNames())
		}
		for _, e := range endpoints {
			if !slices.ContainsFunc(spec.Endpoints, func(known *spec.Endpoint) bool { return endpointOf(known) == e }) {
				c.wrong = fmt.Sprintf("Without: there is no endpoint %q; use the constants of package fakeserver", e)
			}
		}
		WithoutWhere(func(f Finding) bool {
			return f.Check == check && (len(endpoints) == 0 || slices.Contains(endpoints, f.Endpoint))
		})(c)
	}
}

// WithoutWhere drops the findings for which f returns true.
func WithoutWhere(f func(Finding) bool) Option {
	return func(c *config) { c.off = append(c.off, f) }
}

// Also adds a check of the user's own. It is called after each run, the
// undisturbed one included; an error is a finding under this name.
func Also(name string, check func(*Run) error) Option {
	return func(c *config) { c.also = append(c.also, ownCheck{name, check}) }
}

// Pairs sweeps pairs of faults too, at two places: 300 of them at most, picked
// by [Seed].
func Pairs() Option { return func(c *config) { c.pairs = true } }

// Seed picks other pairs of faults, and another jitter of the client's waits.
// The default is 1.
func Seed(seed uint64) Option { return func(c *config) { c.seed = seed } }

// InBubble runs the scenario in a testing/synctest bubble, where the waits and
// deadlines of the application take no time either, and its clock shows the time
// of a restart. A bubble stands still while a goroutine waits for something
// outside, such as a socket, or for a mutex that is held across a call: the
// watchdog ends such a run. Test itself is called outside of a bubble.
func InBubble() Option { return func(c *config) { c.bubble = true } }

// ClientOptions are for Env.Client, after those that Test gives it.
func ClientOptions(opts ...agentmessaging.Option) Option {
	return func(c *config) { c.clientOptions = append(c.clientOptions, opts...) }
}

// FakeOptions are for Env.Fake.
func FakeOptions(opts ...fakeserver.Option) Option {
	return func(c *config) { c.fakeOptions = append(c.fakeOptions, opts...) }
}

// Within bounds how much longer, in virtual time, a disturbed run may take than
// the undisturbed one. The default is 2 hours.
func Within(d time.Duration) Option { return func(c *config) { c.within = d } }

// Watchdog bounds the real time of a run. The default is 10 seconds.
func Watchdog(d time.Duration) Option { return func(c *config) { c.watchdog = d } }
