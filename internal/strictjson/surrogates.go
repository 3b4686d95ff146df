package strictjson

import (
	"strconv"
	"unicode"
	"unicode/utf16"
)

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
