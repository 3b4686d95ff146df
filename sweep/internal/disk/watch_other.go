//go:build !linux

package disk

// events are unknown, because only Linux reports the order in which files change.
type events struct{ folders map[int32]string }

// NewWatch returns a Watch without a folder.
func NewWatch() *Watch { return &Watch{} }

// Start begins to watch a folder, in place of the previous folder.
func (w *Watch) Start(dir string) { w.dir = dir }

// Close ends the watch.
func (*Watch) Close() {}

func (events) changes() []Change { return nil }
