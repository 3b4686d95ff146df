package redact

import (
	"errors"
	"fmt"
)

// Error redacts err, and what else was the cause, so that errors.Is finds all of
// it, and errors.As and Unwrap what holds no secret. nil stays nil.
func (s Redactor) Error(err error, others ...error) error {
	if err == nil {
		return nil
	}
	causes := []error{s.clean(err)}
	for _, other := range others {
		if other != nil && !holds(err, other) {
			causes = append(causes, s.clean(other))
		}
	}
	return s.redacted(err, causes)
}

func (s Redactor) redacted(err error, causes []error) *redactedError {
	return &redactedError{s.Text(err.Error()), causes, func(target error) bool { return holds(err, target) }}
}

// holds is errors.Is, but for errors that cannot be compared, such as a struct with a
// slice in an interface: errors.Is panics there.
func holds(err, target error) (found bool) {
	defer func() { _ = recover() }()
	return errors.Is(err, target)
}

// clean is err itself where neither it nor what it wraps shows a secret, and a
// copy of its text otherwise.
func (s Redactor) clean(err error) error {
	clean := true
	for _, shown := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		clean = clean && s.Text(shown) == shown
	}
	var causes []error
	for _, inner := range unwrap(err) {
		causes = append(causes, s.clean(inner))
		_, tainted := causes[len(causes)-1].(*redactedError)
		clean = clean && !tainted
	}
	if clean {
		return err
	}
	return s.redacted(err, causes)
}

// unwrap returns what err wraps.
func unwrap(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	if inner := errors.Unwrap(err); inner != nil {
		return []error{inner}
	}
	return nil
}

// redactedError is a pointer, so that it can be compared and be the key of a map.
type redactedError struct {
	text   string
	causes []error
	is     func(error) bool // of the error itself
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) GoString() string     { return e.text }
func (e *redactedError) Unwrap() []error      { return e.causes }
func (e *redactedError) Is(target error) bool { return e.is(target) }
