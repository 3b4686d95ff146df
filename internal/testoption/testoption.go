// Package testoption has the option of a client that only this module's own tests
// and test packages may use. The root package fills it in when it is loaded, because
// it cannot be imported from here.
package testoption

// WithRandom returns an agentmessaging.Option under which random, with values in
// [0, 1), decides the jitter of every wait, so that a run can be repeated.
var WithRandom func(random func() float64) any
