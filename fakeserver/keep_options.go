package fakeserver

import "fmt"

// WithCallLimit makes Calls keep the newest n calls instead of 1,000; 0 keeps
// none, Unlimited keeps all. DroppedCalls counts the others.
func WithCallLimit(n int) Option {
	return func(c *config) error {
		c.callLimit = n
		return notNegative("WithCallLimit", n)
	}
}

// WithBodyLimit makes Calls keep at most this many bytes of each body of a
// request and of an answer, instead of 64 KiB; 0 keeps none. Call.BodyBytes
// stays exact.
func WithBodyLimit(bytes int) Option {
	return func(c *config) error {
		c.bodyLimit = bytes
		return notNegative("WithBodyLimit", bytes)
	}
}

// WithConversationLimit makes the fake keep the newest n exchanges of each
// agent instead of 1,000, for Conversation and Message.History; 0 keeps none,
// Unlimited keeps all.
func WithConversationLimit(n int) Option {
	return func(c *config) error {
		c.exchanges = n
		return notNegative("WithConversationLimit", n)
	}
}

// WithUnknownRoutes lets calls to a path or with a method that no endpoint has
// be answered 404 or 405 without failing the test, for tests that mean it. A
// fake that Open made never fails for them: it may get foreign traffic.
func WithUnknownRoutes() Option {
	return func(c *config) error {
		c.unknownOK = true
		return nil
	}
}

func notNegative(option string, n int) error {
	if n < 0 {
		return fmt.Errorf("%s: %d is negative", option, n)
	}
	return nil
}
