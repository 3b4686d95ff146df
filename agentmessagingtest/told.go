package agentmessagingtest

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

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
