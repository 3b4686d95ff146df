package service

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
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

// The comments of the table say what package spec says of each endpoint.
func TestRows(t *testing.T) {
	source, err := os.ReadFile("service.go")
	require.NoError(t, err)
	for _, e := range spec.Endpoints {
		row := "\n\t// " + e.Call + ": " + strings.Trim(fmt.Sprint(e.Errors), "[]")
		for i, what := range e.Spends {
			row += []string{"; spends ", ", "}[min(i, 1)] + string(what)
		}
		assert.Contains(t, string(source), row+"\n\tspec."+e.Name+": ", e.Name)
	}
}

var start = time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)

const s, ns = time.Second, time.Nanosecond

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
	weighted := limitOf(decisions.WindowsWeighted, 60)
	for range 9 {
		weighted.count(start)
	}
	assert.Equal(t, 6, weighted.used(start.Add(80*time.Second)), "two thirds of 9")
}

// naive counts as each kind says, from every call that was taken.
func naive(kind string, most int, taken []time.Time, now time.Time) (passes bool) {
	between := func(from, to time.Time) (n int) {
		for _, at := range taken {
			if !at.Before(from) && at.Before(to) {
				n++
			}
		}
		return n
	}
	minute := now.Truncate(time.Minute)
	switch kind {
	case decisions.WindowsSliding:
		return between(now.Add(ns-time.Minute), now.Add(ns)) < most
	case decisions.WindowsAligned:
		return between(minute, now.Add(ns)) < most
	case decisions.WindowsWeighted:
		left := 1 - now.Sub(minute).Minutes()
		return float64(between(minute.Add(-time.Minute), minute))*left+float64(between(minute, now.Add(ns))) <= float64(most-1)+1e-9
	case decisions.WindowsBucket:
		tokens, last := float64(most), start
		for _, at := range append(taken[:len(taken):len(taken)], now) {
			tokens = min(float64(most), tokens+at.Sub(last).Minutes()*float64(most))
			last = at
			tokens--
		}
		return tokens >= -1e-6
	}
	var first time.Time
	n := 0
	for _, at := range taken {
		if n == 0 || !at.Before(first.Add(time.Minute)) {
			first, n = at, 0
		}
		n++
	}
	return n < most || !now.Before(first.Add(time.Minute))
}

// Each kind agrees with its naive model, and opens exactly when it says.
func TestWindowsAgreeWithNaiveModels(t *testing.T) {
	for _, kind := range []string{decisions.WindowsFixed, decisions.WindowsSliding, decisions.WindowsAligned, decisions.WindowsWeighted, decisions.WindowsBucket} {
		random := rand.New(rand.NewPCG(1, 2))
		for range 10 {
			most := 1 + random.IntN(12)
			l := limitOf(kind, most)
			now, taken := start, []time.Time(nil)
			for range 100 {
				now = now.Add(time.Duration(random.IntN(12_000)) * time.Millisecond)
				opens := l.opens(now)
				require.Equal(t, naive(kind, most, taken, now), !opens.After(now), "%s of %d after %v", kind, most, now.Sub(start))
				require.Equal(t, opens.After(now), l.used(now) == most, "%s: %d of %d are used", kind, l.used(now), most)
				if opens.After(now) && random.IntN(2) == 0 {
					require.False(t, naive(kind, most, taken, opens.Add(-time.Millisecond)), "%s of %d opens too late", kind, most)
					require.True(t, naive(kind, most, taken, opens), "%s of %d opens too early", kind, most)
					now = opens
				}
				if !l.opens(now).After(now) {
					l.count(now)
					taken = append(taken, now)
				}
				require.LessOrEqual(t, len(l.Calls), most+1, "calls that no longer count take no memory")
			}
		}
	}
}
