package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Object is the members of a JSON object, in their order.
type Object []Member

// Member is a name, in quotes, and a value, both as they were written.
type Member struct{ Name, Value []byte }

var errNoObject = errors.New("not an object")

// ReadObject reads a document that is one object. It accepts what encoding/json
// accepts: invalid UTF-8 and half surrogate pairs too, and names that are there
// twice. The object shares the document's memory.
func ReadObject(doc []byte) (Object, error) {
	if !json.Valid(doc) {
		var whole json.RawMessage
		return nil, json.Unmarshal(doc, &whole) // says what is wrong
	}
	sc := Scanner{Data: doc}
	if sc.Peek() != '{' {
		return nil, errNoObject
	}
	o := make(Object, 0, 4) // few replies have more
	for sc.Enter(); sc.More(); {
		name := sc.skipString()
		sc.Enter() // over the colon
		o = append(o, Member{name, sc.Skip()})
	}
	return o, nil
}

// Get returns the value of the member with exactly that name; nil if it is
// missing. The error is a Twice: nobody could know which of the two counts.
func (o Object) Get(name string) (value []byte, err error) {
	for _, m := range o {
		if !m.named(name) {
			continue
		}
		if value != nil {
			return nil, Twice(name)
		}
		value = m.Value
	}
	return value, nil
}

func (m Member) named(name string) bool {
	if bytes.IndexByte(m.Name, '\\') < 0 {
		return string(m.Name[1:len(m.Name)-1]) == name
	}
	unescaped, _ := String(m.Name)
	return unescaped == name
}

// String reads a value that is a string, as encoding/json reads it: invalid UTF-8
// and half surrogate pairs become U+FFFD. It shares no memory with the value.
func String(value []byte) (s string, ok bool) {
	if value[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value) {
		return string(value[1 : len(value)-1]), true
	}
	var unescaped string // not s, which would be moved to the heap
	err := json.Unmarshal(value, &unescaped)
	return unescaped, err == nil
}
