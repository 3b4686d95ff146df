// Package redact takes secrets out of what the service, a proxy or a transport
// said. It imports nothing of the module.
package redact

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// Redactor hides what a call has sent. The zero value hides nothing.
type Redactor struct {
	apiKey, providerKey, words string
	keys                       []spelling
}

// New returns a Redactor that hides an API key.
func New(apiKey string) Redactor { return Redactor{apiKey: apiKey, keys: keySpellings(apiKey)} }

// With returns a Redactor that also hides the provider key and the words of a
// person that a call has sent. Either may be empty.
func (r Redactor) With(providerKey, words string) Redactor {
	r.providerKey, r.words = providerKey, words
	if providerKey != "" {
		r.keys = longestFirst(r.keys, keySpellings(providerKey))
	}
	return r
}

// Text hides keys and words in a sentence, or in whatever else a person may read.
func (r Redactor) Text(text string) string { return hide(text, r.secrets()) }

func (r Redactor) secrets() []spelling {
	return longestFirst(r.keys, spellings(r.words, len(r.words), minWordsBase64))
}

// longestFirst, since a secret may hold another one, whose replacement would leave
// the rest of it to be seen.
func longestFirst(some, others []spelling) []spelling {
	all := slices.Concat(some, others)
	for i := range all { // a dozen: slices.SortFunc would add 5 KiB to every program
		for j := i; j > 0 && len(all[j].text) > len(all[j-1].text); j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	return all
}

// Identifier hides keys in a name that programs switch on, such as a limit_key. A
// word of a message that is a part of it, such as "minute", stays. What does not
// look like an identifier is a Text.
func (r Redactor) Identifier(name string) string {
	if len(name) > maxIdentifier || strings.ContainsFunc(name, notInIdentifiers) {
		return r.Text(name)
	}
	return hide(name, r.keys)
}

const maxIdentifier = 128

func notInIdentifiers(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '-' <= c && c <= ':' || c == '_' || c == '=' || c == '+')
}

func keySpellings(key string) []spelling { return spellings(key, minKey, minKeyBase64) }

// JSON hides secrets in a JSON value. Where that leaves no JSON, as in a number, it
// hides all of the value.
func (r Redactor) JSON(value json.RawMessage) json.RawMessage {
	text := r.Text(string(value))
	if !json.Valid([]byte(text)) {
		text = `"` + Redacted + `"`
	}
	return json.RawMessage(text)
}

// Header returns a copy without secrets in names and values.
func (r Redactor) Header(header http.Header) http.Header {
	shown, secrets := header.Clone(), r.secrets()
	for name, values := range shown {
		for i := range values {
			values[i] = hide(values[i], secrets)
		}
		if clean := r.Identifier(name); clean != name {
			delete(shown, name)
			shown[clean] = values
		}
	}
	return shown
}
