package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

type tb = testing.TB

// Env is what a scenario of [Test] works with. It is a testing.TB: in the
// undisturbed runs a failed assertion fails the test, in a disturbed run it
// counts as an error that the application has told, and ends the scenario if it
// is fatal.
type Env struct {
	tb
	// Client is the client that is disturbed. Each run, and each restart, has
	// a new one.
	Client *agentmessaging.Client
	// Fake is the service. Each plan has a new one, which a restart keeps.
	Fake *fakeserver.Server
	// Dir is an empty folder, which a restart keeps.
	Dir string

	play     *play
	ctx      context.Context
	cancel   context.CancelFunc
	cleanups []func() // the play's lock guards it
}

// Context returns a context without a deadline. It ends with the run.
func (e *Env) Context() context.Context { return e.ctx }

// Reports takes down what the application returned to its caller: nil, or an
// error. An error is fine: what counts is that it is told.
func (e *Env) Reports(err error) { e.play.told.report(err) }

// Logger returns a logger for the application. A record at Warn or above
// counts as an error that was told.
func (e *Env) Logger() *slog.Logger { return e.play.told.logger() }

// Output returns a writer for what the application prints.
func (e *Env) Output() io.Writer { return &e.play.told }

// Point is a place of the application's own that can fail: it returns nil, or,
// in the plans of this name, an error.
func (e *Env) Point(name string) error { return e.play.point(name) }

// Cleanup registers a function for the end of the run.
func (e *Env) Cleanup(f func()) {
	e.play.note(func() { e.cleanups = append(e.cleanups, f) })
}

// finish ends the run as package testing does: context first, then the cleanups,
// the last one first.
func (e *Env) finish() {
	e.cancel()
	var cleanups []func()
	e.play.note(func() { cleanups = slices.Clone(e.cleanups) })
	for _, f := range slices.Backward(cleanups) {
		f()
	}
}

// Error fails the run, as the other methods of testing.TB do that fail.
func (e *Env) Error(args ...any) { e.play.told.fail(fmt.Sprintln(args...)) }

// Errorf is Error with a format.
func (e *Env) Errorf(format string, args ...any) { e.play.told.fail(fmt.Sprintf(format, args...)) }

// Fatal is Error, and ends the scenario.
func (e *Env) Fatal(args ...any) { e.Error(args...); runtime.Goexit() }

// Fatalf is Errorf, and ends the scenario.
func (e *Env) Fatalf(format string, args ...any) { e.Errorf(format, args...); runtime.Goexit() }

// Fail fails the run without a word.
func (e *Env) Fail() { e.play.told.fail("failed") }

// FailNow fails the run and ends the scenario.
func (e *Env) FailNow() {
	if !e.Failed() {
		e.Fail()
	}
	runtime.Goexit()
}

// Failed reports whether the run has failed.
func (e *Env) Failed() bool { return e.play.told.errors()[asserted] > 0 }

// Log writes to what the run has told.
func (e *Env) Log(args ...any) { fmt.Fprintln(&e.play.told, args...) }

// Logf is Log with a format.
func (e *Env) Logf(format string, args ...any) { fmt.Fprintf(&e.play.told, format+"\n", args...) }

// Helper does nothing.
func (e *Env) Helper() {}

// told is what the application has told somebody, in whatever way.
type told struct {
	mu       sync.Mutex
	reports  []error // of Env.Reports, nil ones too
	failures []string
	warnings int // records of Env.Logger at Warn or above
	text     bytes.Buffer
}

func (t *told) locked(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// report takes down one error that the application returned.
func (t *told) report(err error) { t.locked(func() { t.reports = append(t.reports, err) }) }

// fail takes down a failed assertion of the scenario.
func (t *told) fail(text string) { t.locked(func() { t.failures = append(t.failures, text) }) }

// Write takes down what the application prints or logs.
func (t *told) Write(p []byte) (n int, err error) {
	t.locked(func() { n, err = t.text.Write(p) })
	return n, err
}

// logger is a logger whose records are told.
func (t *told) logger() *slog.Logger {
	count := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.LevelKey && a.Value.Any().(slog.Level) >= slog.LevelWarn {
			t.locked(func() { t.warnings++ })
		}
		return a
	}
	return slog.New(slog.NewTextHandler(t, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: count}))
}

// The ways in which an error can be told.
const (
	reported = iota
	asserted
	logged
	printed
	ways
)

// errors counts what was told, by the way; an error of this module is known by
// its words.
func (t *told) errors() (n [ways]int) {
	t.locked(func() {
		for _, err := range t.reports {
			if err != nil {
				n[reported]++
			}
		}
		n[asserted], n[logged], n[printed] = len(t.failures), t.warnings, strings.Count(t.text.String(), "agentmessaging: ")
	})
	return n
}

// more reports whether an error was told, in whatever way, that undisturbed is
// not.
func (t *told) more(undisturbed *told) bool {
	for i, n := range undisturbed.errors() {
		if t.errors()[i] > n {
			return true
		}
	}
	return false
}

func (t *told) copied() (reports []error) {
	t.locked(func() { reports = slices.Clone(t.reports) })
	return reports
}

// all is everything that was told, as text.
func (t *told) all() (all string) {
	t.locked(func() {
		lines := slices.Clone(t.failures)
		if err := errors.Join(t.reports...); err != nil {
			lines = append(lines, err.Error())
		}
		all = strings.Join(append(lines, t.text.String()), "\n")
	})
	return all
}

// unknown reports whether the application has told that the outcome of a call to
// the endpoint is unknown: by the error itself, or in its words.
func (t *told) unknown(endpoint *spec.Endpoint) bool {
	for _, err := range t.copied() {
		var unknown *agentmessaging.OutcomeUnknownError
		if errors.As(err, &unknown) && unknown.Path == endpoint.Path {
			return true
		}
	}
	return strings.Contains(t.all(), endpoint.Method+" "+endpoint.Path+": the request may have been carried out")
}
