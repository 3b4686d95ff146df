//go:build goexperiment.jsonv2

package agentmessaging

import (
	"encoding/json"
	"encoding/json/jsontext"
	jsonv2 "encoding/json/v2"
)

// hasInvalidUTF8 reports whether value holds invalid UTF-8. This encoding/json writes U+FFFD
// for it without an escape, so raw does not show it.
func hasInvalidUTF8(value any, _ []byte) bool {
	_, err := jsonv2.Marshal(value, json.DefaultOptionsV1(), jsontext.AllowInvalidUTF8(false))
	return err != nil
}
