package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// exchange is one request and its answer.
type exchange struct {
	endpoint endpoint
	status   int
	header   http.Header
	body     []byte
}

// String is the exchange for a failure, in short.
func (x exchange) String() string {
	sent := strings.TrimSpace(fmt.Sprintf("%s %s %s", x.endpoint.method, x.endpoint.path, clip(x.endpoint.body)))
	return fmt.Sprintf("%s\nanswered %d %s", sent, x.status, clip(string(x.body)))
}

// clip shortens a text to 80 characters. Some cases send bytes that no log
// should hold: it replaces what is not UTF-8.
func clip(text string) string {
	runes := []rune(strings.ToValidUTF8(strings.TrimSpace(text), "\ufffd"))
	if len(runes) <= 80 {
		return string(runes)
	}
	return string(runes[:77]) + "..."
}

// at is the member at a dotted path of the answer, nil where there is none.
func (x exchange) at(path string) any {
	var v any
	_ = json.Unmarshal(x.body, &v) // a body that is not JSON has no member
	for name := range strings.SplitSeq(path, ".") {
		members, _ := v.(map[string]any)
		v = members[name]
	}
	return v
}
