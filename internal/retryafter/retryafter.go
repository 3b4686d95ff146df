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

// Longest bounds what Read returns: the longest window that the interface documents (8.1).
const Longest = spec.Day

// Read returns the wait that an answer's Retry-After asks for: the longest of several, at
// most Longest. It returns 0 if the header is missing or unreadable, or if its date has
// passed. The wait until a date counts from the answer's Date, because the clocks of
// service and client may differ, and from now if there is no Date. Read rounds a fraction of a
// second up to the next nanosecond, so that the client never comes earlier than the service asked.
//
// Beyond what HTTP allows, Read accepts fractions and quotes, and a list, because proxies join
// several headers into one.
func Read(header http.Header, now time.Time) (longest time.Duration) {
	var asked []string
	for name, values := range header { // some transports keep the case that the service sent
		switch {
		case strings.EqualFold(name, "Retry-After"):
			asked = append(asked, values...)
		case strings.EqualFold(name, "Date"):
			for _, date := range values {
				if sent, err := http.ParseTime(date); err == nil {
					now = sent
				}
			}
		}
	}
	before := ""
	for item := range strings.FieldsFuncSeq(strings.Join(asked, ","), func(r rune) bool { return r == ',' || r == ';' }) {
		item = strings.Trim(item, " \t\"'")
		for _, text := range []string{item, before + item} { // two of the three forms of a date have a comma
			if strings.Trim(text, "0123456789.") == "" { // ParseFloat reads more than HTTP knows, such as 1e3
				n, _ := strconv.ParseFloat(text, 64) // 0 if the text is no number, infinite if it is too large
				longest = max(longest, time.Duration(math.Ceil(min(n, Longest.Seconds())*float64(time.Second))))
			} else if at, err := http.ParseTime(text); err == nil {
				longest = max(longest, at.Sub(now))
			}
		}
		before = item + ", "
	}
	return min(longest, Longest)
}
