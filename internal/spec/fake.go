package spec

// Bounds of the fake, and of the standalone fake's control interface. They are our
// decisions, because the interface states none.
const (
	MaxBody       = 1 << 20  // bytes of a request body
	KeptExchanges = 1000     // the fake keeps at least this many of a conversation's newest exchanges
	KeptBody      = 64 << 10 // bytes of a body in a record
)
