// Package scrub takes secrets out of what others have said, and makes foreign
// text fit to be shown. It imports nothing of the module.
package scrub

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
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

// unpacked replaces what hides a secret as base64, in either alphabet: each run
// of letters that may hold one is decoded and looked into.
func (s Scrubber) unpacked(text string) string {
	for begin := 0; begin < len(text); {
		end := begin
		for end < len(text) && isBase64(text[end]) {
			end++
		}
		if base64.RawStdEncoding.DecodedLen(end-begin) >= minSecret && s.hides(text[begin:end]) {
			text = text[:begin] + Redacted + strings.TrimLeft(text[end:], "=")
			end = begin + len(Redacted)
		}
		begin = end + 1
	}
	return text
}

// hides looks into a run from each of its first four bytes, since other letters
// may precede the base64 without a gap.
func (s Scrubber) hides(run string) bool {
	if !slices.ContainsFunc(s.secrets[:], func(secret string) bool { return mayBegin(secret, run) }) {
		return false
	}
	var room [2][64]byte // enough for the ids that most runs are
	packed := append(room[0][:0], run...)
	for i, c := range packed { // of either alphabet
		switch c {
		case '-':
			packed[i] = '+'
		case '_':
			packed[i] = '/'
		}
	}
	for skip := range min(4, len(packed)) {
		rest := packed[skip:]
		if len(rest)%4 == 1 {
			rest = rest[:len(rest)-1]
		}
		decoded, _ := base64.RawStdEncoding.AppendDecode(room[1][:0], rest)
		if text := string(decoded); s.plain(text) != text {
			return true
		}
	}
	return false
}

// mayBegin reports that a run may hold how the secret begins. A byte may begin at
// every second bit of a run, since a letter has six bits and a byte eight.
func mayBegin(secret, run string) bool {
	if len(secret) < minSecret || base64.RawStdEncoding.DecodedLen(len(run)) < len(secret) {
		return false
	}
	var head, mask, bits uint64
	for _, c := range []byte(startOf(secret)) {
		head, mask = head<<8|uint64(c), mask<<8|0xff
	}
	for i := range len(run) {
		bits = bits<<6 | uint64(sextets[run[i]])
		if bits&mask == head || bits>>2&mask == head || bits>>4&mask == head {
			return true
		}
	}
	return false
}

// sextets are the bits that a letter of base64 stands for, in either alphabet; of
// other bytes more than these.
var sextets = func() (of [256]byte) {
	for c := range of {
		of[c] = 0xff
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		of[c] = byte(i)
	}
	of['-'], of['_'] = of['+'], of['/']
	return of
}()

func isBase64(c byte) bool { return sextets[c] < 64 }

// without replaces all spellings of a secret. No spelling is shorter than the
// secret, and each but the secret itself has an escape. So most texts need no search.
func without(text, secret string) string {
	if len(secret) < minSecret || len(text) < len(secret) || !strings.Contains(text, startOf(secret)) {
		return text
	}
	if !strings.ContainsAny(text, `\%+`) {
		return strings.ReplaceAll(text, secret, Redacted)
	}
	for _, form := range formsOf(secret) {
		text = strings.ReplaceAll(text, form, Redacted)
	}
	return text
}

// startOf is how every spelling begins: with letters and digits, which are never
// escaped.
func startOf(secret string) string {
	end := 0
	for end < min(len(secret), maxStart) && isBase64(secret[end]) && secret[end] != '+' && secret[end] != '/' {
		end++
	}
	return secret[:end]
}

// maxStart is how many bytes fit into 64 bits wherever mayBegin finds them.
const maxStart = 7

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

// Error scrubs err, and what else was the cause, so that errors.Is finds all of
// it, and errors.As and Unwrap what holds no secret. nil stays nil.
func (s Scrubber) Error(err error, others ...error) error {
	if err == nil {
		return nil
	}
	causes := []error{s.clean(err)}
	for _, other := range others {
		if other != nil && !errors.Is(err, other) {
			causes = append(causes, s.clean(other))
		}
	}
	return s.scrubbed(err, causes)
}

func (s Scrubber) scrubbed(err error, causes []error) scrubbedError {
	return scrubbedError{s.Text(err.Error()), causes, func(target error) bool { return errors.Is(err, target) }}
}

// clean is err itself where neither it nor what it wraps shows a secret, and a
// copy of its text otherwise.
func (s Scrubber) clean(err error) error {
	clean := true
	for _, shown := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		clean = clean && s.Text(shown) == shown
	}
	var causes []error
	for _, inner := range unwrap(err) {
		causes = append(causes, s.clean(inner))
		_, tainted := causes[len(causes)-1].(scrubbedError)
		clean = clean && !tainted
	}
	if clean {
		return err
	}
	return s.scrubbed(err, causes)
}

// unwrap returns what err wraps.
func unwrap(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	if inner := errors.Unwrap(err); inner != nil {
		return []error{inner}
	}
	return nil
}

type scrubbedError struct {
	text   string
	causes []error
	is     func(error) bool // of the error itself
}

func (e scrubbedError) Error() string        { return e.text }
func (e scrubbedError) GoString() string     { return e.text }
func (e scrubbedError) Unwrap() []error      { return e.causes }
func (e scrubbedError) Is(target error) bool { return e.is(target) }

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
