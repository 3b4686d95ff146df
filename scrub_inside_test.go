package agentmessaging

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestScrubberTakesTheLongestSecretFirst: in whatever order they are given, and
// though one is a part of the other.
func TestScrubberTakesTheLongestSecretFirst(t *testing.T) {
	long, short := hidden{plain: "before-secret-after"}, hidden{plain: "secret"}
	for _, scrub := range []*scrubber{newScrubber(long, short), newScrubber(short, long)} {
		assert.Equal(t, "x [redacted] y [redacted] z", scrub.text("x before-secret-after y secret z"))
	}
}

func TestScrubberFindsEverySpelling(t *testing.T) {
	const secret = `a secret/with "all" + <signs>`
	for _, form := range formsOf(secret) {
		assert.Equal(t, "[redacted]", newScrubber(hidden{plain: secret}).text(form), form)
	}
	assert.Len(t, formsOf(secret), 5)
	assert.Len(t, formsOf("plain-secret"), 2, "all spellings but base64 are the same")
	assert.Equal(t, "short", newScrubber(hidden{plain: "short"}).text("short"))
}

// FuzzFormsOf: a text that is shorter than a secret is not searched for it,
// which is right only if no spelling is shorter.
func FuzzFormsOf(f *testing.F) {
	f.Add(`abcdef"`)
	f.Add("abcdef\xff")
	f.Add("\u2028secret")
	f.Fuzz(func(t *testing.T, secret string) {
		for _, form := range formsOf(secret) {
			assert.GreaterOrEqual(t, len(form), len(secret))
		}
	})
}
