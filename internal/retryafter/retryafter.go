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
// most Longest; 0 if nothing, or nothing that can be read, or what has passed. A date is
// measured against the answer's own Date, so that the two clocks need not agree, and
// without one against now.
func Read(header http.Header, now time.Time) (longest time.Duration) {
	if sent, err := http.ParseTime(header.Get("Date")); err == nil {
		now = sent
	}
	for name, values := range header {
		if strings.EqualFold(name, "Retry-After") {
			longest = max(longest, parse(strings.Join(values, ","), now))
		}
	}
	return min(longest, Longest)
}

// parse reads seconds, whole or with a fraction, and dates. In addition to what HTTP
// allows it takes quotes and a list, into which proxies join several headers.
func parse(list string, now time.Time) (longest time.Duration) {
	before := ""
	for item := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ';' }) {
		item = strings.Trim(item, " \t\"'")
		longest = max(longest, seconds(item), until(item, now), until(before+", "+item, now)) // most dates have a comma
		before = item
	}
	return longest
}

// seconds is never less than the service asked for.
func seconds(text string) time.Duration {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case strings.Trim(text, "0123456789.") != "", err != nil && !errors.Is(err, strconv.ErrRange):
		return 0 // ParseFloat reads more than HTTP knows, such as 1e3
	case n >= Longest.Seconds():
		return Longest
	}
	return time.Duration(math.Ceil(n * float64(time.Second)))
}

func until(date string, now time.Time) time.Duration {
	at, err := http.ParseTime(date)
	if err != nil {
		return 0
	}
	return at.Sub(now) // which saturates
}
