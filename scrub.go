package agentmessaging

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scrubber takes the secrets of a call out of what the other end, or a
// transport, put into its words. A call makes one as soon as it has such words to
// show, for its own goroutine.
type scrubber struct{ secrets []hidden }

// hidden is a secret and, as soon as they are needed, the spellings in which it
// comes back.
type hidden struct {
	plain string
	forms []string
}

const redacted = "[redacted]"

// minSecret is the length below which a secret is not searched for: replacing
// "a" everywhere would destroy the message and hide nothing.
const minSecret = 6

// newScrubber puts the longest secret first, since it may hold a shorter one,
// whose replacement would leave the rest of it to be seen.
func newScrubber(secrets ...hidden) *scrubber {
	slices.SortFunc(secrets, func(a, b hidden) int { return len(b.plain) - len(a.plain) })
	return &scrubber{secrets}
}

func (s *scrubber) text(text string) string {
	for i := range s.secrets {
		text = s.secrets[i].outOf(text)
	}
	return text
}

// outOf replaces all spellings of the secret. None is shorter than the secret:
// a long message is not even spelled for a short text.
func (h *hidden) outOf(text string) string {
	if len(h.plain) < minSecret || len(text) < len(h.plain) {
		return text
	}
	if h.forms == nil {
		h.forms = formsOf(h.plain)
	}
	for _, form := range h.forms {
		text = strings.ReplaceAll(text, form, redacted)
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
		base64.RawStdEncoding.EncodeToString([]byte(secret)),
		base64.RawURLEncoding.EncodeToString([]byte(secret)),
	} {
		if !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	return forms
}

// raw scrubs JSON. It is decoded first, since its escapes can spell a secret
// in more ways than can be listed; JSON without secrets stays byte for byte.
func (s *scrubber) raw(raw json.RawMessage) json.RawMessage {
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
func (s *scrubber) value(value any) any {
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

func (s *scrubber) header(header http.Header) http.Header {
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
func (s *scrubber) error(err error, others ...error) error {
	causes := []error{err}
	for _, other := range others {
		if other != nil && !errors.Is(err, other) {
			causes = append(causes, other)
		}
	}
	return scrubbedError{s.text(err.Error()), causes}
}

// scrub returns the call's scrubber.
func (c *call) scrub() *scrubber {
	if c.scrubber == nil {
		c.scrubber = newScrubber(c.client.secret(), hidden{plain: c.secrets[0]}, hidden{plain: c.secrets[1]})
	}
	return c.scrubber
}

// scrubbed is err without the secrets of the call, and with the others in
// reach; nil stays nil.
func (c *call) scrubbed(err error, others ...error) error {
	if err == nil {
		return nil
	}
	return c.scrub().error(err, others...)
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
