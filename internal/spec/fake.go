package spec

// Bounds of the fake, our decisions, as the interface states none. The
// standalone fake's control interface goes by them too.
const (
	MaxBody       = 1 << 20  // bytes of a request body
	MetadataCap   = 4096     // characters of compact JSON
	KeptExchanges = 1000     // of each conversation, the newest, at least
	KeptBody      = 64 << 10 // bytes of each body in a record
)
