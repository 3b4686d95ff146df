package fakeserver

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// scanner steps through a JSON document. It checks no syntax: json.Valid has
// accepted the document.
type scanner struct {
	data       []byte
	pos        int
	hidden     []span
	duplicates bool // a member may be there twice
	torn       bool // the last string that was read holds half a surrogate pair
}

// span is a part of the document that Calls replaces.
type span struct {
	from, to int
	instead  string
}

// peek returns the first byte of the next value.
func (sc *scanner) peek() byte {
	sc.space()
	return sc.data[sc.pos]
}

func (sc *scanner) space() {
	for sc.pos < len(sc.data) && strings.IndexByte(" \t\r\n", sc.data[sc.pos]) >= 0 {
		sc.pos++
	}
}

// enter steps over the bracket that opens an object or an array.
func (sc *scanner) enter() {
	sc.space()
	sc.pos++
}

// more reports whether another member or element follows, and steps to it. At
// the end it steps over the closing bracket.
func (sc *scanner) more() bool {
	switch sc.peek() {
	case '}', ']':
		sc.pos++
		return false
	case ',':
		sc.pos++
	}
	return true
}

// name reads a member's name and the colon behind it.
func (sc *scanner) name() string {
	name := sc.text()
	sc.space()
	sc.pos++
	return name
}

// text reads a string. The result shares no memory with the document, so that
// keeping a name never keeps a key beside it.
func (sc *scanner) text() string {
	sc.space()
	from := sc.pos
	for sc.pos++; sc.data[sc.pos] != '"'; sc.pos++ {
		if sc.data[sc.pos] == '\\' {
			sc.pos++
		}
	}
	sc.pos++
	quoted := sc.data[from:sc.pos]
	sc.torn = false
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // json.Valid has accepted it
	sc.torn = isTorn(quoted)
	return s
}

// scalar steps over a number, true, false or null.
func (sc *scanner) scalar() {
	for sc.pos < len(sc.data) && strings.IndexByte(" \t\r\n,]}", sc.data[sc.pos]) < 0 {
		sc.pos++
	}
}

// free steps over any value. Objects in it may have any members, but none
// twice: nobody could know which of the two counts.
func (sc *scanner) free(path string) *failure {
	switch sc.peek() {
	case '{':
		return sc.freeObject(path)
	case '[':
		for sc.enter(); sc.more(); {
			if f := sc.free(path); f != nil {
				return f
			}
		}
	case '"':
		if sc.text(); sc.torn {
			return badRequest(path, halfPair)
		}
	default:
		sc.scalar()
	}
	return nil
}

func (sc *scanner) freeObject(path string) *failure {
	seen := map[string]bool{}
	for sc.enter(); sc.more(); {
		name := sc.name()
		switch {
		case sc.torn:
			return badRequest(path, halfPair)
		case seen[name] && !sc.duplicates:
			return badRequest(path, "member "+memberName(name)+" stands twice")
		}
		seen[name] = true
		if f := sc.freeMember(name, path); f != nil {
			return f
		}
	}
	return nil
}

// freeMember steps over the value of a member.
func (sc *scanner) freeMember(name, path string) *failure {
	sc.space()
	from := sc.pos
	f := sc.free(path)
	if f == nil && isKeyName(name) {
		sc.hide(from, `"`+redactedKey+`"`)
	}
	return f
}

// hide marks everything since from, and drops the marks inside it.
func (sc *scanner) hide(from int, instead string) {
	n := len(sc.hidden)
	for n > 0 && sc.hidden[n-1].from >= from {
		n--
	}
	sc.hidden = append(sc.hidden[:n], span{from, sc.pos, instead})
}

// shown is the document with its hidden spans replaced.
func (sc *scanner) shown() string {
	size := len(sc.data)
	for _, h := range sc.hidden {
		size += len(h.instead) - (h.to - h.from)
	}
	var b strings.Builder
	b.Grow(size) // exactly, since the record keeps it
	at := 0
	for _, h := range sc.hidden {
		b.Write(sc.data[at:h.from])
		b.WriteString(h.instead)
		at = h.to
	}
	b.Write(sc.data[at:])
	return b.String()
}

// halfPair is the reason for refusing half a surrogate pair. The decoder would
// replace it in silence.
const halfPair = "must be valid Unicode; half a surrogate pair is none"

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
	unit, _ := strconv.ParseUint(string(s[1:5]), 16, 16) // json.Valid has accepted it
	return rune(unit)
}
