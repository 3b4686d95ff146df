package redact

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRedactorTakesTheLongestSecretFirst: in whatever order they are given, and
// though one is a part of the other.
func TestRedactorTakesTheLongestSecretFirst(t *testing.T) {
	long, short := "before-secret-after", "secret"
	for _, redactor := range []Redactor{New(long, short), New(short, long)} {
		assert.Equal(t, "x [redacted] y [redacted] z", redactor.Text("x before-secret-after y secret z"))
	}
}

func TestRedactorFindsEverySpelling(t *testing.T) {
	const secret = `a secret/with "all" + <signs>`
	redactor, short := New(secret), New("short")
	for _, form := range formsOf(secret) {
		assert.Equal(t, "[redacted]", redactor.Text(form), form)
	}
	assert.Len(t, formsOf(secret), 4)
	assert.Len(t, formsOf("plain-secret"), 1, "all spellings are the same")
	assert.Equal(t, "short", short.Text("short"))
}

// TestRedactorLooksIntoBase64: whatever the key is a part of, and whatever
// stands around it.
func TestRedactorLooksIntoBase64(t *testing.T) {
	const key = "key-canary-4711?>~"
	redactor := New(key)
	for _, held := range []string{
		key, "Bearer " + key, "Authorization: Bearer " + key, "user:" + key, "u:" + key, `{"api_key":"` + key + `","n":1}`,
		`{"url":"https://x/?k=` + url.QueryEscape(key) + `"}`,
	} {
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			coded := encoding.EncodeToString([]byte(held))
			for _, around := range []string{"%s", "Basic %s", "token=%s;", "a%s", "ab-%s", "abc/%s", `{"x":"%s"}`, "no %s, no", "%s==="} {
				text := redactor.Text(fmt.Sprintf(around, coded))
				assert.Contains(t, text, Redacted, "%s in %s", held, around)
				assert.NotContains(t, text, coded[3:len(coded)-4], "%s in %s", held, around)
			}
		}
	}
	for _, harmless := range []string{"", "trace_000001", "application/json", "QWxhZGRpbjpvcGVuIHNlc2FtZQ==", strings.Repeat("ab/-", 100)} {
		assert.Equal(t, harmless, redactor.Text(harmless))
	}
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
		var look func(error)
		look = func(e error) {
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

// FuzzFormsOf: a text that is shorter than a secret is not searched for it,
// which is right only if no spelling is shorter.
func FuzzFormsOf(f *testing.F) {
	f.Add(`abcdef"`)
	f.Add("abcdef\xff")
	f.Add("\u2028secret")
	f.Fuzz(func(t *testing.T, secret string) {
		for _, form := range formsOf(secret) {
			assert.GreaterOrEqual(t, len(form), len(secret))
		}
	})
}

// TestWordsAreOfNoRequest: what a proxy says is shown where no part of a request can
// be in it, whole, cut off or in other letters.
func TestWordsAreOfNoRequest(t *testing.T) {
	redactor := New("amk_0123456789abcdef", "R&D pays Anna\nZoë\u200d a bonus", "pin 77")
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
