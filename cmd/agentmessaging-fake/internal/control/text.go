package control

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// maxQuoted bounds what a reason repeats of what was sent.
const maxQuoted = 64

func quoted(name string) string {
	if utf8.RuneCountInString(name) > maxQuoted {
		name = string([]rune(name)[:maxQuoted]) + "…"
	}
	return strconv.Quote(name)
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// oneOf refuses a text that is none of a closed list.
func oneOf(name, text string, allowed []string) *refusal {
	for _, a := range allowed {
		if a == text {
			return nil
		}
	}
	return badRequest(name, "must be one of %s", listed(allowed))
}

// inField refuses a text that breaks the bound of interface 8.4 or the list
// of interface 2.3. The empty text stands for none.
func inField(name, text string, f *spec.Field) *refusal {
	switch {
	case !f.Fits(text):
		return badRequest(name, "at most %d characters", f.MaxLen)
	case text != "" && !f.Allows(text):
		return badRequest(name, "must be one of %s", f.Values())
	}
	return nil
}

func within[N int | int64](name string, n *N, low, high int64) *refusal {
	if n != nil && (int64(*n) < low || int64(*n) > high) {
		return badRequest(name, "must be from %d to %d", low, high)
	}
	return nil
}

// inYears refuses times that JSON cannot hold.
func inYears(name string, t *time.Time) *refusal {
	if t != nil && (t.UTC().Year() < 1 || t.UTC().Year() > 9999) {
		return badRequest(name, "must be from the year 1 to the year 9999")
	}
	return nil
}

// first is the first refusal of several checks.
func first(checks ...*refusal) *refusal {
	for _, c := range checks {
		if c != nil {
			return c
		}
	}
	return nil
}

// number reads an integer of a query.
func (r *request) number(name string, instead, low, high int) (int, *refusal) {
	text, given := r.query[name]
	if !given {
		return instead, nil
	}
	n, err := strconv.Atoi(text[0])
	if err != nil || n < low || n > high {
		return 0, badRequest(name, "must be an integer from %d to %d", low, high)
	}
	return n, nil
}

// durationIn reads a duration as Go writes it, which is how all of them are
// written here.
func durationIn(name, text string, most time.Duration) (time.Duration, *refusal) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		return 0, badRequest(name, "must be a duration such as 250ms, 90s, 1h30m or 24h, from 0s to %v", most)
	}
	return d, nil
}

// nullable is nil for the empty text, which stands for a value not given.
func nullable(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func given[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}

func numbered(kind string, n int) string { return fmt.Sprintf("%s_%06d", kind, n) }
