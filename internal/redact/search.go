package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

const (
	// minSecret is the length in bytes below which a secret is not searched for:
	// to replace "a" everywhere would destroy the text and hide nothing.
	minSecret = 6
	// An echo may be cut short. So many bytes from the beginning of a key give it
	// away, and in base64 so many letters of a key, or of what a person wrote.
	minKey         = 8
	minKeyBase64   = 10
	minWordsBase64 = 32
	// maxLayers is how many escapes inside one another are taken off.
	maxLayers = 4
)

// spelling is a secret, folded, as it is or in base64.
type spelling struct {
	text   []byte
	least  int // so many of them, from the first on, are enough
	base64 bool
}

// spellings are the secret as it is, and its letters in base64, which depend on
// how many bytes of a group of three come before it. Those that other bytes have a
// part in, at either end, are left out.
func spellings(secret string, least, leastBase64 int) []spelling {
	if len(secret) < minSecret {
		return nil
	}
	found := []spelling{{fold([]byte(secret)), min(least, len(secret)), false}}
	for before := range 3 {
		encoded := base64.RawStdEncoding.AppendEncode(nil, append(make([]byte, before, before+len(secret)), secret...))
		encoded = encoded[(before*8+5)/6 : (before+len(secret))*8/6]
		found = append(found, spelling{fold(encoded), min(leastBase64, len(encoded)), true})
	}
	return found
}

// fold makes, in place, one letter of those that become one another: net/http
// changes the case of header names, "+" is a space in a query, and "-" and "_" are
// + and / in the base64 of URLs.
func fold(text []byte) []byte {
	for i, c := range text {
		switch {
		case 'A' <= c && c <= 'Z':
			text[i] += 'a' - 'A'
		case c <= ' ' || c == '+' || c == '-':
			text[i] = ' '
		case c == '_':
			text[i] = '/'
		}
	}
	return text
}

// hide replaces secrets, cut short or not. Where escapes are, a part of one may go
// on behind an escape, and one that shows only without them has no place in the
// text: then all of the text is replaced.
func hide(text string, secrets []spelling) string {
	var room [128]byte
	folded, escaped := fold(append(room[:0], text...)), strings.ContainsAny(text, `%\&`)
	for _, s := range secrets {
		part := s.text[:s.least]
		if escaped {
			part = s.text
		}
		if bytes.Contains(folded, part) {
			text = s.replace(text, folded, part)
			folded = fold([]byte(text))
		}
	}
	for layer := 0; escaped && layer <= maxLayers; layer++ {
		for _, s := range secrets {
			if bytes.Contains(folded, s.text[:s.least]) {
				return Redacted
			}
		}
		size := len(folded)
		folded = fold([]byte(escape.ReplaceAllStringFunc(string(folded), unescape)))
		escaped = len(folded) < size // another layer may be left
	}
	return text
}

// replace replaces the spelling where a part of it is. In base64 it replaces all
// letters that stand together, since more of them may be of the secret.
func (s spelling) replace(text string, folded, part []byte) string {
	var shown strings.Builder
	for {
		before, after, found := bytes.Cut(folded, part)
		if !found {
			return shown.String() + text
		}
		begin, end := len(before), len(folded)-len(after)
		for end < len(folded) && end-begin < len(s.text) && folded[end] == s.text[end-begin] {
			end++
		}
		if s.base64 {
			begin = len(strings.TrimRight(text[:begin], base64Letters))
			end = len(text) - len(strings.TrimLeft(text[end:], base64Letters))
		}
		shown.WriteString(text[:begin] + Redacted)
		text, folded = text[end:], folded[end:]
	}
}

const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"

// escape matches the escapes of URLs, of JSON and of HTML, and \x of Go, folded.
var escape = regexp.MustCompile(`%[0-9a-f]{2}|\\x[0-9a-f]{2}|\\ud[89ab]..\\ud[c-f]..|\\u[0-9a-f]{4}|\\["\\/nrt]|&(?:amp|lt|gt|quot|apos);|&#[0-9]{1,7};|&#x[0-9a-f]{1,6};`)

// named are the names that keys and JSON need in HTML. Package html, which knows
// all, would add 80 KiB to every program.
var named = map[string]string{"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": `"`, "&apos;": "'"}

func unescape(escape string) string {
	if text, ok := named[escape]; ok {
		return text
	}
	if escape[0] == '\\' && escape[1] != 'x' {
		var text string
		_ = json.Unmarshal([]byte(`"`+escape+`"`), &text) // escape matches valid ones only
		return text
	}
	base := 16
	if escape[0] == '&' && escape[2] != 'x' {
		base = 10
	}
	code, _ := strconv.ParseUint(strings.Trim(escape, `%\x&#;`), base, 31) // escape matches valid ones only
	if escape[0] == '&' {
		return string(rune(code))
	}
	return string([]byte{byte(code)})
}
