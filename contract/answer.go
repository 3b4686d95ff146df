package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answer is what came back for one request.
type answer struct {
	s        *session
	endpoint endpoint
	sent     string
	status   int
	header   http.Header
	body     []byte
}

// errorCodes are the values of error by status on a target that claims the
// decisions. Every error answer is held to them.
var errorCodes = map[int][]string{
	400: {"bad_request", "byok_not_configured", "byok_unavailable"},
	401: {"unauthorized"},
	402: {"payment_required"},
	403: {"forbidden"},
	404: {"not_found"},
	405: {"method_not_allowed"},
	409: {"byok_not_configured"},
	429: {"rate_limited"},
	503: {"byok_unavailable"},
}

// String is the exchange for a failure, bounded.
func (a answer) String() string {
	text := fmt.Sprintf("%s %s %.300s\nanswered %d %.600s", a.endpoint.method, a.endpoint.path, a.sent, a.status, a.body)
	return strings.ToValidUTF8(text, "\ufffd") // some cases send bytes that no log should hold
}

// is fails unless the answer has the status, and the shape that the interface
// gives every answer of that status.
func (a answer) is(status int) answer {
	a.s.Helper()
	require.Equal(a.s, status, a.status, a)
	a.keepsSecrets()
	mediaType, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	require.Equal(a.s, "application/json", mediaType, "Content-Type\n%s", a)
	if status == http.StatusOK {
		require.Empty(a.s, object(a.endpoint.reply)(a.value()), a)
	} else {
		a.isError()
	}
	a.isTraced()
	return a
}

// isError wants the error body of interface 2.1, and for 429 what interface 7
// adds to it.
func (a answer) isError() {
	a.s.Helper()
	body := shape{"error": isText, "trace_id?": isText, "limit_key?": isText, "reason?": isString}
	if a.status == http.StatusTooManyRequests {
		body = shape{"error": oneOf("rate_limited"), "trace_id": isText, "limit_key": isText, "reason?": isString}
		a.retryAfter()
	}
	members, _ := a.value().(map[string]any)
	require.NotNil(a.s, members, "an error body is an object\n%s", a)
	require.Empty(a.s, body.problems(members), a)
	if a.s.target.Abilities.Decisions {
		assert.Contains(a.s, errorCodes[a.status], members["error"], a)
	}
}

// isTraced wants a trace_id that no other answer of the case had, on a target
// that claims the decisions; the shapes see to the rest.
func (a answer) isTraced() {
	a.s.Helper()
	if !a.s.target.Abilities.Decisions {
		return
	}
	trace, seen := a.text("trace_id"), a.s.ledger.traces
	assert.NotContains(a.s, seen, trace, "a trace_id that an earlier answer had\n%s", a)
	seen[trace] = a.endpoint.path
}

// keepsSecrets looks for the provider key and the service keys in everything
// that came back.
func (a answer) keepsSecrets() {
	a.s.Helper()
	all := fmt.Sprint(a.header) + string(a.body)
	for _, secret := range append([]string{providerKey}, a.s.ledger.keys...) {
		if strings.Contains(all, secret) {
			require.FailNow(a.s, "the answer shows a key", a)
		}
	}
}

// value decodes the body, which must be one JSON document.
func (a answer) value() any {
	a.s.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(a.body))
	require.NoError(a.s, d.Decode(&v), a)
	require.False(a.s, d.More(), "one document\n%s", a)
	return v
}

// at is the member at a dotted path, nil where there is none.
func (a answer) at(path string) any {
	a.s.Helper()
	v := a.value()
	for name := range strings.SplitSeq(path, ".") {
		members, _ := v.(map[string]any)
		v = members[name]
	}
	return v
}

// text is the string at a dotted path.
func (a answer) text(path string) string {
	a.s.Helper()
	got, _ := a.at(path).(string)
	require.NotEmpty(a.s, got, "member %q\n%s", path, a)
	return got
}

// holds wants a value at a dotted path; nil wants null or no member.
func (a answer) holds(path string, want any) answer {
	a.s.Helper()
	require.Equal(a.s, want, a.at(path), "member %q\n%s", path, a)
	return a
}

// retryAfter is the Retry-After header: whole seconds, at least one.
func (a answer) retryAfter() time.Duration {
	a.s.Helper()
	header := a.header.Get("Retry-After")
	seconds, err := strconv.Atoi(header)
	require.NoError(a.s, err, "Retry-After %q is not a whole number\n%s", header, a)
	require.GreaterOrEqual(a.s, seconds, 1, "Retry-After\n%s", a)
	return time.Duration(seconds) * time.Second
}

// limited wants a refusal by the limiter; its name is this project's, so it
// counts only for a target that claims the decisions.
func (a answer) limited(limitKey string) answer {
	a.s.Helper()
	a.is(http.StatusTooManyRequests)
	if a.s.target.Abilities.Decisions {
		a.holds("limit_key", limitKey)
	}
	return a
}
