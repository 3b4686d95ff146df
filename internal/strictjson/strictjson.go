// Package strictjson steps through a JSON document so that its reader can refuse
// what encoding/json passes over: members of another name, members that are
// there twice, and half surrogate pairs. The fake reads the bodies of calls with it;
// the standalone fake reads the bodies of its control interface.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// The flaws of a document as such. HalfPair is an escape that stands for no
// character; a decoder would replace it in silence.
var (
	ErrUTF8     = errors.New("must be valid UTF-8")
	ErrJSON     = errors.New("must be one JSON document and nothing else")
	ErrHalfPair = errors.New("must be valid Unicode; half a surrogate pair is none")
)

// IsType reports whether a Content-Type means JSON in UTF-8.
func IsType(contentType string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	charset, given := params["charset"]
	return err == nil && kind == "application/json" && (!given || strings.EqualFold(charset, "utf-8"))
}

// Twice is the name of a member that is there twice.
type Twice string

func (t Twice) Error() string { return "member " + string(t) + " is there twice" }

// Check says whether a Scanner can step through a document.
func Check(doc []byte) error {
	switch {
	case !utf8.Valid(doc):
		return ErrUTF8
	case !json.Valid(doc):
		return ErrJSON
	}
	return nil
}

// CheckMembers is Check, and refuses what Free refuses.
func CheckMembers(doc []byte) error {
	if err := Check(doc); err != nil {
		return err
	}
	sc := Scanner{Data: doc}
	return sc.Free()
}

// Scanner steps through a document that Check has accepted.
type Scanner struct {
	Data []byte
	Pos  int
	Torn bool // the last string that was read holds half a surrogate pair

	Duplicates bool // Free accepts a member twice
}

// Peek returns the first byte of the next value, and Pos is there.
func (sc *Scanner) Peek() byte {
	sc.space()
	return sc.Data[sc.Pos]
}

func (sc *Scanner) space() {
	for sc.Pos < len(sc.Data) && strings.IndexByte(" \t\r\n", sc.Data[sc.Pos]) >= 0 {
		sc.Pos++
	}
}

// Enter steps over the bracket that opens an object or an array.
func (sc *Scanner) Enter() {
	sc.space()
	sc.Pos++
}

// More reports whether another member or element follows, and steps to it. At
// the end it steps over the closing bracket.
func (sc *Scanner) More() bool {
	switch sc.Peek() {
	case '}', ']':
		sc.Pos++
		return false
	case ',':
		sc.Pos++
	}
	return true
}

// Name reads a member's name and the colon behind it.
func (sc *Scanner) Name() string {
	name := sc.Text()
	sc.space()
	sc.Pos++
	return name
}

// Text reads a string. The result shares no memory with the document, so that
// keeping a name never keeps a key beside it.
func (sc *Scanner) Text() string {
	quoted := sc.skipString()
	sc.Torn = bytes.IndexByte(quoted, '\\') >= 0 && isTorn(quoted)
	s, _ := String(quoted)
	return s
}

// skipString steps over a string, and returns it with its quotes.
func (sc *Scanner) skipString() []byte {
	sc.space()
	from := sc.Pos
	for sc.Pos++; sc.Data[sc.Pos] != '"'; sc.Pos++ {
		if sc.Data[sc.Pos] == '\\' {
			sc.Pos++
		}
	}
	sc.Pos++
	return sc.Data[from:sc.Pos]
}

// Skip steps over any value, and returns it.
func (sc *Scanner) Skip() []byte {
	sc.space()
	from := sc.Pos
	for depth := 0; ; {
		switch sc.Peek() {
		case '{', '[':
			sc.Pos++
			depth++
		case '}', ']':
			sc.Pos++
			depth--
		case ',', ':':
			sc.Pos++
		case '"':
			sc.skipString()
		default:
			sc.Scalar()
		}
		if depth == 0 {
			return sc.Data[from:sc.Pos]
		}
	}
}

// Scalar steps over a number, true, false or null, and returns it.
func (sc *Scanner) Scalar() []byte {
	sc.space()
	from := sc.Pos
	for sc.Pos < len(sc.Data) && strings.IndexByte(" \t\r\n,]}", sc.Data[sc.Pos]) < 0 {
		sc.Pos++
	}
	return sc.Data[from:sc.Pos]
}

// Free steps over any value. Objects in it may have any members, but none
// twice: nobody could know which of the two counts. The error is ErrHalfPair or
// a Twice.
func (sc *Scanner) Free() error {
	switch sc.Peek() {
	case '{':
		return sc.freeObject()
	case '[':
		for sc.Enter(); sc.More(); {
			if err := sc.Free(); err != nil {
				return err
			}
		}
	case '"':
		if sc.Text(); sc.Torn {
			return ErrHalfPair
		}
	default:
		sc.Scalar()
	}
	return nil
}

func (sc *Scanner) freeObject() error {
	seen := map[string]bool{}
	for sc.Enter(); sc.More(); {
		name := sc.Name()
		switch {
		case sc.Torn:
			return ErrHalfPair
		case seen[name] && !sc.Duplicates:
			return Twice(name)
		}
		seen[name] = true
		if err := sc.Free(); err != nil {
			return err
		}
	}
	return nil
}

// isTorn reports whether an escape in a quoted string is half a surrogate pair.
func isTorn(quoted []byte) bool {
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		i++
		unit := escaped16(quoted[i:])
		switch {
		case !utf16.IsSurrogate(unit):
		case len(quoted) > i+6 && quoted[i+5] == '\\' && utf16.DecodeRune(unit, escaped16(quoted[i+6:])) != unicode.ReplacementChar:
			i += 6 // into the escape of the other half
		default:
			return true
		}
	}
	return false
}

// escaped16 is the code unit of a \u escape, and 0 for any other escape. s
// starts behind the backslash.
func escaped16(s []byte) rune {
	if s[0] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(string(s[1:5]), 16, 16) // Check has accepted it
	return rune(unit)
}

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
