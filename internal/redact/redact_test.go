package redact

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// encodings are what a service or a proxy may do to what it echoes.
var encodings = map[string]func(string) string{
	"as it is":    func(s string) string { return s },
	"header name": http.CanonicalHeaderKey,
	"query":       url.QueryEscape,
	"lower query": func(s string) string { return strings.ToLower(url.QueryEscape(s)) },
	"path":        url.PathEscape,
	"percent":     func(s string) string { return eachByte(s, "%%%02x") },
	"Go":          func(s string) string { return eachByte(s, `\x%02X`) },
	"JSON":        func(s string) string { b, _ := json.Marshal(s); return strings.Trim(string(b), `"`) },
	"all \\u":     func(s string) string { return eachByte(s, `\u%04X`) },
	"HTML":        html.EscapeString,
	"HTML dec":    func(s string) string { return eachByte(s, "&#%03d;") },
	"HTML hex":    func(s string) string { return eachByte(s, "&#x%04X;") },
}

func eachByte(s, format string) (encoded string) {
	for _, c := range []byte(s) {
		encoded += fmt.Sprintf(format, c)
	}
	return encoded
}

// TestKeysShowInNoEncoding, nor in one inside another, nor cut short, with
// anything around them.
func TestKeysShowInNoEncoding(t *testing.T) {
	for i, key := range []string{"key-canary-4711", "abcdef", `k<&"'>/?+~=%2fcanary\n%`, "sk_live_" + strings.Repeat("aB3/", 8), "???>>>~~~canary"} {
		redactor := New(key)
		if i%2 == 1 {
			redactor = New("another-key").With(key, "words")
		}
		for outer, encode := range encodings {
			for inner, first := range encodings {
				for _, echo := range []string{key, key[:min(8, len(key))]} {
					encoded := encode(first(echo))
					for _, text := range []string{"%6 no " + encoded + `, \n no`, `{"x":"` + encoded + `"}`} {
						shown := redactor.Text(text)
						assert.Contains(t, shown, Redacted, "%s of %s of %s", outer, inner, echo)
						assert.Empty(t, strings.Trim(strings.Replace(shown, Redacted, "", 1), `{}":xno, %6\`), "%s of %s of %s", outer, inner, echo)
					}
				}
			}
		}
		for cut := min(10, len(key)); cut <= len(key); cut++ {
			assert.Equal(t, Redacted, redactor.Text(key[:cut]))
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				for _, before := range []string{"", "u", "u:", `{"n":1,"key":"`} {
					encoded := encoding.EncodeToString([]byte(before + key[:cut] + `","more":5}`))
					assert.Equal(t, Redacted, redactor.Text("Basic "+encoded), "%s%s", before, key[:cut])
				}
			}
		}
	}
	assert.Equal(t, "no SECRET-"+Redacted, New("key-canary-4711").Text("no SECRET-Key-Canary-4711"), "in other letters")
	for _, redactor := range []Redactor{New("secret").With("before-secret-after", ""), New("before-secret-after").With("", "secret"), New("secret").With("", "before-secret-after")} {
		assert.Equal(t, "x [redacted] y [redacted] z", redactor.Text("x before-secret-after y secret z"), "the longest is replaced first")
	}
	assert.Equal(t, "x [redacted] y", New("secret").With("secret-after", "").Text("x secret-after y"), "the longest of two that begin alike")
	redactor := New("amk_fake_000001")
	for _, harmless := range []string{"", "trace_000001", "amk_fak", "000001", "application/json", "100%", `\`, "&;", "%zz&#xq;", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="} {
		assert.Equal(t, harmless, redactor.Text(harmless))
	}
	assert.Equal(t, "short", New("short").Text("short"), "too short to be found")
}

// TestWordsOfAPersonStayInIdentifiers, which programs switch on, and nowhere else.
func TestWordsOfAPersonStayInIdentifiers(t *testing.T) {
	for _, words := range []string{"minute", "Grüße 😀\n\"you\" <b>"} {
		redactor := New("key-canary-4711").With("", words)
		for _, name := range []string{"as it is", "query", "lower query", "path", "percent", "JSON", "HTML"} {
			assert.NotContains(t, redactor.Text("<"+encodings[name](words)+">"), encodings[name](words), name)
		}
		assert.Equal(t, Redacted, redactor.Text(base64.RawStdEncoding.EncodeToString([]byte(words))))
		assert.Equal(t, "key_minute", redactor.Identifier("key_minute"))
		assert.Equal(t, "[redacted]_minute", redactor.Identifier("key-canary-4711_minute"))
	}
	long := strings.Repeat("Grüße an alle, ", 3)
	assert.Equal(t, Redacted, New("").With("", long).Text(base64.RawStdEncoding.EncodeToString([]byte(long))[:32]))
	assert.Equal(t, Redacted, New("").With("", "Grüße 😀").Text(`Gr\u00fc&#xDF;e \ud83d\ude00`))
	redactor := New("key-canary-4711").With("", "a minute")
	assert.Equal(t, "not in [redacted]", redactor.Identifier("not in a minute"))
	for value, want := range map[string]string{
		`{"n": 1}`: `{"n": 1}`, `["key-canary-4711"]`: `["[redacted]"]`, `["key-canary\u002d4711"]`: `"[redacted]"`, `{"a minute":"\n"}`: `{"[redacted]":"\n"}`,
	} {
		assert.Equal(t, want, string(redactor.JSON(json.RawMessage(value))), value)
	}
	assert.Equal(t, `"[redacted]"`, string(New("471100").JSON(json.RawMessage(`{"n":471100}`))))
	header := http.Header{"X-Key-Canary-4711": {"a minute", "x"}, "A": {"b"}}
	assert.Equal(t, http.Header{"X-[redacted]": {"[redacted]", "x"}, "A": {"b"}}, redactor.Header(header))
	assert.Len(t, header["X-Key-Canary-4711"], 2, "a copy")
}

// tellingError shows a key in one of its prints only.
type tellingError struct{ text, key string }

func (e *tellingError) Error() string { return e.text }

// TestCausesShowNoKey: what can be unwrapped is found, and shows nothing.
func TestCausesShowNoKey(t *testing.T) {
	const key = "key-canary-4711"
	redactor := New(key)
	hiding := &tellingError{"quiet", key}
	silent := &tellingError{"quiet", "x"}
	deep := fmt.Errorf("%w and %w", fmt.Errorf("sent %s: %w", key, io.ErrUnexpectedEOF), silent)
	for _, err := range []error{deep, hiding, fmt.Errorf("x: %w", hiding), errors.New(key), &url.Error{Op: "Get", URL: "https://x/" + key, Err: io.EOF}} {
		redacted := redactor.Error(err, context.Canceled)
		assert.ErrorIs(t, redacted, err)
		assert.ErrorIs(t, redacted, context.Canceled)
		seen := map[error]bool{} // a cause can be a key
		var look func(error)
		look = func(e error) {
			seen[e] = true
			assert.NotContains(t, fmt.Sprintf("%v %+v %#v", e, e, e), key)
			for _, inner := range unwrap(e) {
				look(inner)
			}
		}
		look(redacted)
	}
	var found *tellingError
	assert.ErrorAs(t, redactor.Error(deep), &found)
	assert.ErrorIs(t, redactor.Error(deep), io.ErrUnexpectedEOF)
	assert.NotErrorAs(t, redactor.Error(hiding), &found)
}

// TestExcerptIsOfNoRequest: what a proxy says is shown where no part of a request
// can be in it, whole, cut off or in other letters.
func TestExcerptIsOfNoRequest(t *testing.T) {
	redactor := New("amk_0123456789abcdef").With("pin 77", "R&D pays Anna\nZoë\u200d a bonus")
	for _, said := range []string{"502 Bad Gateway | nginx", "Just a moment...", "Überlastet: später, bitte", "pays a bonus", "amk_012 456"} {
		assert.Equal(t, said, redactor.Excerpt("\n "+strings.ReplaceAll(said, " ", "\n")), said)
	}
	for _, said := range []string{
		"amk_0123456789abcdef", "no amk_01234", "89ABCDEF?", "a-m-k-0-1-2-3-4", "bad 616d6b5f303132333435363738396162636465", "your pin 77",
		"R&D", "R&amp;D", "Anna\nZoë", "Anna Zoë a", "pays%20Anna", "annazo\xc3", "is=1", `so "we"`, `\u0041`, "<b", "b>", "{", "[1]", "a+b", "pa\x00ys", "p\u200da",
		strings.Repeat("a ", 80) + "b", "YW1rXzAxMjM0NTY3ODlhYmNkZWY",
	} {
		assert.Empty(t, redactor.Excerpt(said), said)
	}
	assert.Equal(t, "Blocked", HTMLTitle([]byte("<html><title>Blocked</title>")))
	assert.Empty(t, HTMLTitle([]byte("<html><title>Blocked and the rest of the page")))
}
