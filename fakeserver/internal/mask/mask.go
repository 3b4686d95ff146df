// Package mask hides keys, passwords and people's words in what the fake keeps, logs and
// prints of a call. A JSON body keeps its structure, its numbers and the other strings.
// Any other body cannot be searched for escaped keys, so it is hidden whole.
//
// SecretsOf finds the keys of one call: its token, and what its body has under api_key.
// Secrets.Clean and Secrets.CleanHeader remove those from the other parts of the call,
// and Body.Show masks a body. The package knows nothing of endpoints; package wire says
// which bodies were checked.
package mask

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// Key replaces a key. The page of agentmessaging-fake looks for it, to put a variable
// of the shell there in a call that is copied as curl.
const Key = "[redacted]"

// Withheld replaces a key, or what may be one, inside a sentence.
const Withheld = "…"

// maxHeaderNames and maxHeaderValue, in bytes, bound the header of a record: a
// call may bring a megabyte.
const (
	maxHeaderNames = 100
	maxHeaderValue = 4 << 10
)

// minSecret is the length in bytes of the shortest secret that is searched for.
// A shorter one would be found everywhere.
const minSecret = 8

// Text replaces the words of a person by their length, in code points as interface 8.4
// counts them.
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

// SecretsOf finds the secrets of a call: its token, and the strings below each member
// of a JSON body that is named api_key, however deep. One shorter than minSecret is
// left out here, and still masked where it is the value of such a member.
func SecretsOf(token string, body []byte) (found Secrets) {
	if len(token) >= minSecret {
		found = Secrets{token}
	}
	// Few bodies can have a member named api_key. An escaped name has a backslash.
	if bytes.IndexByte(body, '\\') < 0 && !bytes.Contains(body, []byte("i_")) && !bytes.Contains(body, []byte("I_")) || !json.Valid(body) {
		return found
	}
	for p := (walker{Scanner: strictjson.Scanner{Data: body}}); p.next(); {
		if p.keyDepth > 0 && !p.isName && len(p.text()) >= minSecret {
			found = append(found, p.text())
		}
	}
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

// CleanHeader copies a header without the values of headers that are named like a
// secret, and without the secrets anywhere. Of more than maxHeaderNames names it keeps
// some, in no order.
func (s Secrets) CleanHeader(h http.Header) http.Header {
	shown := make(http.Header, len(h))
	values := make([]string, 0, len(h)) // of all names in one slice: few headers have two values
	for name, sent := range h {
		if len(shown) == maxHeaderNames {
			break
		}
		from := len(values)
		switch {
		// The name itself holds a secret: somebody has swapped name and value.
		case slices.ContainsFunc(s, func(secret string) bool { // whose case net/http has changed
			return len(name) >= len(secret) && strings.Contains(strings.ToLower(name), strings.ToLower(secret))
		}):
			name, values = Key, append(values, Key)
		// The value is a secret, known or not: an unknown scheme of Authorization, or a
		// cookie.
		case namesSecret(name):
			values = append(values, Key)
		default:
			for _, v := range sent {
				values = append(values, Clip(s.Clean(v), maxHeaderValue))
			}
		}
		shown[name] = values[from:len(values):len(values)]
	}
	return shown
}

// AnswerHeader copies the header of an answer that a test gave, of one value each,
// without the names that were not sent. With hideWords it shows only values that are a
// number, a date or a media type, and of others how long they are.
func AnswerHeader(h http.Header, hideWords bool) http.Header {
	sent := http.Header{}
	for name, values := range h {
		switch {
		case len(values) == 0:
		case hideWords && (name == "Retry-After" || name == "Content-Type") && !plainValues.MatchString(values[0]):
			sent[name] = []string{Text(values[0])}
		default:
			sent[name] = []string{values[0]}
		}
	}
	return sent
}

// plainValues matches what says nothing of a person: a number such as Retry-After, a
// date, and a media type.
var plainValues = regexp.MustCompile(`^([-+.0-9eE]{1,24}|[A-Z][a-z]{2,8}, [ \w:-]{1,24}|(application|text|image)/[a-z+.-]{1,40}(; ?charset=[\w-]{1,12})?)$`)

// namesSecret reports whether the name of a header or a member says that the value is a
// secret. It errs on the side of masking: "monkey" counts.
func namesSecret(name string) bool {
	if plainNames[name] {
		return false
	}
	lower := strings.ToLower(name)
	return slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(lower, part) })
}

// secretNames are parts of names, in lower case. plainNames are the headers of nearly
// every call, none of which has such a part: to know them is faster than to search
// them.
var secretNames = []string{"authorization", "cookie", "key", "token", "secret"}
var plainNames = map[string]bool{"Accept": true, "Accept-Encoding": true, "Content-Length": true, "Content-Type": true, "User-Agent": true}

// secretForms are what keys look like: known beginnings, or long runs of letters and
// digits. They matter only where nobody has checked what a string is.
var secretForms = regexp.MustCompile(`(?i)\b(sk|pk|amk|key|bearer)[-_ ][a-z0-9]|[a-z0-9_-]{24,}`)

// LooksSecret reports whether a text holds something in the form of a key. A run of 24
// letters without a digit is a long word.
func LooksSecret(text string) bool {
	return slices.ContainsFunc(secretForms.FindAllString(text, -1), func(found string) bool {
		return len(found) < 24 || strings.ContainsAny(found, "0123456789")
	})
}

// MayBeKey reports whether a name is long and has digits, as keys do.
func MayBeKey(name string) bool {
	return len(name) >= minSecret && strings.ContainsAny(name, "0123456789")
}

// Body says what may be shown of a body.
type Body struct {
	Secrets Secrets
	Texts   bool // show people's words: prompts, messages and replies
	// Unchecked is set for a body that the service did not accept or did not make, so
	// that nobody knows whether it is JSON, and which of its strings are words or keys.
	// Without Texts it is hidden whole; with them, what looks like a key is.
	Unchecked bool
}

// Show returns the first n bytes of a body as they may be shown. A string that is cut
// there is masked as if it were whole, so that a secret's beginning does not show.
func (b *Body) Show(body []byte, n int) string {
	if b.Unchecked && (!b.Texts || !json.Valid(body)) {
		return b.hidden(string(body), n)
	}
	var out strings.Builder
	out.Grow(min(n, 256)) // enough for most bodies; one whose text is hidden needs less than it has
	at := 0               // what was written of body
	for p := (walker{Scanner: strictjson.Scanner{Data: body}}); p.next() && p.from < n; {
		// What is not masked is copied as it was written, with its spaces and escapes.
		if masked := b.masked(&p); masked != "" {
			out.Write(body[at:p.from])
			out.WriteString(masked)
			at = p.Pos
		}
	}
	if at < n {
		out.Write(body[at:n])
	}
	return b.Secrets.Clean(strings.ToValidUTF8(out.String(), "\ufffd"))
}

// hidden replaces the beginning of a body by its length. If texts are shown, a body that
// is not JSON is shown too, unless it may hold a key, of which its name is a sign: a key may
// have any form, and be escaped in any way, so signs of an escape hide the body too.
func (b *Body) hidden(body string, n int) string {
	sent := strings.ToValidUTF8(body[:n], "\ufffd")
	if sent == "" || b.Texts && !strings.ContainsAny(body, `\%&`) && !namesSecret(body) && !LooksSecret(body) && b.Secrets.Clean(body) == body {
		return sent
	}
	return Text(sent)
}

// masked returns the JSON that is shown in place of a piece; "" if the piece is shown as
// it was written. A piece is masked if it is under api_key, if it may be a key in a body
// that nobody checked, if it is a base_url with a password, if it holds a person's words,
// or if it repeats a secret of the call.
func (b *Body) masked(p *walker) string {
	isString, isURL := p.written[0] == '"', !p.isName && bytes.EqualFold(p.member, baseURL)
	switch {
	// An empty key is no secret, and often a variable that somebody forgot to set.
	case p.keyDepth > 0 && !p.isName && string(p.written) != `""`, !isString && len(p.written) > maxNumber,
		isString && b.Unchecked && (LooksSecret(p.text()) || p.isName && MayBeKey(p.text()) || !p.isName && namesSecret(string(p.member))):
		return `"` + Key + `"`
	case !isString:
		return ""
	// The metadata of interface 2.3 is a member of the body itself.
	case !p.isName && !b.Texts && p.wordsDepth > 0 && p.metadataDepth != 1:
		return `"` + Text(p.text()) + `"`
	// Without an escape it reads as it was written.
	case !isURL && bytes.IndexByte(p.written, '\\') < 0 && !slices.ContainsFunc(b.Secrets, func(secret string) bool { return bytes.Contains(p.written, []byte(secret)) }):
		return ""
	}
	clean := p.text()
	if isURL {
		clean = userInfo.ReplaceAllString(clean, "${1}"+Key+"@")
	}
	if clean = b.Secrets.Clean(clean); clean == p.text() {
		return ""
	}
	quoted, _ := json.Marshal(clean) // a string can always be written
	return string(quoted)
}

// maxNumber is the length in bytes of the longest number that is shown. A longer one
// may be a key without quotes.
const maxNumber = 24

// baseURL is the member of interface 2.3, 2.4 and 4.4 with the address of a provider, and
// userInfo the user and the password that such an address may begin with.
var (
	baseURL  = []byte("base_url")
	userInfo = regexp.MustCompile(`(^|//)[^/?#]*@`)
)

// walker goes through the pieces of a JSON document: its strings, numbers, and the
// words true, false and null. The fields after the Scanner are about one piece.
type walker struct {
	strictjson.Scanner // Pos is after the piece

	written []byte // with the quotes of a string
	from    int    // where it is in the document
	isName  bool   // it is the name of a member
	// member is the name of the member whose value it is, or that it is inside of.
	member []byte
	// depth is how many objects and arrays it is inside of. The others are depths of
	// members whose name or value it is, 0 for none: of api_key, of one that holds the
	// words of a person or of the agent, and of metadata, which holds what the
	// application likes.
	depth, keyDepth, wordsDepth, metadataDepth int
}

// next reads the next piece, and reports whether there is one. It keeps member and the
// depths in step with the brackets and names that it passes. The document must be valid
// JSON.
func (p *walker) next() bool {
	for ; p.Pos < len(p.Data) && strings.IndexByte("{[}] \t\r\n:,", p.Data[p.Pos]) >= 0; p.Pos++ {
		switch p.Data[p.Pos] {
		case '{', '[':
			p.depth++
		case '}', ']':
			p.depth--
		}
	}
	if p.Pos == len(p.Data) {
		return false
	}
	p.from = p.Pos
	p.written = p.Value()
	end := p.Pos
	p.isName = p.Peek() == ':'
	p.Pos = end
	if p.isName {
		p.member = p.written[1 : len(p.written)-1]
		if bytes.IndexByte(p.member, '\\') >= 0 {
			p.member = []byte(p.text())
		}
	}
	// The names are compared without their case, since a fake may accept them in another.
	p.track(&p.keyDepth, "api_key") // of interface 2.3 and 4.4
	p.track(&p.wordsDepth, "text", "reply_text", "system_prompt")
	p.track(&p.metadataDepth, "metadata")
	return true
}

// track keeps the depth of the member with one of the names in step with the piece.
func (p *walker) track(depth *int, names ...string) {
	// Its value has ended: its object is closed, or the next name has come.
	if p.depth < *depth || p.isName && p.depth == *depth {
		*depth = 0
	}
	if *depth == 0 && p.isName && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, string(p.member)) }) {
		*depth = p.depth
	}
}

// text returns a string as it reads, and anything else as it is.
func (p *walker) text() string {
	if text, isString := strictjson.String(p.written); isString {
		return text
	}
	return string(p.written)
}
