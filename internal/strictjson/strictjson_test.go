package strictjson

import ( // not testify, which would link net/http into this binary
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// There is a separate error for each mistake that encoding/json accepts in silence.
func TestCheckMembers(t *testing.T) {
	for doc, want := range map[string]error{
		`{"a":null,"b":[1,-2.5e3,true,{"a":{"a":1}}],"":"x","A":1,"c":[{"b":1},{"b":1}]}`: nil,
		`["\ud83d\ude00","\uDABC\uDC00","\\ud800"]`:                                       nil,
		strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000):                         nil,
		strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001):                         errJSON,
		`{}{}`:                              errJSON,
		"\"\xff\"":                          ErrUTF8,
		`["\ude00\ud83d"]`:                  ErrLoneSurrogate,
		`{"\ud800":1}`:                      ErrLoneSurrogate,
		`[{"b":{"a":1,"c":{},"\u0061":2}}]`: DuplicateError("a"),
	} {
		if got := CheckMembers([]byte(doc)); got != want {
			t.Errorf("CheckMembers(%.80s) = %v, want %v", doc, got, want)
		}
	}
}

// FuzzReadObject checks that ReadObject accepts the same documents as encoding/json, with the
// same values.
func FuzzReadObject(f *testing.F) {
	for _, doc := range []string{
		"", "null", "[]", `{}`, ` { "a" : 1 , "b" : [ { "c" : "}" } , 2 ] } `, `{"a":"\"\\"}`, `{"\u0061":"\ud800\u00e9","b":"é` + "\xff" + `"}`,
		`{"a":1,"a":2}`, `{"a":1,}`, `{"a":"x";"b":2}`, `{"a":"` + "\n" + `"}`, `{"a":01}`, `{"a":tru}`, `{"a":1}x`, `{"a"`, `{"\x":1}`, `{"a":{"b":[`, `{"a":tru`, `{1 :2}`, "{\r\n}", "{}\x00", `{"` + "\xff" + `":"\/"}`,
	} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		var want map[string]json.RawMessage
		isObject := json.Unmarshal([]byte(doc), &want) == nil && want != nil
		object, err := ReadObject([]byte(doc))
		if isObject != (err == nil) {
			t.Fatalf("ReadObject(%q): error %v, but encoding/json reads an object: %t", doc, err, isObject)
		}
		last := map[string]json.RawMessage{} // by names as encoding/json reads them
		for _, m := range object {
			last[string([]rune(string(m.Name)))] = m.Value
			var want string
			isText := m.Value[0] == '"' && json.Unmarshal(m.Value, &want) == nil
			if got, ok := String(m.Value); ok != isText || got != want {
				t.Errorf("String(%s) of %q = %q, %t, want %q, %t", m.Value, doc, got, ok, want, isText)
			}
		}
		if isObject && !reflect.DeepEqual(last, want) {
			t.Errorf("ReadObject(%q) = %q, want %q", doc, last, want)
		}
	})
}
