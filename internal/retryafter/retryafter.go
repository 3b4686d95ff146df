// Package retryafter reads the header Retry-After in every form that services
// and proxies send. The tests of the client, in faults_test.go, are its tests.
package retryafter

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Longest is the longest window that the interface documents (8.1); nothing
// beyond it is believed.
const Longest = spec.Day

// Read is what the Retry-After of an answer asks for, the longest of several, at
// most Longest; 0 if nothing, or nothing that can be read. now is for a date in an
// answer without a Date.
func Read(header http.Header, now time.Time) (longest time.Duration) {
	for name, values := range header {
		if !strings.EqualFold(name, "Retry-After") {
			continue
		}
		for _, value := range values {
			longest = max(longest, parse(value, header.Get("Date"), now))
		}
	}
	return min(longest, Longest)
}

// parse reads a Retry-After value: seconds, whole or fractional, or a date, measured
// against sent, the answer's own Date, so that the two clocks need not agree. In
// addition to what HTTP allows it takes quotes and a list, into which proxies join two
// headers. The result is never less than the service asked for and does not overflow;
// what cannot be read, is negative or has passed is 0.
func parse(value, sent string, now time.Time) (longest time.Duration) {
	value = strings.Trim(value, " \t\"'")
	if value >= "A" { // a date begins with its weekday
		if at, err := http.ParseTime(value); err == nil {
			if date, err := http.ParseTime(sent); err == nil {
				now = date
			}
			return max(0, at.Sub(now)) // Sub saturates
		}
	}
	for item := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ';' }) {
		seconds, err := strconv.ParseFloat(strings.Trim(item, " \t\"'"), 64)
		switch {
		case err != nil && !errors.Is(err, strconv.ErrRange), !(seconds > 0): // NaN too
		case err == nil && math.IsInf(seconds, 1): // the word
		case seconds >= Longest.Seconds():
			return Longest
		default:
			longest = max(longest, time.Duration(math.Ceil(seconds*float64(time.Second))))
		}
	}
	return longest
}
