package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/rules"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
)

// matchers reads the parameters that pick calls, and sets q.Err for the first wrong one.
// It returns nil if no parameter is given.
func (s *Server) matchers(q *jsonapi.Query) []fakeserver.Matcher {
	match := rules.Match{
		Endpoint: fakeserver.Endpoint(q.Get("endpoint")), AgentID: jsonapi.NonEmpty(q.Get("agent_id")),
		TextContaining: jsonapi.NonEmpty(q.Get("text_containing")),
	}
	if text := q.Get("text"); q.Has("text") {
		match.Text = &text
	}
	all, err := match.Matchers(s.fake)
	if err != nil {
		q.Refuse("%w", err)
	}
	// Conditions for which package fakeserver has no matcher use Where.
	where := func(f func(fakeserver.Call) bool) { all = append(all, fakeserver.Where(f)) }
	after, before := q.Int("after", 0, 0, math.MaxInt32), q.Int("before", math.MaxInt32, 1, math.MaxInt32)
	// The page uses the numbers of calls to load older and newer calls.
	if q.Has("after") || q.Has("before") {
		where(func(c fakeserver.Call) bool { return c.Seq > after && c.Seq < before })
	}
	if q.Has("search") {
		all = append(all, bySearch(q.Get("search")))
	}
	// The key is not read by rules.Match, which knows only issued keys: a call may also have
	// the label missing or unknown.
	if label := q.Get("key"); q.Has("key") {
		if _, _, known := s.admin.KeyLabeled(label); !known && label != fakeadmin.KeyMissing && label != fakeadmin.KeyUnknown {
			q.Refuse("key: %s", rules.NoSuchKey)
		}
		where(func(c fakeserver.Call) bool { return c.Key == label })
	}
	if status := q.Get("status"); q.Has("status") {
		if !statusOrClass.MatchString(status) {
			q.Refuse("status: must be a status such as 429, a class such as 4xx, or 0")
		}
		begins := strings.TrimSuffix(status, "xx")
		where(func(c fakeserver.Call) bool { return strings.HasPrefix(strconv.Itoa(sentStatus(c)), begins) })
	}
	return all
}

// sentStatus returns the status of an answer that arrived whole. It returns 0 for any
// other answer, because half an answer counts as none.
func sentStatus(c fakeserver.Call) int {
	if c.Sent.Broke != "" {
		return 0
	}
	return c.Sent.Status
}

// statusOrClass matches a status, a class such as 4xx, and 0 for no status.
var statusOrClass = regexp.MustCompile(`^([1-5]xx|[1-5]\d\d|0)$`)

// bySearch takes the words that a person types into a search field. The texts that the
// page shows of a call must contain each word. Case does not matter.
func bySearch(typed string) fakeserver.Matcher {
	words := strings.Fields(strings.ToLower(typed))
	return fakeserver.Where(func(c fakeserver.Call) bool {
		// String has the Why, the key and the trace identifier of the call.
		shown := strings.ToLower(strings.Join([]string{
			c.String(), c.URL, c.Address, c.Code, c.Reason, fmt.Sprint(c.Header, c.Sent.Header),
			withoutEscapes(c.Body), withoutEscapes(c.Sent.Body), withoutEscapes(c.ReplyBody),
		}, "\n"))
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(shown, word) })
	})
}

// withoutEscapes returns a body for a search. It begins with the strings without JSON
// escapes. The body itself follows, for its names and numbers, and for a body that is not
// JSON.
func withoutEscapes(body string) string {
	var b strings.Builder
	d := json.NewDecoder(strings.NewReader(body))
	for {
		token, err := d.Token()
		if err != nil {
			return b.String() + body // a body that is cut or not JSON stays unchanged
		}
		if text, ok := token.(string); ok {
			b.WriteString(text + "\n")
		}
	}
}

// Bounds of GET calls: how many calls one answer has, and how long it waits for them.
const (
	maxListed     = 10_000 // calls in one answer
	defaultListed = 1000
	maxWait       = 10 * time.Minute
)

// listCalls shows the newest calls that match. With a timeout it first waits until n such
// calls have come.
func (s *Server) listCalls(r *request) (any, error) {
	q := &r.query
	// All parameters are read before one is refused. q.Err has the first mistake.
	picked, limit, n := s.matchers(q), q.Int("limit", defaultListed, 1, maxListed), q.Int("n", 1, 1, maxListed)
	waits := q.Has("timeout")
	timeout, err := jsonapi.ParseDuration(cmp.Or(q.Get("timeout"), "0s"), maxWait)
	if err != nil {
		q.Refuse("timeout: %w", err)
	}
	if q.Has("n") && !waits {
		q.Refuse("n: needs timeout, such as 5s, to wait for that many calls")
	}
	if waits {
		return s.awaitCalls(n, timeout, picked), nil
	}
	if picked == nil { // the page begins without a filter: copy only the calls that it shows
		calls := s.admin.CallsAfter(s.admin.LastSeq()-limit, limit)
		return s.viewOfCalls(calls, s.fake.CallCount()), nil
	}
	// The answer has the newest calls that match, and the number of all calls that match.
	calls := s.fake.Calls(picked...)
	return s.viewOfCalls(calls[max(0, len(calls)-limit):], len(calls)), nil
}

// viewOfCalls returns a list of calls, with the number of all calls and of dropped calls.
// The list is never null, so that clients can iterate over it without a check.
func (s *Server) viewOfCalls(calls []fakeserver.Call, total int) map[string]any {
	return map[string]any{
		"calls": calls, "total": total, "dropped": s.admin.DroppedCalls(),
		"under_way": append([]fakeserver.Call{}, s.fake.UnderWay()...),
	}
}

// awaitCalls waits without the server's lock, like every Stream, because the calls may
// need the control interface first. It also ends when the program ends.
func (s *Server) awaitCalls(n int, timeout time.Duration, picked []fakeserver.Matcher) jsonapi.Stream {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		defer context.AfterFunc(s.ended, cancel)()
		// The wait ends early if the client of this interface leaves, the timeout passes or the
		// program ends.
		calls, err := s.fake.AwaitCalls(ctx, n, picked...)
		if err != nil {
			jsonapi.Write(w, http.StatusGatewayTimeout, map[string]any{
				"error": "timeout", "reason": fmt.Sprintf("%d of %d calls came in time", len(calls), n), "calls": calls,
			})
			return
		}
		jsonapi.Write(w, http.StatusOK, s.viewOfCalls(calls, len(calls)))
	}
}

// forgetCalls empties the list of calls, so that tests can share one program. Agents of
// earlier tests stay.
func (s *Server) forgetCalls(*request) (any, error) {
	s.admin.ForgetCalls()
	return nil, nil
}

// writeCalls writes all kept calls as JSON Lines, to be stored in a file.
func writeCalls(fake *fakeserver.Server, w io.Writer) error { return fake.WriteCalls(w) }

// makeCall makes a call of the service. The call is like any other: it counts against
// limits, and is recorded. The page sends messages with it, and a tester can repeat a
// call by hand.
func (s *Server) makeCall(r *request, c struct {
	Method, Path string
	Key          jsonapi.NonEmpty // a label; left out: a call without a key
	Address      jsonapi.NonEmpty // left out: the address of the caller
	Body         string
}) (any, error) {
	// Only paths of the service are allowed, so that the control interface does not call
	// itself.
	if c.Method == "" || !strings.HasPrefix(c.Path, "/v1/") {
		return nil, errors.New("body: needs method and a path that begins with /v1/")
	}
	req, err := http.NewRequest(c.Method, s.fake.BaseURL()+c.Path, strings.NewReader(c.Body))
	if err != nil {
		return nil, errors.New("path: no call can be made with this method and path")
	}
	req.Host = r.Host // the program's own address, so that the record has a URL that can be called
	// The header is an application's, except for the name of the program.
	req.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"agentmessaging-fake page"}}
	if c.Key != "" {
		_, key, known := s.admin.KeyLabeled(string(c.Key))
		if !known {
			return nil, errors.New("key: " + rules.NoSuchKey)
		}
		req.Header.Set("Authorization", "Bearer "+key)
	}
	caller, _, _ := net.SplitHostPort(r.RemoteAddr) // "" for a caller without one, such as a test's
	from, err := fromIP(cmp.Or(string(c.Address), caller, defaultAddress))
	if err != nil {
		return nil, err
	}
	return s.send(req, s.fake.Direct(from)), nil
}

// defaultAddress is the address of a call whose caller has none, and of a key that has made
// no call.
const defaultAddress = "127.0.0.1"

// fromIP reads an address. It makes its own error, since the panic of package fakeserver
// would name a Go function.
func fromIP(address string) (fakeserver.FromIP, error) {
	if _, err := netip.ParseAddr(address); err != nil {
		return "", errors.New("address: must be an IP address such as 203.0.113.7")
	}
	return fakeserver.FromIP(address), nil
}

// send makes a call of the service, without the lock, and answers with the result: the
// body as JSON, or as a string if it is not JSON.
func (s *Server) send(req *http.Request, wire http.RoundTripper) jsonapi.Stream {
	return func(w http.ResponseWriter, r *http.Request) {
		// A reset ends this call like the calls of applications.
		ctx, end := s.untilReset(r.Context())
		defer end()
		status, raw, err := roundTrip(wire, req.WithContext(ctx))
		if err != nil {
			jsonapi.Refuse(http.StatusBadGateway, "no_answer", "the call was made, and its answer did not arrive whole: "+err.Error()).ServeHTTP(w, r)
			return
		}
		// JSON stays JSON in the answer, so that a program need not decode it twice.
		var body any = string(raw)
		if json.Valid(raw) {
			body = json.RawMessage(bytes.TrimSpace(raw))
		}
		jsonapi.Write(w, http.StatusOK, map[string]any{"status": status, "body": body})
	}
}

// roundTrip reads the whole answer. Its error leaves out the address, because the
// connection is in memory.
func roundTrip(wire http.RoundTripper, req *http.Request) (status int, body []byte, err error) {
	resp, err := wire.RoundTrip(req)
	if err == nil {
		defer resp.Body.Close()
		status = resp.StatusCode
		body, err = io.ReadAll(resp.Body)
	}
	if broken := new(net.OpError); errors.As(err, &broken) {
		err = broken.Err
	}
	return status, body, err
}
