// Package testoption has an option of the client for the tests and test packages of this
// module only. The root package sets the option in an init function, because this package
// cannot import the root package.
package testoption

// WithRandom returns an agentmessaging.Option under which random, with values in
// [0, 1), decides the jitter of every wait, so that a run can be repeated.
var WithRandom func(random func() float64) any
