package redact

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/internal/secretscan"
)

// encodings are the forms in which a service or a proxy may echo a text.
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
	"HTML bare":   func(s string) string { return eachByte(s, "&#%d") },
	"HTML long":   func(s string) string { return eachByte(s, "&#x%08x;") },
}

func eachByte(s, format string) (encoded string) {
	for _, c := range []byte(s) {
		encoded += fmt.Sprintf(format, c)
	}
	return encoded
}

func redactorOf(apiKey, providerKey, words string) *Redactor {
	r := New(apiKey).With(providerKey, words)
	return &r
}

// The keys are encoded once or twice, whole or cut off, with other text around them.
func TestKeysShowInNoEncoding(t *testing.T) {
	for i, key := range []string{"key-canary-4711", "zabcde", `k<&"'>/?+~=%2fcanary\n%`, "sk_live_" + strings.Repeat("AZ3/", 8), "???>>>~~~canary"} {
		public := len(publicPrefix.FindString(key))
		if len(key) < public+longKey {
			public = 0
		}
		redactor := New(key)
		if i%2 == 1 {
			redactor = redactorOf("another-key", key, "words")
		}
		for outer, encode := range encodings {
			for inner, first := range encodings {
				for _, echo := range []string{key, key[:min(public+8, len(key))]} {
					if echo != key && inner != "as it is" {
						continue
					}
					encoded := encode(first(echo))
					for _, text := range []string{"%6 no " + encoded + `, \n no`, `{"x":"` + encoded + `"}`} {
						shown := redactor.Hide(text, InText)
						assert.Contains(t, shown, Redacted, "%s of %s of %s", outer, inner, echo)
						assert.Empty(t, strings.Trim(strings.Replace(shown, Redacted, "", 1), `{}":xno, %6\`), "%s of %s of %s", outer, inner, echo)
					}
				}
			}
		}
		for _, encoded := range []string{fmt.Sprintf("%x", key), fmt.Sprintf("%X", key), fmt.Sprintf("% x", key), fmt.Sprint([]byte(key)), eachByte(key, "%d,"), eachByte(key, "%d, "), eachByte(key, "%02x:")} {
			assert.Equal(t, Redacted, redactor.Hide("<"+encoded+">", InText), encoded)
		}
		for cut := min(public+10, len(key)); cut <= len(key); cut++ {
			assert.Equal(t, Redacted, redactor.Hide(key[:cut], InText), key[:cut])
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				for _, before := range []string{"", "u", "u:", `{"n":1,"key":"`} {
					encoded := encoding.EncodeToString([]byte(before + key[:cut] + `","more":5}`))
					assert.Equal(t, Redacted, redactor.Hide("Basic "+encoded, InText), "%s%s", before, key[:cut])
				}
			}
		}
	}
	assert.Equal(t, "no SECRET-"+Redacted, New("key-canary-4711").Hide("no SECRET-Key-Canary-4711", InText), "in other letters")
	const longest = "before-secret-after"
	for _, redactor := range []*Redactor{redactorOf("secret", longest, ""), redactorOf(longest, "", "secret"), redactorOf("secret", "", longest)} {
		assert.Equal(t, "x [redacted] y [redacted] z", redactor.Hide("x "+longest+" y secret z", InText), "the longest goes first")
	}
	assert.Equal(t, "x [redacted] y", redactorOf("secret", "secret-after", "").Hide("x secret-after y", InText), "two begin alike")
	redactor := New("amk_fake_000001")
	for _, harmless := range []string{"", "trace_000001", "amk_fak", "000001", "application/json", "100%", `\`, "&;", "%zz&#xq;", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="} {
		assert.Equal(t, harmless, redactor.Hide(harmless, InText), harmless)
	}
	long := New("sk-proj-0123456789abcdefghij")
	for text, want := range map[string]string{
		"a key begins with sk-proj-": "a key begins with sk-proj-", "no key sk-proj-01234567": Redacted,
		"line **56789-abcdefghij": "line **56789-abcdefghij", "line **456789-abcdefghij": "line **[redacted]",
	} {
		assert.Equal(t, want, long.Hide(text, InText), text)
	}
	assert.Equal(t, "short", New("short").Hide("short", InText), "too short to be found")
}

// Programs switch on identifiers. In other texts the user text is hidden.
func TestUserTextStaysInIdentifiersOnly(t *testing.T) {
	for _, words := range []string{"minute", "Grüße 😀\n\f\"you\" <b>"} {
		redactor := redactorOf("key-canary-4711", "", words)
		for _, name := range []string{"as it is", "query", "lower query", "path", "percent", "JSON", "HTML"} {
			assert.NotContains(t, redactor.Hide("<"+encodings[name](words)+">", InText), encodings[name](words), name)
		}
		assert.Equal(t, Redacted, redactor.Hide(base64.RawStdEncoding.EncodeToString([]byte(words)), InText), words)
		body := `{"text":"` + strings.NewReplacer("\n", `\n`, "\f", `\f`, `"`, `\"`).Replace(words) + `"}`
		assert.Equal(t, Redacted, redactor.Hide(base64.StdEncoding.EncodeToString([]byte(body)), InText), words)
		assert.Equal(t, "key_minute", redactor.Hide("key_minute", InName), words)
		assert.Equal(t, "[redacted]_minute", redactor.Hide("key-canary-4711_minute", InName), words)
		long := New("sk-provider-0123456789")
		for n := range 20 {
			before := strings.Repeat("x", n)
			assert.Equal(t, before+"[redacted]_minute", long.Hide(before+"ovider-01234-56789_minute", InName), "a part of the key")
		}
		assert.Equal(t, "provider_0123456", long.Hide("provider_0123456", InName), "a word of it")
	}
	long := strings.Repeat("Grüße an alle, ", 3)
	assert.Equal(t, Redacted, redactorOf("", "", long).Hide(base64.RawStdEncoding.EncodeToString([]byte(long))[:32], InText))
	assert.Equal(t, Redacted, redactorOf("", "", "Grüße 😀").Hide(`Gr\u00fc&#xDF;e \ud83d\ude00`, InText))
	redactor := redactorOf("key-canary-4711", "", " a minute\n") // services trim a message
	assert.Equal(t, "not in [redacted]", redactor.Hide("not in a minute", InName))
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

// guardedError is an error whose fields a lock guards: nobody else may print it.
type guardedError struct {
	error
	t *testing.T
}

func (e guardedError) Format(fmt.State, rune) { e.t.Error("an error was printed") }

func none(error) bool { return false }

// TestCausesShowNoKey checks that errors.Is finds each error, and that what can be
// unwrapped shows no key.
func TestCausesShowNoKey(t *testing.T) {
	const key = "key-canary-4711"
	redactor := New(key)
	silent := guardedError{errors.New("quiet"), t}
	deep := errors.Join(fmt.Errorf("sent %s: %w", key, io.ErrUnexpectedEOF), silent)
	for _, err := range []error{deep, errors.New(key), &url.Error{Op: "Get", URL: "https://x/" + key, Err: io.EOF}} {
		redacted := redactor.Error(none, err, context.Canceled)
		assert.ErrorIs(t, redacted, err, "%T", err)
		assert.ErrorIs(t, redacted, context.Canceled, "%T", err)
		secretscan.HoldsNone(t, redacted, key)
	}
	assert.ErrorAs(t, redactor.Error(none, deep), new(guardedError))
	assert.ErrorIs(t, redactor.Error(none, deep), io.ErrUnexpectedEOF)
	own := fmt.Errorf("own: %w", io.ErrUnexpectedEOF)
	assert.NotErrorIs(t, redactor.Error(func(err error) bool { return err == own }, errors.Join(own, io.EOF)), io.ErrUnexpectedEOF, "what an exception wraps")
}

// An error about a connection is shown although a message may contain its words. Of any
// other error that has words of the message, nothing is shown.
func TestErrorsWithWordsOfTheUserText(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	server, client := net.Pipe()
	defer server.Close()
	silent := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return client, nil }, TLSHandshakeTimeout: 1}
	_, timeout := silent.RoundTrip(httptest.NewRequest(http.MethodGet, "https://x/", nil))
	assert.ErrorContains(t, timeout, "handshake timeout")
	for _, words := range []string{"Connect", "refused", "connection refused", "syscall", "unexpected", "timeout", "handshake"} {
		redactor := redactorOf("key-canary-4711", "", words)
		assert.ErrorAs(t, redactor.Error(none, timeout), new(net.Error), words)
		closed := &net.OpError{Op: "refused", Err: errors.New("closed")}
		for _, err := range []error{dial, errors.Join(io.ErrUnexpectedEOF, dial), fmt.Errorf("site 2: %w", dial), closed} {
			redacted := redactor.Error(none, err)
			assert.EqualError(t, redacted, err.Error(), words)
			assert.ErrorAs(t, redacted, new(*net.OpError), words)
		}
		redacted := redactor.Error(none, fmt.Errorf("%s was sent: %w", words, dial), fmt.Errorf("key-canary-4711 %w", errors.New(words)))
		assert.EqualError(t, redacted, "[redacted]: dial tcp: connect: connection refused: [redacted] [redacted]", words)
		assert.ErrorAs(t, redacted, new(*net.OpError), words)
		secretscan.HoldsNone(t, redacted, words+" was", "key-canary-4711")
	}
	//lint:ignore SA1019 any error of net/http will do
	quoted := redactorOf("", "", "Cancel my booking of Friday").Error(none, &http.ProtocolError{ErrorString: "malformed line: ancel my booking of Friday"})
	assert.EqualError(t, quoted, Redacted, "bytes of an answer that repeats a part of the request")
}

// A transport's Proxy function may put the password into its error, and the service that of
// a provider's base_url into a reason.
func TestErrorsShowNoPasswordOfAnAddress(t *testing.T) {
	for said, shown := range map[string]string{
		`invalid proxy address "http://u:1a/canary@h": parse "http://u:1a/canary@h": invalid port ":1a"`: `invalid proxy address "[redacted]`,
		"dial http://u:can ary@proxy: refused":         "dial http://[redacted]",
		"dial http://u:1a/canary@proxy: bad port :1a":  "dial http://[redacted]",
		`Get "https://host:80/a@b": EOF, [::1]://a@b/`: `Get "https://host:80/a@b": EOF, [::1]://[redacted]`,
		`Get "https://[::1]:80/a@b": EOF`:              `Get "https://[::1]:80/a@b": EOF`,
	} {
		err := New("").Error(none, errors.New(said))
		assert.EqualError(t, err, shown, said)
		if said != shown {
			secretscan.HoldsNone(t, err, said)
		}
	}
	assert.Equal(t, "unknown host http://[redacted]", New("").Hide("unknown host http://u:1a/canary@models", InAnswer))
}

// A proxy's words are shown only if no part of the request can be in them: whole, cut off
// or in another case.
func TestQuotesHoldNothingOfTheRequest(t *testing.T) {
	redactor := redactorOf("amk-0123456789abcdef", "pin 77", "R&D pays Anna\nZoë a bonus of 5,000 euros. 请付款")
	for said, quote := range map[string]string{
		"502 Bad Gateway | nginx\n": "502 Bad Gateway | nginx",
		"<html><body><h1>504 Gateway\nTime-out</h1>\nThe server didn't respond in time.\n</body></html>\n": "504 Gateway Time-out",
		"Überlastet: später, bitte": "Überlastet: später, bitte", "pays Ann": "pays Ann", // seven letters in a row
		"请付款": "请付款", strings.Repeat("a ", 79) + "aa": strings.Repeat("a ", 79) + "aa", // nine bytes; 160 bytes
	} {
		assert.Equal(t, quote, redactor.Quote(said), said)
	}
	for said, shown := range map[string]string{
		`input='Pays Anna, Zoë a bonus of...'`:                    `input='Pays Anna, Zoë a bonus of...'`, // 19 letters
		`input='Pays Anna, Zoë a bonus of 5...'`:                  `input='[redacted]...'`,
		"[redacted] pays Anna, Zoë a bonus of":                    "[redacted] pays Anna, Zoë a bonus of", // the d is not one of them
		`zoë a BONUS of 5,000 euros, and [redacted] pays Ann`:     `[redacted], and [redacted] pays Ann`,
		`{"a":["R\u0026D pays","Anna, Zoë a bonus of"],"b":"ok"}`: `{"a":["R\u0026[redacted]"],"b":"ok"}`,
		"no 6789%61bcd": Redacted, "%61mk-01234": Redacted, "%25252561mk-01234": Redacted, `\u0061mk-01234`: Redacted, "&#97;mk-01234": Redacted, "no 345 678, 9abc": "no [redacted]",
	} {
		assert.Equal(t, shown, redactor.Hide(said, InAnswer), said)
	}
	// The next text nearly matches at every letter, and has a part of the user text at its end: the
	// search must not take seconds.
	long, nearly := redactorOf("", "", strings.Repeat("a", 4000)), strings.Repeat("a", 19)+"b"
	assert.Equal(t, Redacted, long.Hide(strings.Repeat(nearly, 12_800)+"a%%"+nearly+strings.Repeat("%41", 20), InAnswer))
	for _, said := range []string{
		"pays Anna", "ANNA (Zoë) a", "no amk-01234", "89ABCDEF?", "your pin 77", "bad 616d6b2d303132333435363738396162636465", `{"a":1}`, "R&amp;D",
		"pa\u200dys", strings.Repeat("a ", 81), "<title>a page cut short",
	} {
		assert.Empty(t, redactor.Quote(said), said)
	}
}
