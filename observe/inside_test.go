package observe

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWatchRecovers: a bug of this package does not fail a call, and shows in Traffic. The page
// of a Watcher says of each question whether a call can answer it.
func TestWatchRecovers(t *testing.T) {
	w := Watch(nil)
	w.keys = nil // in place of a bug: learn adds the key
	w.learn(new(watchedCall))
	page := w.Observation().Markdown()
	assert.Contains(t, page, "\n- an answer that the Watcher could not read: 1, last on 0001-01-01\n")
	assert.Contains(t, page, "(`times`): no call has shown it yet\n")
	assert.Contains(t, page, "(`windows`): only Run asks it\n")
}
