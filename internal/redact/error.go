package redact

import (
	"errors"
	"fmt"
)

// Error redacts err, and what else was the cause, so that errors.Is finds all of
// it, and errors.As and Unwrap what holds no secret. nil stays nil.
func (r Redactor) Error(err error, others ...error) error {
	if err == nil {
		return nil
	}
	e := &redactedError{text: r.Text(err.Error()), is: func(target error) bool { return holds(err, target) }}
	e.causes, _ = r.clean(err)
	for _, other := range others {
		if other != nil && !holds(err, other) {
			e.causes = append(e.causes, r.Error(other))
		}
	}
	return e
}

// holds is errors.Is, but for errors that cannot be compared, such as a struct with a
// slice in an interface: errors.Is panics there.
func holds(err, target error) (found bool) {
	defer func() { _ = recover() }()
	return errors.Is(err, target)
}

// clean returns err where neither it nor what it wraps shows a secret, and otherwise
// what it wraps, as far as that is clean.
func (r Redactor) clean(err error) (causes []error, whole bool) {
	shown := fmt.Sprintf("%s\n%+v\n%#v", err.Error(), err, err)
	whole = r.Text(shown) == shown
	for _, inner := range unwrap(err) {
		some, all := r.clean(inner)
		causes, whole = append(causes, some...), whole && all
	}
	if whole {
		return []error{err}, true
	}
	return causes, false
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
	is     func(error) bool // of the error itself, which may show a secret
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) GoString() string     { return e.text }
func (e *redactedError) Unwrap() []error      { return e.causes }
func (e *redactedError) Is(target error) bool { return e.is(target) }
