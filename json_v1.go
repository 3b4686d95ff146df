//go:build !goexperiment.jsonv2

package agentmessaging

import "regexp"

// replacement matches the escape that encoding/json writes for invalid UTF-8 in a
// string of Go. U+FFFD itself it writes without an escape.
var replacement = regexp.MustCompile(`[^\\](\\\\)*\\ufffd`)

// losesText reports whether value, which is raw as JSON, holds invalid UTF-8.
func losesText(_ any, raw []byte) bool { return replacement.Match(raw) }
