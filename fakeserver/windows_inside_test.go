package fakeserver

import (
	"cmp"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

var start = time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)

// A fixed window starts with its first call and not with the clock's minute. A
// lower limit counts what was taken under a higher one. Concurrent calls may be
// counted in another order than they read the clock.
func TestWindows(t *testing.T) {
	const s, ns = time.Second, time.Nanosecond
	for _, row := range []struct {
		takes          []time.Duration
		now            time.Duration
		limit          int
		fixed, sliding time.Duration // when the next call passes
	}{
		{nil, 0, 1, 0, 0},
		{[]time.Duration{30 * s}, 90*s - ns, 1, 90 * s, 90 * s},
		{[]time.Duration{30 * s}, 90 * s, 1, 90 * s, 90 * s},
		{[]time.Duration{30 * s}, 90*s + ns, 1, 90*s + ns, 90*s + ns},
		{[]time.Duration{30 * s, 80 * s}, 80 * s, 3, 80 * s, 80 * s},
		{[]time.Duration{30 * s, 80 * s}, 80 * s, 2, 90 * s, 90 * s},
		{[]time.Duration{30 * s, 80 * s}, 80 * s, 1, 90 * s, 140 * s},
		{[]time.Duration{30 * s, 80 * s}, 90 * s, 1, 90 * s, 140 * s},
		{[]time.Duration{30 * s, 90 * s}, 90 * s, 1, 150 * s, 150 * s},
		{[]time.Duration{0, -s}, 0, 2, 60 * s, 60 * s},
		{[]time.Duration{0, -s}, -s, 2, 60 * s, 60 * s},
	} {
		for sliding, want := range map[bool]time.Duration{false: row.fixed, true: row.sliding} {
			w := &window{length: time.Minute, sliding: sliding}
			for _, at := range row.takes {
				w.take(start.Add(at))
			}
			now := start.Add(row.now)
			assert.Equal(t, want, w.opens(now, row.limit).Sub(start), "sliding %v: %+v", sliding, row)
			if len(row.takes) == 1 {
				assert.Equal(t, want, w.ends(now).Sub(start), "sliding %v: %+v", sliding, row)
			}
		}
	}
}

// Calls that no longer count take no memory.
func TestWindowsForget(t *testing.T) {
	log := &window{length: time.Minute, sliding: true}
	for i := range 20_000 {
		log.take(start.Add(time.Duration(i) * time.Second))
		require.LessOrEqual(t, len(log.calls), 60)
	}
	assert.Less(t, cap(log.calls), 300)
}

// The list of routes says what each spends, as the table does that the limits
// go by.
func TestRoutesFitTheSpec(t *testing.T) {
	source, err := os.ReadFile("routes.go")
	require.NoError(t, err)
	require.Len(t, routes, len(spec.Endpoints))
	rows := regexp.MustCompile(`\t{spec\.(\w+), .* // ([^;\n]+)`).FindAllStringSubmatch(string(source), -1)
	require.Len(t, rows, len(routes))
	for i, e := range spec.Endpoints {
		assert.Same(t, e, routes[i].spec)
		assert.Equal(t, e.Lists(429), e.Counts(spec.Requests, false), "what lists no 429 spends nothing")
		var spends []string
		for _, counted := range e.Spends {
			spends = append(spends, string(counted))
		}
		says := cmp.Or(strings.Join(spends, ", "), "nothing")
		assert.Equal(t, []string{e.Name, e.Call + " spends " + says}, rows[i][1:], "row %d of routes", i)
	}
	for _, mode := range spec.SMSModes {
		assert.Contains(t, spec.SMSStatuses, newChoices().smsStatus[mode])
	}
}
