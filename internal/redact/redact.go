// Package redact takes secrets out of what the service, a proxy or a transport
// said. It imports nothing of the module.
package redact

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Redactor takes the secrets of a call out of what the other end, or a
// transport, put into its words. The zero value hides nothing.
type Redactor struct{ secrets [maxSecrets]string }

// maxSecrets is how many secrets a call has at most: its API key and two more.
const maxSecrets = 3

// Redacted replaces a secret.
const Redacted = "[redacted]"

// minSecret is the length below which a secret is not searched for: replacing
// "a" everywhere would destroy the message and hide nothing.
const minSecret = 6

// New puts the longest secret first, since it may hold a shorter one,
// whose replacement would leave the rest of it to be seen.
func New(secrets ...string) (s Redactor) {
	for i, secret := range secrets {
		for ; i > 0 && len(s.secrets[i-1]) < len(secret); i-- {
			s.secrets[i] = s.secrets[i-1]
		}
		s.secrets[i] = secret
	}
	return s
}

// Text is text without the secrets.
func (s Redactor) Text(text string) string {
	return s.unpacked(s.plain(text))
}

// plain replaces the spellings of each secret.
func (s Redactor) plain(text string) string {
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

// JSON redacts JSON. It is decoded first, since its escapes can spell a secret
// in more ways than can be listed; JSON without secrets stays byte for byte.
func (s Redactor) JSON(raw json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return json.RawMessage(`"` + Redacted + `"`)
	}
	redacted := s.value(value)
	if reflect.DeepEqual(value, redacted) {
		return raw
	}
	encoded, _ := json.Marshal(redacted)
	return encoded
}

// value redacts decoded JSON into a copy.
func (s Redactor) value(value any) any {
	switch v := value.(type) {
	case string:
		return s.Text(v)
	case json.Number:
		if s.Text(v.String()) != v.String() {
			return Redacted
		}
	case []any:
		redacted := make([]any, len(v))
		for i := range v {
			redacted[i] = s.value(v[i])
		}
		return redacted
	case map[string]any:
		redacted := make(map[string]any, len(v))
		for name, member := range v {
			redacted[s.Text(name)] = s.value(member)
		}
		return redacted
	}
	return value
}

// Header redacts the values in place.
func (s Redactor) Header(header http.Header) {
	for _, values := range header {
		for i := range values {
			values[i] = s.Text(values[i])
		}
	}
}
