package agentmessaging

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scrubber takes the secrets of a call out of what the other end, or a
// transport, put into its words. It is made on the error path only.
type scrubber struct{ replacer *strings.Replacer }

const redacted = "[redacted]"

// minSecret is the length below which a secret is not searched for: replacing
// "a" everywhere would destroy the message and hide nothing.
const minSecret = 6

func newScrubber(secrets []string) scrubber {
	var pairs []string
	for _, secret := range secrets {
		if len(secret) < minSecret {
			continue
		}
		for _, form := range formsOf(secret) {
			pairs = append(pairs, form, redacted)
		}
	}
	return scrubber{strings.NewReplacer(pairs...)}
}

// formsOf are the spellings in which a secret comes back.
func formsOf(secret string) []string {
	quoted, _ := json.Marshal(secret)
	return []string{
		secret,
		strings.Trim(string(quoted), `"`),
		url.QueryEscape(secret),
		url.PathEscape(secret),
		base64.RawStdEncoding.EncodeToString([]byte(secret)),
		base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
}

func (s scrubber) text(text string) string { return s.replacer.Replace(text) }

// raw scrubs JSON. It is decoded first, since its escapes can spell a secret
// in more ways than can be listed; JSON without secrets stays byte for byte.
func (s scrubber) raw(raw json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return json.RawMessage(`"` + redacted + `"`)
	}
	scrubbed := s.value(value)
	if reflect.DeepEqual(value, scrubbed) {
		return raw
	}
	encoded, _ := json.Marshal(scrubbed)
	return encoded
}

// value scrubs decoded JSON into a copy.
func (s scrubber) value(value any) any {
	switch v := value.(type) {
	case string:
		return s.text(v)
	case json.Number:
		if s.text(v.String()) != v.String() {
			return redacted
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
			scrubbed[s.text(name)] = s.value(member)
		}
		return scrubbed
	}
	return value
}

func (s scrubber) header(header http.Header) http.Header {
	clone := header.Clone()
	for _, values := range clone {
		for i := range values {
			values[i] = s.text(values[i])
		}
	}
	return clone
}

// error scrubs the text of err and keeps it, and what else was the cause,
// reachable for errors.Is and errors.As.
func (s scrubber) error(err error, others ...error) error {
	causes := []error{err}
	for _, other := range others {
		if other != nil && !errors.Is(err, other) {
			causes = append(causes, other)
		}
	}
	return scrubbedError{s.text(err.Error()), causes}
}

// scrubbed is err without the secrets of the call, and with the others in
// reach; nil stays nil.
func (c *call) scrubbed(err error, others ...error) error {
	if err == nil {
		return nil
	}
	return c.client.redact(c.secrets[:]...).error(err, others...)
}

type scrubbedError struct {
	text   string
	causes []error
}

func (e scrubbedError) Error() string    { return e.text }
func (e scrubbedError) GoString() string { return e.text }
func (e scrubbedError) Unwrap() []error  { return e.causes }

// oneLine makes foreign text fit for a log: valid UTF-8, no line breaks or
// other control characters, at most limit bytes.
func oneLine(text string, limit int) string {
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
