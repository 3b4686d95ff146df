package fakeserver

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// minScrubbed is the length from which a secret is looked for in other places.
// A shorter one is not worth hiding, and would be found everywhere.
const minScrubbed = 8

// secretsOf returns what must not be seen in the record of a call: its token,
// and the provider keys in its body, the longest first, since one may stand in
// another.
func secretsOf(token string, body []byte) []string {
	var found []string
	if len(token) >= minScrubbed {
		found = append(found, token)
	}
	// Few bodies can hold a member named api_key, and those are read twice.
	if mayNameKey(body) && json.Valid(body) {
		sc := scanner{data: body}
		found = sc.keys(false, found)
		slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	}
	return found
}

// mayNameKey reports whether a body may have a member that isKeyName accepts,
// without reading it: no letter but I is the same as i in another case, and
// what is escaped has a backslash.
func mayNameKey(body []byte) bool {
	return bytes.IndexByte(body, '\\') >= 0 || bytes.Contains(body, []byte("i_")) || bytes.Contains(body, []byte("I_"))
}

// keys steps over any value, and adds the strings that stand in a member named
// api_key, however deep.
func (sc *scanner) keys(secret bool, found []string) []string {
	switch sc.peek() {
	case '{':
		for sc.enter(); sc.more(); {
			inside := secret || isKeyName(sc.name())
			found = sc.keys(inside, found)
		}
	case '[':
		for sc.enter(); sc.more(); {
			found = sc.keys(secret, found)
		}
	case '"':
		if s := sc.text(); secret && len(s) >= minScrubbed {
			found = append(found, s)
		}
	default:
		sc.scalar()
	}
	return found
}

func isKeyName(name string) bool { return strings.EqualFold(name, "api_key") }

// scrub takes the call's own secrets out of a text: they end up in a path when
// the arguments of a client are mixed up, and in a message when they are
// pasted.
func scrub(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, redactedKey)
	}
	return text
}

// scrubJSON takes the secrets out of the strings of a JSON document, in which
// they may be escaped in many ways.
func scrubJSON(doc string, secrets []string) string {
	if len(secrets) == 0 || !strings.Contains(doc, `\`) && scrub(doc, secrets) == doc {
		return doc
	}
	sc := scanner{data: []byte(doc)}
	for sc.pos < len(sc.data) {
		if sc.data[sc.pos] != '"' {
			sc.pos++
			continue
		}
		from := sc.pos
		s := sc.text()
		if clean := scrub(s, secrets); clean != s {
			sc.hide(from, string(encode(clean)))
		}
	}
	return sc.shown()
}

// scrubPath takes the secrets out of an escaped path, in which they may be
// escaped themselves.
func scrubPath(escaped string, secrets []string) string {
	escaped = scrub(escaped, secrets)
	path, err := url.PathUnescape(escaped)
	if err != nil || scrub(path, secrets) == path {
		return escaped
	}
	pieces := strings.Split(scrub(path, secrets), redactedKey)
	for i, piece := range pieces {
		pieces[i] = (&url.URL{Path: piece}).EscapedPath()
	}
	return strings.Join(pieces, redactedKey)
}
