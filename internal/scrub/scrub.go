// Package scrub takes secrets out of what others have said, and makes foreign
// text fit to be shown. It imports nothing of the module.
package scrub

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scrubber takes the secrets of a call out of what the other end, or a
// transport, put into its words. The zero value hides nothing.
type Scrubber struct{ secrets [maxSecrets]string }

// maxSecrets is how many secrets a call has at most: its API key and two more.
const maxSecrets = 3

// Redacted replaces a secret.
const Redacted = "[redacted]"

// minSecret is the length below which a secret is not searched for: replacing
// "a" everywhere would destroy the message and hide nothing.
const minSecret = 6

// New puts the longest secret first, since it may hold a shorter one,
// whose replacement would leave the rest of it to be seen.
func New(secrets ...string) (s Scrubber) {
	for i, secret := range secrets {
		for ; i > 0 && len(s.secrets[i-1]) < len(secret); i-- {
			s.secrets[i] = s.secrets[i-1]
		}
		s.secrets[i] = secret
	}
	return s
}

// Text is text without the secrets.
func (s Scrubber) Text(text string) string {
	return s.unpacked(s.plain(text))
}

// plain replaces the spellings of each secret.
func (s Scrubber) plain(text string) string {
	for _, secret := range s.secrets {
		text = without(text, secret)
	}
	return text
}

// formsOf are the spellings of a secret, each once and itself first.
func formsOf(secret string) []string {
	quoted, _ := json.Marshal(secret)
	forms := []string{secret}
	for _, form := range []string{
		strings.Trim(string(quoted), `"`),
		url.QueryEscape(secret),
		url.PathEscape(secret),
	} {
		if !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	return forms
}

// Raw scrubs JSON. It is decoded first, since its escapes can spell a secret
// in more ways than can be listed; JSON without secrets stays byte for byte.
func (s Scrubber) Raw(raw json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return json.RawMessage(`"` + Redacted + `"`)
	}
	scrubbed := s.value(value)
	if reflect.DeepEqual(value, scrubbed) {
		return raw
	}
	encoded, _ := json.Marshal(scrubbed)
	return encoded
}

// value scrubs decoded JSON into a copy.
func (s Scrubber) value(value any) any {
	switch v := value.(type) {
	case string:
		return s.Text(v)
	case json.Number:
		if s.Text(v.String()) != v.String() {
			return Redacted
		}
	case []any:
		scrubbed := make([]any, len(v))
		for i := range v {
			scrubbed[i] = s.value(v[i])
		}
		return scrubbed
	case map[string]any:
		scrubbed := make(map[string]any, len(v))
		for name, member := range v {
			scrubbed[s.Text(name)] = s.value(member)
		}
		return scrubbed
	}
	return value
}

// Header scrubs the values in place.
func (s Scrubber) Header(header http.Header) {
	for _, values := range header {
		for i := range values {
			values[i] = s.Text(values[i])
		}
	}
}

// Name makes a foreign name, such as a limit_key, fit to be kept and shown.
func Name(text string) string { return Line(text, maxName) }

const maxName = 64

// Line makes foreign text fit for a log: valid UTF-8, no line breaks or
// other control characters, at most limit bytes.
func Line(text string, limit int) string {
	if len(text) > 4*limit {
		text = text[:4*limit]
	}
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	cut := limit - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + ellipsis
}
