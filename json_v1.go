//go:build !goexperiment.jsonv2

package agentmessaging

import (
	"bytes"
	"regexp"
)

// replacement matches the escape that encoding/json writes for invalid UTF-8 in a
// string of Go. U+FFFD itself it writes without an escape.
var replacement = regexp.MustCompile(`[^\\](\\\\)*\\ufffd`)

// losesText reports whether value, which is raw as JSON, holds invalid UTF-8. To match
// takes 100 ms a megabyte, which most values need not wait for.
func losesText(_ any, raw []byte) bool {
	return bytes.Contains(raw, []byte(`\ufffd`)) && replacement.Match(raw)
}
