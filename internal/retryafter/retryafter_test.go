package retryafter

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(1994, time.November, 6, 8, 49, 0, 0, time.UTC)
	for _, tt := range []struct {
		value string
		want  time.Duration
	}{
		{"0", 0}, {"1", time.Second}, {" 2 ", 2 * time.Second}, {"0.1", 100 * time.Millisecond},
		{"0.0000000001", time.Nanosecond}, {"-1", 0}, {"-0.5", 0}, {"NaN", 0}, {"", 0}, {"x", 0}, {"1x", 0}, {"s", 0},
		{"1, 2", 2 * time.Second}, {`"1"`, time.Second}, {`"3", "2"`, 3 * time.Second}, {"1;x", time.Second}, {"1s", 0},
		{"1e309", Longest}, {"Inf", 0}, {"-Inf", 0}, {"-1e309", 0},
		{"9223372037", Longest}, {"86400.1", Longest}, {"72000", 20 * time.Hour},
		{"Sun, 06 Nov 1994 08:49:37 GMT", 37 * time.Second},
		{"Sunday, 06-Nov-94 08:49:37 GMT", 37 * time.Second},
		{"Sun Nov  6 08:49:37 1994", 37 * time.Second},
		{"Sun, 06 Nov 1994 08:48:59 GMT", 0},
		{"Fri, 31 Dec 9999 23:59:59 GMT", math.MaxInt64},
	} {
		assert.Equal(t, tt.want, parse(tt.value, "", now), "%q", tt.value)
	}
	header := http.Header{"Retry-After": {"Sun, 06 Nov 1994 08:49:37 GMT"}}
	assert.Equal(t, 37*time.Second, Read(header, now), "without a Date, by the caller's clock")
	header.Set("Date", "Sun, 06 Nov 1994 08:49:30 GMT")
	assert.Equal(t, 7*time.Second, Read(header, now), "by the clock of the service")
	for _, header := range []http.Header{
		{"Retry-After": {"1", "7200", "3"}}, {"Retry-After": {"7200", "1"}}, {"retry-after": {"7200"}},
	} {
		assert.Equal(t, 2*time.Hour, Read(header, time.Time{}), "%v: the longest of several", header)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"1", "90", "0.5", "-1", "NaN", "1e309", "9223372037", "Sun, 06 Nov 1994 08:49:37 GMT", "0x1p-2", "1_0"} {
		f.Add(value, "Sun, 06 Nov 1994 08:49:00 GMT")
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		asked := Read(http.Header{"Retry-After": {value}, "Date": {date}}, time.Time{})
		if asked < 0 || asked > Longest {
			t.Fatalf("out of bounds: %v", asked)
		}
	})
}
