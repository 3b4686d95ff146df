package observe

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWatchRecovers: a bug of this package does not fail a call, and shows in Traffic. The page
// of a Watcher names the way to an answer that calls do not show.
func TestWatchRecovers(t *testing.T) {
	w := Watch(nil)
	w.keys = nil // in place of a bug: learn adds the key
	w.learn(new(watchedCall))
	page := w.Observation().Markdown()
	assert.Contains(t, page, "\n- an answer that the Watcher could not read: 1, last on 0001-01-01\n")
	assert.Contains(t, page, "(`windows`): no call has shown it; Run asks it\n")
}
