package agentmessaging_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// fuzzedBodies are bodies of all sorts.
var fuzzedBodies = []string{
	anyReply, `{"ok":true,"byok":null,"trace_id":"t"}`, "", "null", "[]", "5", `"text"`, "<html><body>502</body></html>", `{"error":`, `{}{}`, "\x00\xff",
	`{"AGENT_ID":"a"}`, `{"error":5,"trace_id":null,"limit_key":{},"reason":[]}`, `{}`, strings.Repeat("x", 1<<20),
	`{"error":"a\nb\u2028c` + strings.Repeat("é", 5000) + `"}`, `{"reply_text":"` + testKey + `"}`,
	`{"error":"` + testKey + `","extra":{"` + testKey + `":["` + testKey + `"]}}`,
}

// FuzzAnswer: whatever answer comes, and wherever it is cut, each endpoint sends once
// and returns a result only of a whole 2xx, or one of the error types. No error and no
// CallInfo shows a secret. A status stays as it came.
func FuzzAnswer(f *testing.F) {
	for i, body := range fuzzedBodies {
		for endpoint := range endpoints {
			f.Add(endpoint, 200, "", body, -1)
		}
		f.Add(i, 200, "", body, len(body)/2)
		f.Add(i, []int{302, 400, 418, 429, 503}[i%5], "Retry-After: 1e309\nLocation: %zz\nX: "+testKey, body, i-1)
	}
	f.Fuzz(func(t *testing.T, endpoint, status int, header, body string, cut int) {
		status = 200 + int(uint(status-200)%400)
		a := answer{Status: status, Body: body, Header: http.Header{}}
		for line := range strings.SplitSeq(header, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			a.Header[name] = append(a.Header[name], value)
		}
		whole := cut < 0 || cut >= len(body)
		if !whole {
			a.Reader = func() io.Reader {
				return io.MultiReader(strings.NewReader(body[:cut]), iotest.ErrReader(io.ErrUnexpectedEOF))
			}
		}
		var info agentmessaging.CallInfo
		transport := answering(a)
		call := endpoints[uint(endpoint)%uint(len(endpoints))]
		err := call.call(agentmessaging.WithCallInfo(t.Context(), &info), newClient(t, transport, once))
		holdsLaws(t, err, testKey)
		if len(transport.Sent()) != 1 {
			t.Errorf("%d requests", len(transport.Sent()))
		}
		if shown := fmt.Sprint(info.Header, info.TraceID); strings.Contains(shown, testKey) {
			t.Fatalf("CallInfo shows the key: %s", shown)
		}
		var failure *agentmessaging.Error
		if errors.As(err, &failure) {
			if text, _ := json.Marshal(failure); failure.StatusCode != status || failure.RetryAfter < 0 || strings.Contains(string(text), testKey) {
				t.Fatalf("after %d: %s", status, text)
			}
			return
		}
		if err != nil || status > 299 || !whole {
			t.Fatalf("after %d %q: %T %v", status, body, err, err)
		}
	})
}

// FuzzURL: an address or an agent's id is refused, or every call stays below the address,
// where the id arrives as exactly one segment of the path.
func FuzzURL(f *testing.F) {
	for _, id := range []string{
		"agent_1", "", ".", "..", "a/b", "%2e%2e", "a%2Fb", "a?b", "a#b", "é 語", "\x00", `a\b`, "a;b", "+", "/", "a\nb", "a\xffb", "../status", "...",
		"a?b#c%2Fd é", "..;", "%252e%2e;x", "..?",
	} {
		f.Add(serviceURL+"/a%2Fb/", id)
	}
	for _, base := range []string{
		serviceURL, serviceURL + "/a/b/", "http://localhost:80", "https://u:p@h", "https://h?q", "https://h#f", "https://h/..", "//h", "https://[::1]:1/x",
		"HTTPS://H", "https://h/%2e%2e/", "http://evil.example", "https://h/;a=b", "https://h/%2F", serviceURL + "/a%20b//", "https://[2001:db8::1]:8443/",
	} {
		f.Add(base, "a?b#c%2Fd é")
	}
	f.Fuzz(func(t *testing.T, base, id string) {
		transport := answering(okAnswer)
		client, err := agentmessaging.NewClient(base, testKey, through(transport))
		if err != nil {
			return
		}
		if _, err := client.SendMessage(t.Context(), id, message{Text: "hi"}); err != nil {
			if len(transport.Sent()) != 0 || !errors.Is(err, agentmessaging.ErrInvalid) {
				t.Fatal("sent", err)
			}
			return
		}
		want, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		sent := transport.Sent()[0].URL
		rest, below := strings.CutPrefix(sent.EscapedPath(), strings.TrimRight(want.EscapedPath(), "/")+"/v1/agents/")
		segment, messages := strings.CutSuffix(rest, "/messages")
		if sent.Host != want.Host || !below || !messages || strings.Contains(segment, "/") || sent.RawQuery != "" || sent.Fragment != "" || sent.User != nil {
			t.Fatalf("%q and %q became %q", base, id, sent)
		}
		if sent.Scheme != "https" && !strings.HasPrefix(sent.Host, "127.") && !strings.HasPrefix(strings.ToLower(sent.Host), "localhost") && !strings.HasPrefix(sent.Host, "[") {
			t.Fatalf("plain http to %s", sent.Host)
		}
		arrived, err := url.PathUnescape(segment)
		if err != nil || arrived != id {
			t.Fatalf("%q became %q", id, segment)
		}
		for range 3 { // a proxy that takes escapes off, and what follows a semicolon
			if name, _, _ := strings.Cut(arrived, ";"); name == "." || name == ".." {
				t.Fatalf("%q may reach another path", id)
			}
			if unescaped, err := url.PathUnescape(arrived); err == nil {
				arrived = unescaped
			}
		}
	})
}
