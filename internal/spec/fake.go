package spec

// Bounds of the fake, and of the standalone fake's control interface. They are our
// decisions: the interface states none.
const (
	MaxBody       = 1 << 20  // bytes of a request body
	KeptExchanges = 1000     // at least so many of the newest exchanges of a conversation
	KeptBody      = 64 << 10 // bytes of a body in a record
)
