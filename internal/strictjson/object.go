package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"unicode/utf8"
)

// Object is a JSON object whose members are found by their exact names.
type Object struct{ members []member }

// member is a name, and its value as it was written.
type member struct{ name, value []byte }

var errNoObject = errors.New("not an object")

// ReadObject reads a document that is one object. It accepts what encoding/json
// accepts: invalid UTF-8 and half surrogate pairs too, and names that are there
// twice. The object shares the document's memory.
func ReadObject(doc []byte) (Object, error) {
	if !json.Valid(doc) {
		var whole json.RawMessage
		return Object{}, json.Unmarshal(doc, &whole) // says what is wrong
	}
	sc := Scanner{Data: doc}
	if sc.Peek() != '{' {
		return Object{}, errNoObject
	}
	members := make([]member, 0, 4) // few replies have more
	for sc.Enter(); sc.More(); {
		name := sc.skipString()
		sc.Enter() // over the colon
		members = append(members, member{name, sc.Skip()})
	}
	return Object{members}, nil
}

// Get returns the value of the member with a name of ASCII letters; nil if it is
// missing. The error is a Twice: nobody could know which of the two counts.
func (o Object) Get(name string) (value []byte, err error) {
	for _, m := range o.members {
		if !m.named(name) {
			continue
		}
		if value != nil {
			return nil, Twice(name)
		}
		value = m.value
	}
	return value, nil
}

func (m member) named(name string) bool {
	if string(m.name[1:len(m.name)-1]) == name {
		return true
	}
	if bytes.IndexByte(m.name, '\\') < 0 {
		return false
	}
	unescaped, _ := String(m.name)
	return unescaped == name
}

// All yields the members in their order.
func (o Object) All() iter.Seq2[string, []byte] {
	return func(yield func(name string, value []byte) bool) {
		for _, m := range o.members {
			if name, _ := String(m.name); !yield(name, m.value) {
				return
			}
		}
	}
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
