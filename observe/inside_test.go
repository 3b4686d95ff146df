package observe

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWatchRecovers: a bug of this package does not fail a call, and shows in Traffic. The page
// of a Watcher names the way to an answer that calls do not show.
func TestWatchRecovers(t *testing.T) {
	w := &Watcher{o: Observation{Traffic: map[string]Sight{}}} // without the other maps, in place of a bug
	w.learn(new(watchedCall))
	assert.Regexp(t, "(?s)`windows`\\): no call has shown it; Run asks it\n.*\n- an answer that the Watcher could not read: 1, last on 0001-01-01\n$", w.Observation().Markdown())
}
