package mask

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

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

// Of returns the body as it may be shown. Its structure and numbers stay. A part
// of a body that was cut inside a secret does not show the secret's beginning.
func (b *Body) Of(body []byte) string {
	var out strings.Builder
	out.Grow(len(body) + len(Key))
	at := 0
	walk(body, func(p *piece) {
		if shown, changed := b.shown(p); changed {
			out.Write(body[at:p.from])
			out.WriteString(shown)
			at = p.to
		}
	})
	out.Write(body[at:])
	shown := out.String()
	if !utf8.ValidString(shown) {
		shown = strings.ToValidUTF8(shown, "\ufffd")
	}
	return b.Secrets.Clean(shown)
}

// shown is a piece as it may be shown; changed says that it differs.
func (b *Body) shown(p *piece) (shown string, changed bool) {
	var text string
	switch {
	case !p.quoted && !p.inKey && isLiteral(p.written):
		return "", false
	case p.inKey && !p.isName:
		text = Key
	case b.Foreign:
		text = b.foreign(p)
	case !p.isName && !b.Texts && p.depth == 1 && isWords(p.member):
		text = Text(p.text())
	case !p.cut && !b.Secrets.mayBeIn(p.written):
		return "", false
	default:
		text = b.clean(p)
	}
	if text == p.text() {
		return "", false
	}
	if !p.quoted && !p.inKey {
		return text, true
	}
	quoted := quote(text)
	if p.cut && p.quoted {
		quoted = quoted[:len(quoted)-1]
	}
	return quoted, true
}

func (b *Body) clean(p *piece) string {
	if p.cut {
		return b.Secrets.cleanCut(p.text())
	}
	return b.Secrets.Clean(p.text())
}

// mayBeIn reports whether a part of a body may hold a secret: it does, or has an
// escape.
func (s Secrets) mayBeIn(written []byte) bool {
	return len(s) > 0 && bytes.IndexByte(written, '\\') >= 0 ||
		slices.ContainsFunc(s, func(secret string) bool { return bytes.Contains(written, []byte(secret)) })
}

// isWords reports whether a member of a documented body holds a person's words,
// or the agent's.
func isWords(member []byte) bool {
	return slices.ContainsFunc(wordMembers, func(words []byte) bool { return bytes.EqualFold(member, words) }) // a fake may accept other cases
}

var wordMembers = [][]byte{[]byte("text"), []byte("system_prompt"), []byte("reply_text")}

func (b *Body) foreign(p *piece) string {
	text := b.clean(p)
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

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string can always be written
	return string(quoted)
}

// piece is a string of a body, or a word outside of strings.
type piece struct {
	written  []byte // with the quotes of a string
	from, to int    // where it is in the body
	quoted   bool   // a string, and not a word
	cut      bool   // the body ends inside of it
	isName   bool   // the name of a member
	inKey    bool   // the value of a member named api_key, or inside such a value
	member   []byte // the name of the member whose value it is, or that it is inside of
	depth    int    // how many objects and arrays it is inside of
	read     string // what text returned
	isRead   bool
}

// text is a string as it reads, and a word as it is.
func (p *piece) text() string {
	switch {
	case p.isRead:
	case p.quoted:
		p.read, p.isRead = unquote(p.written, p.cut), true
	default:
		p.read, p.isRead = strings.ToValidUTF8(string(p.written), "\ufffd"), true
	}
	return p.read
}

// unquote reads a string, perhaps one without its end, whose last escape may be
// cut too.
func unquote(written []byte, cut bool) (text string) {
	inside := written[1:]
	if !cut {
		inside = inside[:len(inside)-1]
	}
	if bytes.IndexByte(inside, '\\') < 0 {
		return strings.ToValidUTF8(string(inside), "\ufffd")
	}
	for partial := range min(len(inside), len(`\u123`)+1) {
		whole := slices.Concat([]byte(`"`), inside[:len(inside)-partial], []byte(`"`))
		if json.Unmarshal(whole, &text) == nil {
			return text
		}
	}
	return strings.ToValidUTF8(string(inside), "\ufffd")
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
		at.from, at.quoted, at.isRead = i, body[i] == '"', false
		at.to, at.cut = endOf(body, i)
		at.written, i = body[at.from:at.to], at.to
		at.isName = at.quoted && bytes.HasPrefix(bytes.TrimLeft(body[i:], " \t\r\n"), []byte(":"))
		if keyDepth >= 0 && (at.depth < keyDepth || at.isName && at.depth == keyDepth) {
			keyDepth = -1
		}
		if at.isName {
			at.member = at.written[1 : len(at.written)-1]
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

// endOf is where the piece that begins at i ends, and whether the body ends
// before it may.
func endOf(body []byte, i int) (end int, cut bool) {
	if body[i] != '"' {
		if n := bytes.IndexAny(body[i:], " \t\r\n{}[]:,\""); n >= 0 {
			return i + n, false
		}
		return len(body), true
	}
	for i++; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i + 1, false
		}
	}
	return len(body), true
}
