package fakeserver

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// secretsOf returns the secrets of a call: its token and the provider keys in
// its body. The longest come first, since one secret may contain another.
func secretsOf(token string, body []byte) []string {
	var found []string
	if len(token) >= minSecret {
		found = append(found, token)
	}
	// Few bodies can have a member named api_key. Only those are read twice.
	if mayNameKey(body) && json.Valid(body) {
		sc := scanOf(body)
		found = sc.keys(false, found)
		slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	}
	return found
}

// mayNameKey reports whether a body may have a member that isKeyName accepts,
// without parsing it. Only i and I equal i when case is ignored, and an escaped
// name has a backslash.
func mayNameKey(body []byte) bool {
	return bytes.IndexByte(body, '\\') >= 0 || bytes.Contains(body, []byte("i_")) || bytes.Contains(body, []byte("I_"))
}

// keys steps over any value and collects the strings below members named
// api_key, however deep.
func (sc *scanner) keys(secret bool, found []string) []string {
	switch sc.Peek() {
	case '{':
		for sc.Enter(); sc.More(); {
			inside := secret || isKeyName(sc.Name())
			found = sc.keys(inside, found)
		}
	case '[':
		for sc.Enter(); sc.More(); {
			found = sc.keys(secret, found)
		}
	case '"':
		if s := sc.Text(); secret && len(s) >= minSecret {
			found = append(found, s)
		}
	default:
		sc.Scalar()
	}
	return found
}

// redactJSON removes the secrets from the strings of a JSON document, however
// they are escaped there.
func redactJSON(doc string, secrets []string) string {
	if len(secrets) == 0 || !strings.Contains(doc, `\`) && redact(doc, secrets) == doc {
		return doc
	}
	sc := scanOf([]byte(doc))
	for sc.Pos < len(sc.Data) {
		if sc.Data[sc.Pos] != '"' {
			sc.Pos++
			continue
		}
		from := sc.Pos
		s := sc.Text()
		if clean := redact(s, secrets); clean != s {
			sc.hide(strictjson.Span{From: from, To: sc.Pos}, string(encode(clean)))
		}
	}
	return sc.shown()
}

// maxHeaderNames and maxHeaderValue bound the header of a record. The header of
// a call may take a megabyte.
const (
	maxHeaderNames = 100
	maxHeaderValue = 4 << 10
)

// redactHeader copies a header without secrets: without the values of headers
// that are named like a secret, and without the call's own secrets anywhere.
func redactHeader(h http.Header, secrets []string) http.Header {
	if h == nil {
		return nil
	}
	if len(h) > maxHeaderNames {
		h = firstNames(h)
	}
	lower, shown := lowered(secrets), make(http.Header, len(h))
	values := make([]string, 0, len(h)) // of all names in one slice: few headers have two values
	for name, sent := range h {
		from := len(values)
		switch n := nameOf(name); {
		case containsAny(n.lower, lower): // net/http has changed its case
			name, values = redactedKey, append(values, redactedKey)
		case n.secret:
			values = append(values, redactedKey)
		default:
			for _, v := range sent {
				values = append(values, clip(redact(v, secrets), maxHeaderValue))
			}
		}
		shown[name] = values[from:len(values):len(values)]
	}
	return shown
}

func firstNames(h http.Header) http.Header {
	first := make(http.Header, maxHeaderNames)
	for _, name := range slices.Sorted(maps.Keys(h))[:maxHeaderNames] {
		first[name] = h[name]
	}
	return first
}

func lowered(texts []string) []string {
	lower := make([]string, len(texts))
	for i, text := range texts {
		lower[i] = strings.ToLower(text)
	}
	return lower
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

type headerName struct {
	name   string
	lower  string
	secret bool // headers with such a name carry secrets
}

// usualNames are the names that almost every call has, read once.
var usualNames = []headerName{
	readName("Accept-Encoding"), readName("Authorization"), readName("Content-Length"), readName("Content-Type"), readName("User-Agent"),
}

func nameOf(name string) headerName {
	for _, usual := range usualNames {
		if usual.name == name {
			return usual
		}
	}
	return readName(name)
}

func readName(name string) headerName {
	lower := strings.ToLower(name)
	return headerName{name, lower, containsAny(lower, secretNames)}
}

// secretNames are parts of the names of headers that carry a secret.
var secretNames = []string{"authorization", "cookie", "key", "token", "secret"}
