// Package mask hides keys and people's words in what the fake keeps, logs and
// prints of a call. Its input may be anything: whole JSON, cut JSON, or none.
package mask

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
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
	// Few bodies can have a member named api_key. An escaped name has a backslash.
	if bytes.IndexByte(body, '\\') < 0 && !bytes.Contains(body, []byte("i_")) && !bytes.Contains(body, []byte("I_")) {
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

// Clean removes the secrets from a text. They get into a path when the arguments
// of a client are mixed up, and into a message when somebody pastes them.
func (s Secrets) Clean(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, Key)
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
	shown := make(http.Header, len(h))
	values := make([]string, 0, len(h)) // of all names in one slice: few headers have two values
	for name, sent := range h {
		if len(shown) == MaxHeaderNames {
			break
		}
		from := len(values)
		switch {
		case slices.ContainsFunc(s, func(secret string) bool { // whose case net/http has changed
			return len(name) >= len(secret) && strings.Contains(strings.ToLower(name), strings.ToLower(secret))
		}):
			name, values = Key, append(values, Key)
		case namesSecret(name):
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

// AnswerHeader copies the header of an answer that a test gave, of one value each,
// without the names that were not sent. With words it shows only values that are a
// number, a date or a media type, and of others how long they are.
func AnswerHeader(h http.Header, words bool) http.Header {
	sent := http.Header{}
	for name, values := range h {
		switch {
		case len(values) == 0:
		case words && (name == "Retry-After" || name == "Content-Type") && !plainValues.MatchString(values[0]):
			sent[name] = []string{Text(values[0])}
		default:
			sent[name] = []string{values[0]}
		}
	}
	return sent
}

var plainValues = regexp.MustCompile(`^([-+.0-9eE]{1,24}|[A-Z][a-z]{2,8}, [ \w:-]{1,24}|(application|text|image)/[a-z+.-]{1,40}(; ?charset=[\w-]{1,12})?)$`)

// namesSecret reports whether the name of a header, a member or a query value
// says that the value is a secret.
func namesSecret(name string) bool {
	if secret, usual := usualNames[name]; usual {
		return secret
	}
	lower := strings.ToLower(name)
	return slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(lower, part) })
}

// usualNames are the headers that almost every call has, read once.
var usualNames = map[string]bool{
	"Accept-Encoding": false, "Authorization": true, "Content-Length": false, "Content-Type": false, "User-Agent": false,
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

// Body says what of a body, JSON or not, whole or cut, may be shown.
type Body struct {
	Secrets Secrets
	Texts   bool // show people's words: prompts, messages and replies
	// Foreign is set for a body that the service did not accept or did not make.
	// Then only the strings of members in Known are shown, and of others how long
	// they are; what looks like a key is never shown.
	Foreign bool
	Known   func(member string) bool
}

// Of returns the first n bytes of a body as they may be shown. Its structure and
// numbers stay. What is cut is read whole, so that a secret's beginning does not show.
func (b *Body) Of(body []byte, n int) string {
	var out strings.Builder
	out.Grow(len(body) + len(Key))
	at, end := 0, 0 // of what was written: in the body, and the end of the first n bytes in out
	write := func(to int, shown string) {
		if at < n {
			end = out.Len() + min(to, n) - at
		}
		out.Write(body[at:to])
		if out.WriteString(shown); to < n {
			end = out.Len()
		}
	}
	walk(body, func(p *piece) {
		if shown, changed := b.shown(p); changed {
			write(p.from, shown)
			at = p.to
		}
	})
	write(len(body), "")
	shown := b.Secrets.Clean(strings.ToValidUTF8(out.String(), "\ufffd"))
	if n < len(body) {
		shown = Clip(shown, end)
	}
	return shown
}

// shown is a piece as it may be shown; changed says that it differs.
func (b *Body) shown(p *piece) (shown string, changed bool) {
	var text string
	escaped := bytes.IndexByte(p.written, '\\') >= 0
	switch {
	case !p.quoted && !p.inKey && isLiteral(p.written):
		return "", false
	case p.inKey && !p.isName:
		text = Key
	case b.Foreign:
		text = b.foreign(p)
	case !p.isName && !b.Texts && p.depth == 1 && slices.ContainsFunc(wordMembers, func(words []byte) bool {
		return bytes.EqualFold(p.member, words) // a fake may accept other cases
	}):
		text = Text(p.text())
	case !escaped && !slices.ContainsFunc(b.Secrets, func(secret string) bool { return bytes.Contains(p.written, []byte(secret)) }):
		return "", false
	default:
		text = b.Secrets.Clean(p.text())
	}
	switch {
	case p.unreadable && text == p.text(): // an escape in it may hide a secret
		text = Text(text)
	case text == p.text():
		return "", false
	}
	if !p.quoted && !p.inKey {
		return text, true
	}
	quoted, _ := json.Marshal(text) // a string can always be written
	return string(quoted), true
}

// wordMembers are the members of documented bodies that hold a person's words, or
// the agent's.
var wordMembers = [][]byte{[]byte("text"), []byte("system_prompt"), []byte("reply_text")}

func (b *Body) foreign(p *piece) string {
	text := b.Secrets.Clean(p.text())
	switch {
	case p.isName && (looksSecret(text) || MayBeKey(text)):
		return Key
	case p.isName:
		return printable.Name(text)
	case p.quoted && namesSecret(string(p.member)) && !bytes.HasSuffix(bytes.ToLower(p.member), []byte("_ref")), looksSecret(text), text == Key:
		return Key
	case b.Texts, p.quoted && b.Known != nil && b.Known(string(p.member)):
		return text
	}
	return Text(text)
}

// maxNumber is the length of the longest number that is shown.
const maxNumber = 24

// isLiteral reports whether a word outside of strings is a number, true, false
// or null.
func isLiteral(word []byte) bool {
	_, err := strconv.ParseFloat(string(word), 64)
	return err == nil && len(word) <= maxNumber || slices.Contains([]string{"true", "false", "null"}, string(word))
}

// piece is a string of a body, or a word outside of strings.
type piece struct {
	written  []byte // with the quotes of a string
	from, to int    // where it is in the body
	quoted   bool   // a string, and not a word
	isName   bool   // the name of a member
	inKey    bool   // the value of a member named api_key, or inside such a value
	member   []byte // the name of the member whose value it is, or that it is inside of
	depth    int    // how many objects and arrays it is inside of
	read     string // what text returned
	isRead   bool

	unreadable bool // an escape is wrong, or the string does not end
}

// text is a string as it reads, and a word as it is. Of a string that is
// unreadable it is what was written.
func (p *piece) text() string {
	if p.isRead {
		return p.read
	}
	p.isRead = true
	p.read = strings.ToValidUTF8(string(p.written), "\ufffd")
	if !p.quoted {
		return p.read
	}
	p.read = strings.TrimSuffix(p.read[1:], `"`)
	if bytes.IndexByte(p.written, '\\') >= 0 {
		var read string
		if p.unreadable = json.Unmarshal(p.written, &read) != nil; !p.unreadable {
			p.read = read
		}
	}
	return p.read
}

var apiKey = []byte("api_key")

// walk calls visit with each piece of a body, in order. It reads anything: a
// string that has no end ends with the body.
func walk(body []byte, visit func(*piece)) {
	var at piece
	keyDepth := -1 // of the member named api_key that at is inside of
	for i := 0; i < len(body); {
		switch c := body[i]; c {
		case '{', '[':
			at.depth++
			i++
			continue
		case '}', ']':
			at.depth--
			i++
			continue
		case ' ', '\t', '\r', '\n', ':', ',':
			i++
			continue
		}
		at.from, at.quoted, at.isRead, at.unreadable = i, body[i] == '"', false, false
		at.to = endOf(body, i)
		at.written, i = body[at.from:at.to], at.to
		at.isName = at.quoted && bytes.HasPrefix(bytes.TrimLeft(body[i:], " \t\r\n"), []byte(":"))
		if keyDepth >= 0 && (at.depth < keyDepth || at.isName && at.depth == keyDepth) {
			keyDepth = -1
		}
		if at.isName {
			at.member = bytes.TrimSuffix(at.written[1:], []byte(`"`))
			if bytes.IndexByte(at.member, '\\') >= 0 {
				at.member = []byte(at.text())
			}
			if keyDepth < 0 && bytes.EqualFold(at.member, apiKey) {
				keyDepth = at.depth
			}
		}
		at.inKey = keyDepth >= 0
		visit(&at)
	}
}

// endOf is where the piece that begins at i ends.
func endOf(body []byte, i int) int {
	if body[i] != '"' {
		if n := bytes.IndexAny(body[i:], " \t\r\n{}[]:,\""); n >= 0 {
			return i + n
		}
		return len(body)
	}
	for i++; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(body)
}
