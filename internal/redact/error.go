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
	causes := []error{err}
	for _, other := range others {
		if other != nil && !holds(err, other) {
			causes = append(causes, other)
		}
	}
	return r.redacted(err, causes)
}

// holds is errors.Is, but for errors that cannot be compared, such as a struct with a
// slice in an interface: errors.Is panics there.
func holds(err, target error) (found bool) {
	defer func() { _ = recover() }()
	return errors.Is(err, target)
}

// redacted is an error with the text of err that wraps the causes.
func (r Redactor) redacted(err error, causes []error) *redactedError {
	e := &redactedError{text: r.Text(err.Error()), is: func(target error) bool { return holds(err, target) }}
	for _, cause := range causes {
		e.causes = append(e.causes, r.clean(cause))
	}
	return e
}

// clean is err itself where neither it nor what it wraps shows a secret, and a
// copy of its text otherwise.
func (r Redactor) clean(err error) error {
	shown := fmt.Sprintf("%s\n%+v\n%#v", err.Error(), err, err)
	clean := r.redacted(err, unwrap(err))
	tainted := r.Text(shown) != shown
	for _, cause := range clean.causes {
		_, isCopy := cause.(*redactedError)
		tainted = tainted || isCopy
	}
	if tainted {
		return clean
	}
	return err
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
