package fakeserver

import (
	"strconv"
	"unicode"
	"unicode/utf16"
)

// halfPair is why a string is refused that Go, and other languages, would make
// another of.
const halfPair = "must be valid Unicode; half a surrogate pair is none"

// isTorn reports whether one of the escapes in a quoted string is half a
// surrogate pair.
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

// escaped16 is the code unit of an escape, of which s is what follows the
// backslash; 0 where it is another kind of escape.
func escaped16(s []byte) rune {
	if s[0] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(string(s[1:5]), 16, 16) // json.Valid has accepted it
	return rune(unit)
}
