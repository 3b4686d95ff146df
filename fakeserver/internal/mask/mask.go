// Package mask hides keys and people's words in what the fake keeps, logs and
// prints of a call. Its input may be anything: whole JSON, cut JSON, or none.
package mask

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Key replaces a key.
const Key = "[redacted]"

// Withheld replaces a key, or what may be one, inside a sentence.
const Withheld = "…"

// MaxHeaderNames and MaxHeaderValue, in bytes, bound the header of a record: a
// call may bring a megabyte.
const (
	MaxHeaderNames = 100
	MaxHeaderValue = 4 << 10
)

// minSecret is the length in bytes of the shortest secret that is searched for.
// A shorter one would be found everywhere.
const minSecret = 8

// Text replaces the words of a person by their length.
func Text(s string) string {
	return "[redacted, " + strconv.Itoa(utf8.RuneCountInString(s)) + " characters]"
}

// Clip cuts a text to at most limit bytes, between characters. The result does
// not hold on to the memory of a longer text.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.Clone(text[:limit])
}

// Secrets are the keys of one call: the token of its header and the provider
// keys of its body. The longest come first, since one may contain another.
type Secrets []string

// SecretsOf finds the secrets of a call: its token, and the strings below each
// member of the body that is named api_key, however deep.
func SecretsOf(token string, body []byte) (found Secrets) {
	if len(token) >= minSecret {
		found = Secrets{token}
	}
	if !mayNameKey(body) {
		return found
	}
	walk(body, func(p *piece) {
		if secret := p.text(); p.inKey && !p.isName && len(secret) >= minSecret {
			found = append(found, secret)
		}
	})
	slices.SortStableFunc(found, func(a, b string) int { return len(b) - len(a) })
	return found
}

// mayNameKey reports whether a body may have a member named api_key, without
// reading it: an escaped name has a backslash.
func mayNameKey(body []byte) bool {
	return bytes.IndexByte(body, '\\') >= 0 || bytes.Contains(body, []byte("i_")) || bytes.Contains(body, []byte("I_"))
}

// Clean removes the secrets from a text. They get into a path when the arguments
// of a client are mixed up, and into a message when somebody pastes them.
func (s Secrets) Clean(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, Key)
	}
	return text
}

// cleanCut is Clean for a text that was cut at its end: it also removes the
// beginning of a secret there.
func (s Secrets) cleanCut(text string) string {
	text = s.Clean(text)
	for _, secret := range s {
		for n := min(len(secret)-1, len(text)); n >= minSecret; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				return text[:len(text)-n] + Key
			}
		}
	}
	return text
}

// CleanPath removes the secrets from an escaped path, even if they are escaped
// themselves.
func (s Secrets) CleanPath(escaped string) string {
	escaped = s.Clean(escaped)
	path, err := url.PathUnescape(escaped)
	if err != nil || s.Clean(path) == path {
		return escaped
	}
	pieces := strings.Split(s.Clean(path), Key)
	for i, piece := range pieces {
		pieces[i] = (&url.URL{Path: piece}).EscapedPath()
	}
	return strings.Join(pieces, Key)
}

// CleanQuery encodes a query without the secrets, and without values that look
// like a secret or are named like one.
func (s Secrets) CleanQuery(values url.Values) string {
	for name, all := range values {
		for i, v := range all {
			if looksSecret(v) || namesSecret(name) {
				all[i] = Key
			}
		}
	}
	return s.Clean(values.Encode())
}

// CleanHeader copies a header without the values of headers that are named like
// a secret, and without the secrets anywhere.
func (s Secrets) CleanHeader(h http.Header) http.Header {
	if h == nil {
		return nil
	}
	if len(h) > MaxHeaderNames {
		h = firstNames(h)
	}
	shown := make(http.Header, len(h))
	values := make([]string, 0, len(h)) // of all names in one slice: few headers have two values
	for name, sent := range h {
		from := len(values)
		switch {
		case s.inName(name):
			name, values = Key, append(values, Key)
		case headerNamesSecret(name):
			values = append(values, Key)
		default:
			for _, v := range sent {
				values = append(values, Clip(s.Clean(v), MaxHeaderValue))
			}
		}
		shown[name] = values[from:len(values):len(values)]
	}
	return shown
}

func firstNames(h http.Header) http.Header {
	first := make(http.Header, MaxHeaderNames)
	for _, name := range slices.Sorted(maps.Keys(h))[:MaxHeaderNames] {
		first[name] = h[name]
	}
	return first
}

// inName reports whether a header's name holds a secret, whose case net/http has
// changed.
func (s Secrets) inName(name string) bool {
	return slices.ContainsFunc(s, func(secret string) bool {
		return len(name) >= len(secret) && strings.Contains(strings.ToLower(name), strings.ToLower(secret))
	})
}

// usualNames are the headers that almost every call has, read once.
var usualNames = map[string]bool{
	"Accept-Encoding": false, "Authorization": true, "Content-Length": false, "Content-Type": false, "User-Agent": false,
}

func headerNamesSecret(name string) bool {
	secret, usual := usualNames[name]
	return secret || !usual && namesSecret(name)
}

// namesSecret reports whether the name of a header, a member or a query value
// says that the value is a secret.
func namesSecret(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(lower, part) })
}

var secretNames = []string{"authorization", "cookie", "key", "token", "secret"}

// secretForms are what keys look like: known beginnings, or long runs of letters
// and digits.
var secretForms = regexp.MustCompile(`(?i)\b(sk|pk|amk|key|bearer)[-_ ][a-z0-9]|[a-z0-9_-]{24,}`)

func looksSecret(text string) bool {
	return slices.ContainsFunc(secretForms.FindAllString(text, -1), func(found string) bool {
		return len(found) < 24 || strings.ContainsAny(found, "0123456789")
	})
}

// MayBeKey reports whether a name is long and has digits, as keys do.
func MayBeKey(name string) bool {
	return len(name) >= minSecret && strings.ContainsAny(name, "0123456789")
}
