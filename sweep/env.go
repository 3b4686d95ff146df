package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

type tb = testing.TB

// Env gives a scenario its client, its fake and its folder. It is a testing.TB: in the
// baseline a failed assertion fails the test. In a run with a fault, a failed assertion
// counts as an error that the application reported, and ends the scenario if it is fatal.
type Env struct {
	tb
	// Client is the client whose calls fail. Each run, and each restart, has a new client.
	Client *agentmessaging.Client
	// Fake is the service. A restart goes on from its state, on another fake. If the
	// scenario adds an agent here, it does so with a fixed ID, and again where the agent is
	// missing: a death may leave the service as it was before. Anything that would fail the
	// test of fakeserver.New, such as a Required script that is never used or a callback
	// that panics, fails the test in the first run without faults.
	Fake *fakeserver.Server
	// Dir is a folder, empty at first. A restart finds a copy of it at another path. The
	// process identifier stays the same after a death, because it is the identifier of the
	// test's process.
	Dir string

	execution *execution
	cleanups  []func() // guarded by the execution's lock
}

// Context returns a context without a deadline. It ends with the run.
func (e *Env) Context() context.Context { return e.execution.ctx }

// Reports takes the result that the application returned to its caller: nil, or an error.
// Errors are allowed, as long as the application reports them. An error from errors.Join
// counts as the errors that it joins.
func (e *Env) Reports(err error) {
	if err == nil {
		return
	}
	several, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != fmt.Sprint(errors.Join(several.Unwrap()...)) { // Join returns nil for no errors
		e.execution.addStatement(statement{reported, err.Error(), err})
		return
	}
	for _, part := range several.Unwrap() {
		e.Reports(part)
	}
}

// Told takes a text with which the application reported a problem in place of an error:
// the body of an HTTP answer, a fallback reply, a line "order 7 is in doubt". Each line
// counts as a report unless the baseline has the same line; see [Check].
func (e *Env) Told(what string) { e.execution.say(warned, what) }

// Logger returns a logger for the application. A record at Warn or above counts as a
// reported error.
func (e *Env) Logger() *slog.Logger {
	untimed := func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && len(groups) == 0 {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(lineWriter{e.execution, new([]byte)}, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: untimed}))
}

// Output returns a writer for the output of the application. A line counts as a report if
// it contains the text of an error that a method of Client returned, at least its
// beginning: agentmessaging: GET /v1/agents/{agent_id}. A line may be written in parts, and
// ends with a line feed or with the run.
func (e *Env) Output() io.Writer { return lineWriter{e.execution, &e.execution.record.unended} }

// Point marks a place in the application, such as a write to a database. It returns nil
// or, in the runs that test this place, an error. The application has to report the
// error, or reach the place again and pass it; see [Swallowed]. The process can also die
// there.
func (e *Env) Point(name string) error { return e.execution.point(name) }

// Cleanup registers a function for the end of the run.
func (e *Env) Cleanup(f func()) {
	e.execution.whileRunning(func() { e.cleanups = append(e.cleanups, f) })
}

// Setenv sets an environment variable until the end of the run.
func (e *Env) Setenv(key, value string) {
	before, set := os.LookupEnv(key)
	undo := func() { _ = os.Setenv(key, before) }
	if !set {
		undo = func() { _ = os.Unsetenv(key) }
	}
	e.tb.Setenv(key, value)
	e.Cleanup(undo)
}

// Chdir changes the working directory until the end of the run.
func (e *Env) Chdir(dir string) {
	before, _ := os.Getwd()
	e.Setenv("PWD", os.Getenv("PWD")) // testing.TB.Chdir sets it too
	e.tb.Chdir(dir)
	e.Cleanup(func() { _ = os.Chdir(before) }) // if it fails, testing.TB does it after the test
}

// finish ends the run as package testing does: it cancels the context, then runs the
// cleanups, last first, also those that a cleanup registers. A cleanup that panics or ends
// its goroutine does not stop the others.
func (e *Env) finish() {
	e.execution.cancel()
	var f func()
	e.execution.whileRunning(func() {
		if last := len(e.cleanups) - 1; last >= 0 {
			f, e.cleanups = e.cleanups[last], e.cleanups[:last]
		}
	})
	if f != nil {
		defer e.finish()
		f()
	}
}

// Error fails the run, like the other failing methods of testing.TB.
func (e *Env) Error(args ...any) { e.Errorf("%s", fmt.Sprintln(args...)) }

// Errorf is Error with a format. The text is one report, even if it has several lines.
func (e *Env) Errorf(format string, args ...any) {
	e.execution.addStatement(statement{kind: asserted, text: fmt.Sprintf(format, args...)})
}

// Fatal is Error, and ends the scenario.
func (e *Env) Fatal(args ...any) { e.Error(args...); runtime.Goexit() }

// Fatalf is Errorf, and ends the scenario.
func (e *Env) Fatalf(format string, args ...any) { e.Errorf(format, args...); runtime.Goexit() }

// Fail fails the run without a text.
func (e *Env) Fail() { e.Errorf("failed") }

// FailNow fails the run and ends the scenario.
func (e *Env) FailNow() {
	if !e.Failed() {
		e.Fail()
	}
	runtime.Goexit()
}

// Skip is Log, and ends the scenario. Without faults it also skips the test.
func (e *Env) Skip(args ...any) { e.Log(args...); e.SkipNow() }

// Skipf is Logf, and ends the scenario as Skip does.
func (e *Env) Skipf(format string, args ...any) { e.Logf(format, args...); e.SkipNow() }

// SkipNow ends the scenario as Skip does.
func (e *Env) SkipNow() {
	e.execution.whileRunning(func() { e.execution.record.skipped = true })
	runtime.Goexit()
}

// Failed reports whether the run has failed.
func (e *Env) Failed() (failed bool) {
	e.execution.whileRunning(func() {
		failed = slices.ContainsFunc(e.execution.record.statements, func(t statement) bool { return t.kind == asserted })
	})
	return failed
}

// Log adds to the texts of the application in this run.
func (e *Env) Log(args ...any) { e.execution.say(said, fmt.Sprintln(args...)) }

// Logf is Log with a format.
func (e *Env) Logf(format string, args ...any) {
	e.execution.say(said, fmt.Sprintf(format, args...))
}

// lineWriter is a writer that handles each line separately. unended is the beginning of a
// line that has not ended yet.
type lineWriter struct {
	*execution
	unended *[]byte
}

// Write implements io.Writer.
func (l lineWriter) Write(text []byte) (int, error) {
	l.whileRunning(func() {
		for part := range bytes.Lines(text) {
			*l.unended = append(*l.unended, part...)
			if bytes.HasSuffix(part, []byte("\n")) {
				l.addStatementLocked(statementOf(string(*l.unended), l.record.seen.errors))
				*l.unended = nil
			}
		}
	})
	return len(text), nil
}
