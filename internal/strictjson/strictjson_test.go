package strictjson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzReadObject: the verdict and the values are those of encoding/json, but for
// names that are there twice.
func FuzzReadObject(f *testing.F) {
	for _, doc := range []string{
		"", "null", "[]", `{}`, ` { "a" : 1 , "b" : [ { "c" : "}" } , 2 ] } `, `{"a":"\"\\"}`, `{"\u0061":"\ud800\u00e9","b":"é` + "\xff" + `"}`,
		`{"a":1,"a":2}`, `{"a":1,}`, `{"a":"` + "\n" + `"}`, `{"a":01}`, `{"a":tru}`, `{"a":1}x`, `{"a"`, `{"a":{"b":[`, `{"` + "\xff" + `":"\/"}`,
	} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		var want map[string]json.RawMessage
		err := json.Unmarshal([]byte(doc), &want)
		object, readErr := ReadObject([]byte(doc))
		require.Equal(t, err == nil && want != nil, readErr == nil, "%q: %v", doc, readErr)
		times := map[string]int{}
		for _, m := range object {
			value := m.Value
			times[string([]rune(string(m.Name)))]++
			var text string
			isText := value[0] == '"' && assert.NoError(t, json.Unmarshal(value, &text))
			read, ok := String(value)
			assert.Equal(t, isText, ok, doc)
			assert.Equal(t, text, read, doc)
		}
		assert.Len(t, want, len(times), doc)
		for name, value := range want {
			found, err := object.Get(name)
			switch {
			case strings.Contains(name, "\ufffd"): // it may be for other bytes
			case times[name] > 1:
				assert.Equal(t, Twice(name), err, doc)
			default:
				assert.Equal(t, string(value), string(found), doc)
			}
		}
	})
}
