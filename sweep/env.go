package sweep

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

type tb = testing.TB

// Env is what a scenario works with. It is a testing.TB: in the undisturbed run a
// failed assertion fails the test. In a disturbed run it counts as an error that
// the application reported, and ends the scenario if it is fatal.
type Env struct {
	tb
	// Client is the client that is disturbed. Each run, and each restart, has
	// a new one.
	Client *agentmessaging.Client
	// Fake is the service. A restart goes on from its state, on another fake.
	Fake *fakeserver.Server
	// Dir is a folder, empty at first. A restart finds a copy of it, elsewhere.
	Dir string

	play     *play
	ctx      context.Context
	cancel   context.CancelFunc
	cleanups []func() // the play's lock guards it
}

// Context returns a context without a deadline. It ends with the run.
func (e *Env) Context() context.Context { return e.ctx }

// Reports takes what the application returned to its caller: nil, or an error. An
// error is fine, as long as the application does not keep it to itself.
func (e *Env) Reports(err error) {
	if err == nil {
		e.play.tell(tell{way: said})
		return
	}
	e.play.tell(tell{reported, err, err.Error()})
}

// Told takes what the application said to somebody in place of an error: the
// body of an HTTP answer, a reply to fall back on, a line "order 7 is in doubt".
// It counts as an error that was reported if the undisturbed run says nothing of
// the kind.
func (e *Env) Told(what string) { e.play.tell(tell{told, nil, what}) }

// Sometimes marks a place that some run has to reach. The test fails if none does.
// The name is written out at the call, so that Test finds it in the source.
func (e *Env) Sometimes(name string) {
	e.play.note(func() { e.play.sweep.reach(name) })
}

// Logger returns a logger for the application. A record at Warn or above counts
// as an error that was reported.
func (e *Env) Logger() *slog.Logger {
	untimed := func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && len(groups) == 0 {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(records{e.play}, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: untimed}))
}

// Output returns a writer for what the application prints. An error of this module
// that it prints counts as reported.
func (e *Env) Output() io.Writer { return prints{e.play} }

// Point is a place of the application's own, such as a write to a database. It
// returns nil or, in the plans of this name, an error. The process can also die
// there.
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

func (e *Env) fails(text string) { e.play.tell(tell{asserted, nil, text}) }

// Error fails the run, as the other methods of testing.TB do that fail.
func (e *Env) Error(args ...any) { e.fails(fmt.Sprintln(args...)) }

// Errorf is Error with a format.
func (e *Env) Errorf(format string, args ...any) { e.fails(fmt.Sprintf(format, args...)) }

// Fatal is Error, and ends the scenario.
func (e *Env) Fatal(args ...any) { e.Error(args...); runtime.Goexit() }

// Fatalf is Errorf, and ends the scenario.
func (e *Env) Fatalf(format string, args ...any) { e.Errorf(format, args...); runtime.Goexit() }

// Fail fails the run without a word.
func (e *Env) Fail() { e.fails("failed") }

// FailNow fails the run and ends the scenario.
func (e *Env) FailNow() {
	if !e.Failed() {
		e.Fail()
	}
	runtime.Goexit()
}

// Failed reports whether the run has failed.
func (e *Env) Failed() (failed bool) {
	e.play.note(func() {
		failed = slices.ContainsFunc(e.play.tells, func(t tell) bool { return t.way == asserted })
	})
	return failed
}

// Log writes to what the run has said.
func (e *Env) Log(args ...any) { e.play.tell(tell{said, nil, fmt.Sprintln(args...)}) }

// Logf is Log with a format.
func (e *Env) Logf(format string, args ...any) {
	e.play.tell(tell{said, nil, fmt.Sprintf(format, args...)})
}

// Helper does nothing.
func (e *Env) Helper() {}

// way is how the application said something.
type way int

const (
	said way = iota // and nothing is wrong
	reported
	asserted
	logged
	printed
	told
)

// tell is one thing that the application said.
type tell struct {
	way  way
	err  error // of Env.Reports
	text string
}

func (p *play) tell(t tell) { p.note(func() { p.tells = append(p.tells, t) }) }

// records takes the lines of Env.Logger.
type records struct{ p *play }

func (r records) Write(line []byte) (int, error) {
	t := tell{said, nil, strings.TrimSpace(string(line))}
	if strings.HasPrefix(t.text, "level=WARN") || strings.HasPrefix(t.text, "level=ERROR") {
		t.way = logged
	}
	r.p.tell(t)
	return len(line), nil
}

// prints takes what is written to Env.Output.
type prints struct{ p *play }

func (o prints) Write(text []byte) (int, error) {
	t := tell{said, nil, string(text)}
	if strings.Contains(t.text, "agentmessaging: ") {
		t.way = printed
	}
	o.p.tell(t)
	return len(text), nil
}
