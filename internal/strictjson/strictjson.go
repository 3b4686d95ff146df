// Package strictjson steps through a JSON document so that its reader can refuse what
// encoding/json accepts in silence: unknown members, duplicate members, names in another
// case, and lone surrogates. The fake reads requests with it, and the standalone fake the
// requests to its control interface. The client checks metadata with CheckMembers, and reads
// answers with ReadObject, which accepts any JSON object: its caller decides what counts.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Reasons to refuse a document, whatever its members are. encoding/json sets the bound on
// nesting. A lone surrogate is an escape such as \ud800, half of a pair, that encodes no
// character; encoding/json would replace it in silence.
var (
	ErrUTF8          = errors.New("must be valid UTF-8")
	errJSON          = errors.New("must be one JSON document and nothing else, at most 10,000 levels deep")
	ErrLoneSurrogate = errors.New("must be valid Unicode, without lone surrogates")
)

// IsType reports whether a Content-Type means JSON in UTF-8.
func IsType(contentType string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	charset, given := params["charset"]
	return err == nil && kind == "application/json" && (!given || strings.EqualFold(charset, "utf-8"))
}

// DuplicateError says that a member appears twice. It is the member's name.
type DuplicateError string

func (e DuplicateError) Error() string { return "member " + string(e) + " appears twice" }

// Check returns why a Scanner cannot step through a document; nil if it can.
func Check(doc []byte) error {
	switch {
	case !utf8.Valid(doc):
		return ErrUTF8
	case !json.Valid(doc):
		return errJSON
	}
	return nil
}

// CheckMembers returns the error of Check, or else of Scanner.CheckValue.
func CheckMembers(doc []byte) error {
	if err := Check(doc); err != nil {
		return err
	}
	return (&Scanner{Data: doc}).CheckValue()
}

// Scanner steps through a document that Check has accepted.
type Scanner struct {
	Data          []byte
	Pos           int
	LoneSurrogate bool // the last string that was read has a lone surrogate

	AllowDuplicates bool // CheckValue accepts duplicate members
}

// Peek steps over white space to the next byte, and returns it; 0 at the end.
func (sc *Scanner) Peek() byte {
	for ; sc.Pos < len(sc.Data); sc.Pos++ {
		switch c := sc.Data[sc.Pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// Enter steps over the bracket that opens an object or an array.
func (sc *Scanner) Enter() {
	sc.Peek()
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

// Name reads a member's name and the colon after it.
func (sc *Scanner) Name() string {
	name := sc.Text()
	sc.Enter()
	return name
}

// Text reads a string, and sets LoneSurrogate. The result shares no memory with the
// document. Otherwise a caller that keeps a name would keep the whole document, and a
// provider key in it, in memory.
func (sc *Scanner) Text() string {
	quoted := sc.Value()
	sc.LoneSurrogate = bytes.IndexByte(quoted, '\\') >= 0 && surrogate.Match(quoted) && !paired.Match(quoted)
	s, _ := String(quoted)
	return s
}

// Value steps over any value, and returns its JSON.
func (sc *Scanner) Value() []byte {
	value, _ := sc.value()
	return value
}

// value is Value. It also reports whether the value is a plain string: one that ends, and
// has no escapes and no control characters. A plain string is valid JSON without a
// further check.
func (sc *Scanner) value() (value []byte, isPlain bool) {
	first, from := sc.Peek(), sc.Pos
	switch first {
	case '"':
		isPlain = sc.text()
	case '{', '[':
		sc.brackets()
	default:
		for sc.Pos < len(sc.Data) && strings.IndexByte(" \t\r\n,]}", sc.Data[sc.Pos]) < 0 {
			sc.Pos++
		}
	}
	return sc.Data[from:sc.Pos], isPlain
}

// text steps over a string. See value for isPlain.
func (sc *Scanner) text() (isPlain bool) {
	isPlain = true
	for i := sc.Pos + 1; i < len(sc.Data); i++ {
		switch c := sc.Data[i]; {
		case c == '"':
			sc.Pos = i + 1
			return isPlain
		case c == '\\':
			i++
			isPlain = false
		case c < ' ':
			isPlain = false
		}
	}
	sc.Pos = len(sc.Data)
	return false
}

// brackets steps beyond the bracket that closes the one at Pos.
func (sc *Scanner) brackets() {
	for depth := 0; sc.Pos < len(sc.Data); {
		switch sc.Data[sc.Pos] {
		case '"':
			sc.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if sc.Pos++; depth == 0 {
			return
		}
	}
}

// CheckValue steps over a value whose objects may have any members. It refuses a member
// that appears twice, because nobody could know which of the two counts. Its error is
// ErrLoneSurrogate or a DuplicateError.
func (sc *Scanner) CheckValue() error {
	first := sc.Peek()
	if first == '"' {
		if sc.Text(); sc.LoneSurrogate {
			return ErrLoneSurrogate
		}
		return nil
	}
	if first != '{' && first != '[' {
		sc.Value()
		return nil
	}
	seen := map[string]bool{} // the names so far, if the value is an object
	for sc.Enter(); sc.More(); {
		if first == '{' {
			name := sc.Name()
			switch {
			case sc.LoneSurrogate:
				return ErrLoneSurrogate
			case seen[name] && !sc.AllowDuplicates:
				return DuplicateError(name)
			}
			seen[name] = true
		}
		if err := sc.CheckValue(); err != nil {
			return err
		}
	}
	return nil
}

// surrogate matches a string that has escaped surrogates, in pairs or alone. paired
// matches a string whose surrogates all come in pairs.
var (
	surrogate = regexp.MustCompile(`\\u[dD]`)
	paired    = regexp.MustCompile(`^([^\\]|\\[^u]|\\u[^dD]|\\u[dD][0-7]|\\u[dD][89abAB]..\\u[dD][c-fC-F])*$`)
)

// Object has the members of a JSON object, in their order.
type Object []Member

// Member is a name, without escapes, and the JSON of a value.
type Member struct{ Name, Value []byte }

var errNotObject = errors.New("not an object")

// ReadObject reads a document that is one object. It accepts what encoding/json accepts,
// including invalid UTF-8, lone surrogates and duplicate members. The document may nest one
// level deeper than in encoding/json. The object shares the document's memory.
func ReadObject(doc []byte) (Object, error) {
	sc := Scanner{Data: doc}
	o, ok := sc.members()
	if ok && sc.Peek() == 0 && sc.Pos == len(doc) {
		return o, nil
	}
	return nil, cmp.Or(json.Unmarshal(doc, new(json.RawMessage)), errNotObject) // encoding/json says what is wrong
}

// members reads an object in one pass. It does not need Check: it calls json.Valid only
// for strings with escapes and for values that are not strings. Checking the whole
// document first would take four times as long.
func (sc *Scanner) members() (o Object, ok bool) {
	if sc.Peek() != '{' {
		return nil, false
	}
	o = make(Object, 0, min(8, bytes.Count(sc.Data, []byte(":")))) // at most one member for each colon
	for sc.Pos++; len(o) > 0 || sc.Peek() != '}'; sc.Pos++ {
		quoted, isPlain := sc.value()
		if !isPlain && !json.Valid(quoted) || quoted[0] != '"' || sc.Peek() != ':' {
			return nil, false
		}
		sc.Pos++
		name := quoted[1 : len(quoted)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			unescaped, _ := String(quoted)
			name = []byte(unescaped)
		}
		value, isPlain := sc.value()
		if !isPlain && !json.Valid(value) {
			return nil, false
		}
		o = append(o, Member{name, value})
		if next := sc.Peek(); next == '}' {
			break
		} else if next != ',' {
			return nil, false
		}
	}
	sc.Pos++
	return o, true
}

// Get returns the JSON of the member with exactly that name; nil if it is missing. If the
// member appears twice, the error is a DuplicateError, because nobody could know which of
// the two counts.
func (o Object) Get(name string) (value []byte, err error) {
	for _, m := range o {
		if string(m.Name) != name {
			continue
		}
		if value != nil {
			return nil, DuplicateError(name)
		}
		value = m.Value
	}
	return value, nil
}

// String decodes a JSON string as encoding/json does: invalid UTF-8 and lone surrogates
// become U+FFFD. It reports false if the value is not a string. The result shares no memory
// with the value.
func String(value []byte) (s string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value) {
		return string(value[1 : len(value)-1]), true
	}
	var unescaped string // decoding into s would move s to the heap in every call
	err := json.Unmarshal(value, &unescaped)
	return unescaped, err == nil
}

// Encode encodes a value as JSON. It does not escape <, > and &: the JSON is not embedded
// in HTML, and a text of the longest length stays short.
func Encode(value any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
