// Package retryafter reads the header Retry-After in every form that services
// and proxies send.
package retryafter

import (
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
// most Longest; 0 if nothing, or nothing that can be read.
func Read(header http.Header) (longest time.Duration) {
	for name, values := range header {
		if !strings.EqualFold(name, "Retry-After") {
			continue
		}
		for _, value := range values {
			longest = max(longest, parse(value, header.Get("Date")))
		}
	}
	return min(longest, Longest)
}

// parse reads a Retry-After value: seconds, whole or fractional, or a
// date, measured against the answer's own Date so that the two clocks need not
// agree. Beside what HTTP allows it takes quotes, a list, a unit and the dates
// of RFC 3339. It is never less than told and does not overflow; what cannot be
// read, is negative or has passed is 0.
func parse(value, date string) time.Duration {
	value = strings.Trim(value, " \t\"'")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil { // as nearly all are
		return time.Duration(seconds) * time.Second
	}
	if at, ok := parseDate(value); ok {
		now, err := http.ParseTime(date)
		if err != nil {
			now = time.Now()
		}
		return max(0, at.Sub(now)) // Sub saturates
	}
	var longest time.Duration
	for _, item := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ';' }) {
		longest = max(longest, parseSeconds(strings.Trim(item, " \t\"'")))
	}
	return longest
}

func parseDate(value string) (time.Time, bool) {
	if at, err := http.ParseTime(value); err == nil {
		return at, true
	}
	for _, layout := range []string{time.RFC3339, time.RFC1123Z} {
		if at, err := time.Parse(layout, value); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// units are what may follow a number, by its letters in lower case.
var units = map[string]time.Duration{
	"": time.Second, "s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"ms": time.Millisecond, "m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour, "d": spec.Day, "day": spec.Day, "days": spec.Day,
}

// parseSeconds rounds up, and is never more than Longest.
func parseSeconds(item string) time.Duration {
	number := strings.TrimRightFunc(item, func(r rune) bool { return r < '0' || r > '9' })
	unit, known := units[strings.ToLower(strings.TrimSpace(item[len(number):]))]
	seconds, err := strconv.ParseFloat(number, 64)
	if !known || err != nil && !math.IsInf(seconds, 1) {
		return 0
	}
	seconds *= unit.Seconds()
	switch {
	case seconds <= 0:
		return 0
	case seconds >= Longest.Seconds():
		return Longest
	}
	return time.Duration(math.Ceil(seconds * float64(time.Second)))
}
