package agentmessaging

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEncodeEscapesNoHTML, and nothing is taken for an escape that is none.
func TestEncodeEscapesNoHTML(t *testing.T) {
	for _, text := range []string{"", "plain", "a < b && c > d", `a\u003cb`, `a\\u003c <`, "line\nbreak \x01 \u2028", "\xff", "ä€😀"} {
		var buf, want bytes.Buffer
		require.NoError(t, encode(&buf, messageBody{Text: text}))
		require.NoError(t, encodeUnescaped(&want, messageBody{Text: text}))
		assert.Equal(t, want.String(), buf.String(), "%q", text)
	}
}

// TestAddMember to an empty body and to another.
func TestAddMember(t *testing.T) {
	for _, tt := range []struct{ before, want string }{
		{`{}`, `{"metadata":{"n":1}}`},
		{`{"a":"b"}`, `{"a":"b","metadata":{"n":1}}`},
	} {
		buf := bytes.NewBufferString(tt.before)
		addMember(buf, "metadata", json.RawMessage(`{"n":1}`))
		assert.Equal(t, tt.want, buf.String())
	}
}
