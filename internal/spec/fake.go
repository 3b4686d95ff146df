package spec

// Bounds of the fake, our decisions, as the interface states none. The
// standalone fake's control interface goes by them too.
const (
	MaxBody       = 1 << 20  // bytes of a request body
	KeptExchanges = 1000     // of each conversation, the newest, at least
	KeptBody      = 64 << 10 // bytes of each body in a record
)
