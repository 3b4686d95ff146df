package contract

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// session is one case under way: it calls the target, keeps what was spent
// and fails the test in which it runs.
type session struct {
	testing.TB
	target Target
	client *http.Client
	key    string
	header http.Header // set over the defaults on each request
	ledger *ledger     // shared by the sessions that as, from and with make
}

// ledger is what a case has done so far.
type ledger struct {
	agent   string // the agent of NeedAgent
	spent   Spend
	allowed Spend
	keys    []string          // service keys in use, which no answer may show
	traces  map[string]string // trace_id to the request that it answered
}

func newSession(tb testing.TB, target Target, allowed Spend) *session {
	target.BaseURL = strings.TrimSuffix(target.BaseURL, "/")
	client := &http.Client{Timeout: 2 * time.Minute}
	if target.HTTPClient != nil {
		client = target.HTTPClient(tb)
	}
	return &session{
		TB: tb, target: target, client: withoutRedirects(client), key: target.Key,
		ledger: &ledger{allowed: allowed, keys: []string{target.Key}, traces: map[string]string{}},
	}
}

// withoutRedirects copies client: a redirect is an answer to look at.
func withoutRedirects(client *http.Client) *http.Client {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// as is the session with another key.
func (s session) as(key string) *session {
	s.key = key
	return &s
}

// issue makes a key on the plan and is the session with it.
func (s *session) issue(plan string, dashboard bool) *session {
	key := s.target.Abilities.IssueKey(plan, dashboard)
	s.ledger.keys = append(s.ledger.keys, key)
	return s.as(key)
}

// from is the session from another address.
func (s session) from(ip string) *session {
	s.client = withoutRedirects(s.target.Abilities.ClientFrom(s.TB, ip))
	return &s
}

// bulk is the session for thousands of calls.
func (s session) bulk() *session {
	if s.target.Abilities.BulkClient != nil {
		s.client = withoutRedirects(s.target.Abilities.BulkClient(s.TB))
	}
	return &s
}

// with is the session with a header set; value "" leaves the header out.
func (s session) with(name, value string) *session {
	s.header = s.header.Clone()
	if s.header == nil {
		s.header = http.Header{}
	}
	s.header.Set(name, value)
	return &s
}

// wait lets d pass for the target.
func (s *session) wait(d time.Duration) {
	s.Helper()
	s.ledger.spent.Wait += d
	require.LessOrEqual(s, s.ledger.spent.Wait, s.ledger.allowed.Wait, "the case may not wait that long")
	if s.target.Abilities.Advance != nil {
		s.target.Abilities.Advance(d)
		return
	}
	time.Sleep(d)
}

// call sends one request. Where the path names an agent it is that of
// NeedAgent, or one that does not exist.
func (s *session) call(e endpoint, body string) answer {
	s.Helper()
	if e.ofAgent() {
		e = e.of(s.agentOrNobody())
	}
	require.Less(s, s.ledger.spent.Requests, s.ledger.allowed.Requests, "the case may send no more requests")
	res, err := s.client.Do(s.request(e, body))
	require.NoError(s, err, "%s %s", e.method, e.path)
	defer res.Body.Close()
	got, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	require.NoError(s, err, "%s %s: the answer's body", e.method, e.path)
	s.ledger.spent = s.ledger.spent.plus(cost(e, body, res.StatusCode))
	return answer{s: s, endpoint: e, sent: body, status: res.StatusCode, header: res.Header, body: got}
}

func (s *session) agentOrNobody() string {
	if s.ledger.agent == "" {
		return "agent-of-nobody"
	}
	return s.ledger.agent
}

func (s *session) request(e endpoint, body string) *http.Request {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(s.Context(), e.method, s.target.BaseURL+e.path, reader)
	require.NoError(s, err)
	req.Header.Set("Authorization", "Bearer "+s.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range s.header {
		req.Header.Del(name)
		if values[0] != "" {
			req.Header[name] = values
		}
	}
	return req
}

// repeat makes n calls that must all be answered with status. It looks at no
// more than the status, which is what makes a daily limit affordable.
func (s *session) repeat(n int, e endpoint, body string, status int) {
	s.Helper()
	for i := range n {
		if a := s.call(e, body); a.status != status {
			require.FailNow(s, fmt.Sprintf("call %d of %d: want status %d\n%s", i+1, n, status, a))
		}
	}
}

// newAgent creates an agent with an empty body.
func (s *session) newAgent() string {
	s.Helper()
	return s.call(createAgent, `{}`).is(200).text("agent_id")
}

// sharedAgent is the agent of NeedAgent, made once.
type sharedAgent struct {
	tried bool
	made  string
}

// id makes the agent at the first call. It is not made again when that
// failed: each try would cost a creation.
func (a *sharedAgent) id(tb testing.TB, target Target) string {
	tb.Helper()
	if !a.tried {
		a.tried = true
		a.made = newSession(tb, target, Spend{Requests: 1, Creations: 1}).newAgent()
	}
	require.NotEmpty(tb, a.made, "an earlier case could not create the agent that the cases share")
	return a.made
}
