package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What the pacer was told is wrong, or not all.

func TestSomebodyElseUsesTheKey(t *testing.T) {
	t.Parallel()
	for _, m := range usualModels {
		target{used: 0.75, refused: 0.03, jain: 0.99}.hold(t, simulate(t, shared(m, paced)).measured())
	}
}

func TestRealLimitIsLower(t *testing.T) {
	t.Parallel()
	for _, m := range usualModels {
		target{used: 0.93, refused: 0.02, jain: 0.99}.hold(t, simulate(t, lower(m, paced)).measured())
	}
}

func TestOddServices(t *testing.T) {
	t.Parallel()
	for _, m := range usualModels {
		for _, q := range []quirks{{countsRefused: true}, {truncates: true}} {
			target{used: 0.98, refused: 0.002, jain: 0.99}.hold(t, simulate(t, odd(m, paced, q)).measured())
		}
	}
}

// A long window's kind is learned from one refusal; the sliding counter looks
// like another kind each time.
func TestLongWindows(t *testing.T) {
	t.Parallel()
	for _, l := range longLimits {
		for _, m := range longModels {
			t.Run(l.name()+", "+string(m), func(t *testing.T) {
				got := simulate(t, longWindow(m, alone, l, longSpan(l))).measured()
				target{used: 0.95, refused: 1}.hold(t, got)
				most := 1
				if m == counter {
					most = 10
				}
				assert.LessOrEqual(t, got.Refused, most, "refusals, of %d calls", got.Accepted)
			})
		}
	}
}

// longSpan is how many windows: enough for a few hundred calls at least.
func longSpan(l limit) int {
	if l.max >= 1000 {
		return 4
	}
	return 20
}
