//go:build !linux

package disk

// events are empty: only Linux says in which order files change.
type events struct{}

func newEvents() *events          { return nil }
func (*events) start(string)      {}
func (*events) close()            {}
func (*events) changes() []Change { return nil }
