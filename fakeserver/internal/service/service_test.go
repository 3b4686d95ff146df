package service

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// A vault encrypts with its own key and a new nonce each time, and its fingerprints are keyed.
func TestVault(t *testing.T) {
	v := newVault()
	sealed := v.seal("sk-canary")
	assert.NotEqual(t, sealed, v.seal("sk-canary"), "each has a nonce of its own")
	plain, err := v.aead.Open(nil, nil, sealed, nil)
	require.NoError(t, err)
	assert.Equal(t, "sk-canary", string(plain))
	_, err = newVault().aead.Open(nil, nil, sealed, nil)
	assert.Error(t, err, "each vault has a key of its own")
	assert.NotEqual(t, v.fingerprint("a"), newVault().fingerprint("a"))
}

// The state machine uses no package for HTTP, JSON or locks, and reads no clock.
func TestImports(t *testing.T) {
	forbidden := regexp.MustCompile(`"(net/http|encoding/json|sync|sync/atomic|context)"|time\.(Now|Since|Until|Sleep|After|NewTimer)`)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") }) {
		source, err := os.ReadFile(file)
		require.NoError(t, err, file)
		assert.Empty(t, forbidden.FindAllString(string(source), -1), file)
	}
}

var start = time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)

const s = time.Second

type times = []time.Duration

func limitOf(kind string, most int) limit {
	u := new(Usage)
	burst, bucket := Bucket(kind)
	return limit{counting: kind, row: &spec.Limit{Window: time.Minute}, max: most, bucket: bucket, burst: burst, usage: u, Ledger: &u.Ledgers[0]}
}

// Each rule of a way of counting is a row: the times of counted calls, and when the next call
// passes. Where max is 1 and two calls were counted, the maximum was lowered meanwhile.
func TestWindows(t *testing.T) {
	for _, row := range []struct {
		rule, kind string
		at         []time.Duration
		now, opens time.Duration
		max        int
	}{
		{rule: "a window begins with its first call", kind: "fixed", at: times{30 * s, 80 * s}, now: 80 * s, max: 1, opens: 90 * s},
		{rule: "a new window begins with the first call after the old one", kind: "fixed", at: times{0, 300 * s}, now: 300 * s, max: 1, opens: 360 * s},
		{rule: "each call counts for a minute", kind: "sliding", at: times{30 * s, 80 * s}, now: 80 * s, max: 1, opens: 140 * s},
		{rule: "calls of one moment leave together", kind: "sliding", at: times{0, 0, 10 * s}, now: 10 * s, max: 2, opens: 60 * s},
		{rule: "a call that read the clock earlier counts with the last", kind: "sliding", at: times{0, -s}, max: 2, opens: 60 * s},
		{rule: "a window begins with a minute of the clock", kind: "aligned", at: times{30 * s, 80 * s}, now: 80 * s, max: 1, opens: 120 * s},
		{rule: "a call of the window before counts by the share of that window in the last minute", kind: "weighted", at: times{30 * s, 80 * s}, now: 80 * s, max: 1, opens: 180 * s},
		{rule: "nothing counts of the windows before that", kind: "weighted", at: times{0, 0}, now: 130 * s, max: 2, opens: 130 * s},
		{rule: "with none in the window before, one call less than the maximum leaves room for one", kind: "weighted", at: times{10 * s}, now: 20 * s, max: 2, opens: 20 * s},
		{rule: "three calls count as one when two thirds of the window have passed", kind: "weighted", at: times{0, -s, 0}, max: 2, opens: 100 * s},
		{rule: "each call empties the bucket by one", kind: "token bucket of 1", at: times{30 * s, 80 * s}, now: 80 * s, max: 1, opens: 150 * s},
		{rule: "a full bucket gains no more", kind: "token bucket", at: times{0, 300 * s}, now: 300 * s, max: 1, opens: 360 * s},
	} {
		l := limitOf(row.kind, row.max)
		for _, at := range row.at {
			l.count(start.Add(at))
		}
		opens := max(row.now, l.opens(start.Add(row.now)).Sub(start))
		assert.Equal(t, row.opens, opens, "%s: %s", row.kind, row.rule)
	}
}

// A fraction of a call counts as a whole call.
func TestUsed(t *testing.T) {
	fixed, weighted, bucket, lifted := limitOf(decisions.WindowsFixed, 60), limitOf(decisions.WindowsWeighted, 60), limitOf(decisions.WindowsBucket, 60), limitOf(decisions.WindowsBucket, math.MaxInt)
	for range 9 {
		fixed.count(start.Add(-30 * s))
		weighted.count(start)
		bucket.count(start)
	}
	assert.Equal(t, 9, fixed.used(start.Add(20*s)), "a window knows no minute of the clock")
	assert.Equal(t, 6, weighted.used(start.Add(80*s)), "two thirds of 9")
	assert.Equal(t, 6, weighted.used(start.Add(81*s)), "a little less than that")
	assert.Equal(t, 6, bucket.used(start.Add(3500*time.Millisecond)), "5.5")
	assert.Empty(t, bucket.Calls, "a bucket is one time, however many calls it counts")
	lifted.count(start)
	assert.Equal(t, 1, lifted.used(start), "WithLimit takes any number")
}

// A limit that Exhaust closed stays closed if a state file counted its calls in another way.
func TestKindOfAFile(t *testing.T) {
	read := limitOf(decisions.WindowsSliding, 1)
	read.CountedBy, read.ExhaustedUntil, read.keyClosedUntil = decisions.WindowsFixed, start.Add(s), start.Add(s)
	read.count(start)
	assert.Equal(t, start.Add(s), read.ExhaustedUntil, "of a state that was read from a file")
	assert.Equal(t, start.Add(time.Minute), read.opens(start), "the calls of other keys may keep an address closed for longer")
}
