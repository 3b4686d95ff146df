// Package mask hides keys, passwords and people's words when the fake keeps, logs or
// prints a call. A JSON body keeps its structure, its numbers and its other strings. Any
// other body cannot be searched for escaped keys, so it is hidden whole, unless texts are shown
// and it has no sign of a key.
//
// SecretsOf finds the keys of one call: its token, and the strings under api_key in its
// body. Secrets.Clean and Secrets.CleanHeader remove these keys from the other parts of
// the call, and Body.Show masks a body. The package does not know endpoints. Package wire
// says which bodies were checked.
//
// Package redact of the client is another one, because it has another task. It hides secrets
// in errors: free text that somebody else wrote, which may hold a part of a secret, or any
// encoding of it. Here a secret is the value of a known header or member, and is masked
// there whatever its length.
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

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// Key replaces a key. When a user copies a call as curl, the page of agentmessaging-fake
// puts a shell variable in its place.
const Key = "[redacted]"

// Withheld replaces a key, or a text that may be a key, inside a sentence.
const Withheld = "…"

// maxHeaderNames and maxHeaderValue (in bytes) bound the header of a record, because the
// header of a call may have a megabyte.
const (
	maxHeaderNames = 100
	maxHeaderValue = 4 << 10
)

// minSecret is the length in bytes of the shortest secret that is searched for in the other
// parts of a call. A shorter one would be found everywhere. Package redact hides secrets from
// 6 bytes on, but tests have short words as keys, which must not vanish from paths and texts.
const minSecret = 8

// maxKeys is the largest number of secrets for which a body or a header is searched.
const maxKeys = 100

// Text replaces the words of a person by their length, in code points as interface 8.4
// counts them.
func Text(s string) string {
	return "[redacted, " + strconv.Itoa(utf8.RuneCountInString(s)) + " characters]"
}

// Secrets are the keys of one call: the token of its header and the provider keys of its
// body. The longest come first, since a key may contain another.
type Secrets []string

// SecretsOf finds the secrets of a call: its token, and the strings below each member of
// a JSON body that is named api_key, however deep. It leaves out strings shorter than
// minSecret, which Show still masks as the value of such a member.
func SecretsOf(token string, body []byte) (found Secrets) {
	if len(token) >= minSecret {
		found = Secrets{token}
	}
	// A quick test first, since few bodies can have a member named api_key. An escaped name
	// has a backslash.
	if bytes.IndexByte(body, '\\') < 0 && !bytes.Contains(body, []byte("i_")) && !bytes.Contains(body, []byte("I_")) || !json.Valid(body) {
		return found
	}
	for w := (walker{Scanner: strictjson.Scanner{Data: body}}); w.next(); {
		if w.keyDepth > 0 && !w.isName && len(w.text()) >= minSecret {
			found = append(found, w.text())
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return len(b) - len(a) })
	return found
}

// Clean removes the secrets from a text. A secret gets into a path if a client's
// arguments are mixed up, and into a message if somebody pastes it.
func (s Secrets) Clean(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, Key)
	}
	return text
}

// CleanHeader copies a header without the values of headers that are named like a secret,
// and without the secrets in other names and values. If there are more than
// maxHeaderNames names, it keeps any maxHeaderNames of them.
func (s Secrets) CleanHeader(h http.Header) http.Header {
	shown := make(http.Header, len(h))
	values := make([]string, 0, len(h)) // one slice for the values of all names, since few headers have two values
	for name, sent := range h {
		if len(shown) == maxHeaderNames {
			break
		}
		from := len(values)
		switch {
		// The name itself holds a secret: somebody has swapped name and value.
		case slices.ContainsFunc(s, func(secret string) bool { // net/http has changed the case of the name
			return len(name) >= len(secret) && strings.Contains(strings.ToLower(name), strings.ToLower(secret))
		}):
			name, values = Key, append(values, Key)
		// The value is a secret, even if it is not one of s: an unknown scheme of
		// Authorization, or a cookie. Or there are too many secrets to search for in a long header.
		case namesSecret(name), len(s) > maxKeys:
			values = append(values, Key)
		default:
			for _, v := range sent {
				values = append(values, printable.Clip(s.Clean(v), maxHeaderValue))
			}
		}
		shown[name] = values[from:len(values):len(values)]
	}
	return shown
}

// AnswerHeader copies the header of an answer that a test gave. Each name has one value;
// names without a value were not sent. With hideWords, it replaces a Retry-After or
// Content-Type that is not a number, a date or a media type by its length.
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

// plainValues matches values without people's words: a number such as Retry-After, a
// date, or a media type.
var plainValues = regexp.MustCompile(`^([-+.0-9eE]{1,24}|[A-Z][a-z]{2,8}, [ \w:-]{1,24}|(application|text|image)/[a-z+.-]{1,40}(; ?charset=[\w-]{1,12})?)$`)

// namesSecret reports whether the name of a header or a member says that the value is a secret.
// It errs on the side of hiding: "monkey" counts, because it contains "key".
func namesSecret(name string) bool {
	if plainNames[name] {
		return false
	}
	lower := strings.ToLower(name)
	return slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(lower, part) })
}

// secretNames are parts of names, in lower case. plainNames are headers of nearly every
// call that have no such part. Looking them up is faster than searching them.
var secretNames = []string{"authorization", "cookie", "key", "token", "secret"}
var plainNames = map[string]bool{"Accept": true, "Accept-Encoding": true, "Content-Length": true, "Content-Type": true, "User-Agent": true}

// secretForms matches texts that look like keys: known beginnings, or long runs of
// letters and digits. It is used only for strings that were not checked.
var secretForms = regexp.MustCompile(`(?i)\b(sk|pk|amk|key|bearer)[-_ ][a-z0-9]|[a-z0-9_-]{24,}`)

// LooksSecret reports whether a text holds something in the form of a key. A run of 24
// letters without a digit counts as a long word.
func LooksSecret(text string) bool {
	return slices.ContainsFunc(secretForms.FindAllString(text, -1), func(found string) bool {
		return len(found) < 24 || strings.ContainsAny(found, "0123456789")
	})
}

// MayBeKey reports whether a name is long and has digits, as keys do, or has the form of a
// key.
func MayBeKey(name string) bool {
	return LooksSecret(name) || len(name) >= minSecret && strings.ContainsAny(name, "0123456789")
}

// Body says which parts of a body may be shown.
type Body struct {
	Secrets Secrets
	Texts   bool // show people's words: prompts, messages and replies
	// Unchecked is set for a body that the service did not accept or did not make. It may
	// not be JSON, and any of its strings may be words or keys. Without Texts the whole body
	// is hidden. With Texts, strings that look like a key are hidden.
	Unchecked bool
}

// Show returns the first n bytes of a body, masked. A string that is cut at n is masked as if
// it were whole, so that the beginning of a secret does not show. The bodies of a call with
// more than maxKeys secrets are hidden whole, since searching each string for each secret would
// take too long.
func (b *Body) Show(body []byte, n int) string {
	if b.Unchecked && (!b.Texts || !json.Valid(body)) || len(b.Secrets) > maxKeys {
		return b.hidden(string(body), n)
	}
	var out strings.Builder
	out.Grow(min(n, 256)) // enough for most bodies; masking a text makes a body shorter
	at := 0               // how much of body was written
	for w := (walker{Scanner: strictjson.Scanner{Data: body}}); w.next() && w.from < n; {
		// Parts that are not masked are copied as they were written, with spaces and escapes.
		if masked := b.masked(&w); masked != "" {
			out.Write(body[at:w.from])
			out.WriteString(masked)
			at = w.Pos
		}
	}
	if at < n {
		out.Write(body[at:n])
	}
	return b.Secrets.Clean(strings.ToValidUTF8(out.String(), "\ufffd"))
}

// hidden replaces the beginning of a body by its length. If texts are shown, it shows a
// body that is not JSON, unless the body may hold a key. Words such as "key" and "token"
// are signs of a key. So are signs of an escape, since a key may be escaped in any way.
func (b *Body) hidden(body string, n int) string {
	sent := strings.ToValidUTF8(body[:n], "\ufffd")
	if sent == "" || b.Texts && !strings.ContainsAny(body, `\%&`) && !namesSecret(body) && !LooksSecret(body) && b.Secrets.Clean(body) == body {
		return sent
	}
	return Text(sent)
}

// masked returns the JSON that is shown in place of a piece; "" if the piece is shown as
// it was written. A piece is masked if it is under api_key, if it may be a key in an
// unchecked body, if it is a base_url with a password, if it holds a person's words, if it is a
// number of more than maxNumber bytes, or if it repeats a secret of the call.
func (b *Body) masked(w *walker) string {
	isString, isURL := w.written[0] == '"', !w.isName && bytes.EqualFold(w.member, baseURL)
	isThere := func(secret string) bool { return bytes.Contains(w.written, []byte(secret)) }
	switch {
	// An empty key is shown: it is not a secret, and often comes from a variable that was
	// not set.
	case w.keyDepth > 0 && !w.isName && string(w.written) != `""`, !isString && len(w.written) > maxNumber,
		isString && b.Unchecked && (w.isName && MayBeKey(w.text()) || !w.isName && (LooksSecret(w.text()) || namesSecret(string(w.member)))):
		return `"` + Key + `"`
	case !isString:
		return ""
	// A text inside the metadata of interface 2.3 is not masked. This metadata is a member
	// of the body itself.
	case !w.isName && !b.Texts && w.wordsDepth > 0 && w.metadataDepth != 1:
		return `"` + Text(w.text()) + `"`
	// A string without escapes and without secrets needs no decoding.
	case !isURL && bytes.IndexByte(w.written, '\\') < 0 && !slices.ContainsFunc(b.Secrets, isThere):
		return ""
	}
	clean := w.text()
	if isURL {
		clean = userInfo.ReplaceAllString(clean, "${1}"+Key+"@")
	}
	if clean = b.Secrets.Clean(clean); clean == w.text() {
		return ""
	}
	quoted, _ := json.Marshal(clean) // never fails for a string
	return string(quoted)
}

// maxNumber is the length in bytes of the longest number that is shown. A longer one
// may be a key without quotes.
const maxNumber = 24

// baseURL is the member with the address of a provider (interface 2.3, 2.4 and 4.4).
// userInfo matches the user and the password at the beginning of such an address.
var (
	baseURL  = []byte("base_url")
	userInfo = regexp.MustCompile(`(^|//)[^/?#]*@`)
)

// walker goes through the pieces of a JSON document: its strings, numbers, and the
// words true, false and null. The fields after the Scanner are about one piece.
type walker struct {
	strictjson.Scanner // Pos is after the piece

	written []byte // with the quotes of a string
	from    int    // the position of the piece in the document
	isName  bool   // the piece is the name of a member
	// member is the name of the member whose value is the piece, or contains it.
	member []byte
	// depth is how many objects and arrays contain the piece. The other fields are the
	// depths of certain members whose name or value is the piece; 0 means none. keyDepth is
	// for api_key, wordsDepth for members with the words of a person or of the agent, and
	// metadataDepth for metadata, whose content the application chooses.
	depth, keyDepth, wordsDepth, metadataDepth int
}

// next reads the next piece, and reports whether there is one. It updates member and the
// depths for the brackets and names that it passes. The document must be valid JSON.
func (w *walker) next() bool {
	for ; w.Pos < len(w.Data) && strings.IndexByte("{[}] \t\r\n:,", w.Data[w.Pos]) >= 0; w.Pos++ {
		switch w.Data[w.Pos] {
		case '{', '[':
			w.depth++
		case '}', ']':
			w.depth--
		}
	}
	if w.Pos == len(w.Data) {
		return false
	}
	w.from = w.Pos
	w.written = w.Value()
	end := w.Pos
	w.isName = w.Peek() == ':'
	w.Pos = end
	if w.isName {
		w.member = w.written[1 : len(w.written)-1]
		if bytes.IndexByte(w.member, '\\') >= 0 {
			w.member = []byte(w.text())
		}
	}
	// The names are compared without their case, since a fake may accept them in another
	// case.
	w.track(&w.keyDepth, "api_key") // of interface 2.3 and 4.4
	w.track(&w.wordsDepth, "text", "reply_text", "system_prompt")
	w.track(&w.metadataDepth, "metadata")
	return true
}

// track updates the depth of the member with one of the names for the piece.
func (w *walker) track(depth *int, names ...string) {
	// The member's value has ended, because its object is closed or the next name has come.
	if w.depth < *depth || w.isName && w.depth == *depth {
		*depth = 0
	}
	if *depth == 0 && w.isName && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, string(w.member)) }) {
		*depth = w.depth
	}
}

// text returns a string without quotes and escapes, and any other piece as it was
// written.
func (w *walker) text() string {
	if text, isString := strictjson.String(w.written); isString {
		return text
	}
	return string(w.written)
}
