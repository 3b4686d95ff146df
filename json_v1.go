//go:build !goexperiment.jsonv2

package agentmessaging

import (
	"bytes"
	"regexp"
)

// replacement matches the escape \ufffd, which encoding/json writes for invalid UTF-8 in
// a Go string. It writes a valid U+FFFD of the string without an escape.
var replacement = regexp.MustCompile(`[^\\](\\\\)*\\ufffd`)

// hasInvalidUTF8 reports whether the value that was encoded as raw holds invalid UTF-8. The
// match takes 100 ms a megabyte, so most values skip it.
func hasInvalidUTF8(_ any, raw []byte) bool {
	return bytes.Contains(raw, []byte(`\ufffd`)) && replacement.Match(raw)
}
