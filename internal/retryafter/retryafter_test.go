package retryafter

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Every form that services and proxies send is read, and what is none of them asks for no wait.
// docs/faults.md shows the usual ones.
func TestRead(t *testing.T) {
	now := time.Date(1994, time.November, 6, 8, 49, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		" 2 ":                              2 * time.Second,
		"0.0000000001":                     time.Nanosecond,
		`"3"; "2"`:                         3 * time.Second,
		"1, Sun, 06 Nov 1994 08:49:37 GMT": 37 * time.Second,
		`"Sunday, 06-Nov-94 08:49:38 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 2`: 38 * time.Second,
		"Fri, 31 Dec 9999 23:59:59 GMT":                                        Longest,
		"9223372037":                                                           Longest, // more than a Duration holds
		strings.Repeat("9", 400):                                               Longest,
		"Mon, 23 Nov 2026 07:01:00 UTC":                                        0, // not a date of HTTP
		"1s, Inf, -Inf, -1e309, s, -0.5, 1_000, 1e3, 0x1p4, 1.2.3":             0,
	} {
		assert.Equal(t, want, Read(http.Header{"Retry-After": {value}}, now), value)
	}
	dated := http.Header{"retry-after": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "date": {"Sun, 06 Nov 1994 08:49:30 GMT", "today"}}
	assert.Equal(t, 7*time.Second, Read(dated, now), "from the answer's Date")
	assert.Equal(t, 2*time.Hour, Read(http.Header{"retry-after": {"1", "7200"}, "Retry-After": {"2"}}, now), "the longest of several")
}
