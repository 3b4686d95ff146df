package service

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
)

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
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err, file)
		for _, word := range []string{
			`"net/http"`, `"sync"`, `"sync/atomic"`, `"encoding/json"`, `"context"`,
			"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.NewTimer",
		} {
			assert.False(t, !strings.HasSuffix(file, "_test.go") && strings.Contains(string(source), word), "%s uses %s", file, word)
		}
	}
}

var start = time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)

const s = time.Second

func limitOf(kind string, most int) limit {
	u := new(Usage)
	return limit{kind: kind, length: time.Minute, max: most, bucket: IsBucket(kind), burst: burstOf(kind), usage: u, Window: &u.Windows[0]}
}

// A lower limit counts what was taken under a higher one. Concurrent calls may be
// counted in another order than they read the clock.
func TestWindows(t *testing.T) {
	kinds := []string{"fixed", "sliding", "aligned", "weighted", "token bucket", "token bucket of 2"}
	for _, row := range []struct {
		takes []time.Duration
		now   time.Duration
		max   int
		want  [6]time.Duration // when the next call passes, by kind
	}{
		{[]time.Duration{30 * s, 80 * s}, 80 * s, 1, [6]time.Duration{90 * s, 140 * s, 120 * s, 180 * s, 150 * s, 150 * s}},
		{[]time.Duration{0, 300 * s}, 300 * s, 1, [6]time.Duration{360 * s, 360 * s, 360 * s, 420 * s, 360 * s, 360 * s}},
		{[]time.Duration{0, -s}, 0, 2, [6]time.Duration{60 * s, 60 * s, 60 * s, 90 * s, 30 * s, 30 * s}},
		{[]time.Duration{40 * s, 40 * s}, 45 * s, 4, [6]time.Duration{45 * s, 45 * s, 45 * s, 45 * s, 45 * s, 55 * s}},
	} {
		for i, kind := range kinds {
			l := limitOf(kind, row.max)
			for _, at := range row.takes {
				l.count(start.Add(at))
			}
			opens := max(row.now, l.opens(start.Add(row.now)).Sub(start))
			assert.Equal(t, row.want[i], opens, "%s: %+v", kind, row)
		}
	}
	lifted := limitOf(decisions.WindowsBucket, math.MaxInt) // WithLimit takes any number
	lifted.count(start)
	assert.Equal(t, 1, lifted.used(start))
	shut := limitOf(decisions.WindowsSliding, 1) // read from the file of another kind
	shut.Kind, shut.Shut = decisions.WindowsFixed, start.Add(s)
	shut.count(start)
	assert.Equal(t, start.Add(s), shut.Shut)
	weighted, bucket := limitOf(decisions.WindowsWeighted, 60), limitOf(decisions.WindowsBucket, 60)
	for range 9 {
		weighted.count(start)
		bucket.count(start)
	}
	assert.Equal(t, 6, weighted.used(start.Add(80*s)), "two thirds of 9")
	assert.Equal(t, 6, weighted.used(start.Add(81*s)), "a part of a call counts as a call")
	assert.Equal(t, 6, bucket.used(start.Add(3500*time.Millisecond)), "likewise")
}
