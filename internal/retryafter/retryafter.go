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

// Longest bounds what Read returns: the longest window that the interface documents (8.1).
const Longest = spec.Day

// Read returns the wait that the Retry-After of an answer asks for: the longest of
// several, at most Longest. It returns 0 if there is none, or none that can be read, or
// its date has passed. The wait until a date counts from the answer's Date, because the
// clocks of service and client may differ, and from now if there is no Date.
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

// parse reads seconds, with or without a fraction, and dates. Beyond what HTTP allows, it
// accepts quotes, and a list: proxies join several headers into one.
func parse(list string, now time.Time) (longest time.Duration) {
	before := ""
	for item := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ';' }) {
		item = strings.Trim(item, " \t\"'")
		longest = max(longest, seconds(item), until(item, now), until(before+", "+item, now)) // two of the three forms of a date have a comma
		before = item
	}
	return longest
}

// seconds rounds up, so that the client never comes earlier than the service asked.
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
	at, _ := http.ParseTime(date) // a text that is no date gives the year 1
	return at.Sub(now)            // cannot overflow: Sub returns the longest Duration instead
}
