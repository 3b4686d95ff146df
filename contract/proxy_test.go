package contract_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// proxy forwards calls to a fake and changes each answer.
type proxy struct {
	fake   *fakeserver.Server
	ip     string // the address that calls
	tamper func(*reply)
}

// reply is an answer of the fake on its way to a case, and the call that it
// answers.
type reply struct {
	proxy
	req    *http.Request
	sent   string
	status int
	header http.Header
	body   map[string]any
}

func (p proxy) RoundTrip(req *http.Request) (*http.Response, error) {
	r := &reply{proxy: p, req: req}
	if req.Body != nil {
		sent, _ := io.ReadAll(req.Body)
		r.sent = string(sent)
	}
	r.send(req.Method, req.URL.RequestURI(), r.sent)
	p.tamper(r)
	body, err := json.Marshal(r.body)
	return &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewReader(body)), Request: req}, err
}

// send makes a call by the same key and takes its answer.
func (r *reply) send(method, path, body string) {
	req, answer := httptest.NewRequest(method, path, strings.NewReader(body)), httptest.NewRecorder()
	req.Header, req.RemoteAddr = r.req.Header, r.ip+":1"
	r.fake.ServeHTTP(answer, req)
	r.status, r.header, r.body = answer.Code, answer.Header(), nil
	if err := json.Unmarshal(answer.Body.Bytes(), &r.body); err != nil {
		panic(err)
	}
}

func (r *reply) also(method, path, body string) {
	other := *r
	other.send(method, path, body)
}

func (r *reply) refuse(status int, code string) {
	r.status, r.body = status, map[string]any{"error": code, "trace_id": "trace_of_the_proxy"}
}

// providerKey is the provider key that was sent, or "".
func (r *reply) providerKey() string {
	_, key, _ := strings.Cut(r.sent, `"api_key":"`)
	key, _, _ = strings.Cut(key, `"`)
	return key
}

func (r *reply) key() string { return strings.TrimPrefix(r.req.Header.Get("Authorization"), "Bearer ") }

func still() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// tampered runs the case on a fake with a proxy before it. The fake's clock moves by
// waits only.
func tampered(t *testing.T, c contract.Case, decisions bool, tamper func(*reply), opts ...fakeserver.Option) (failed bool, log string) {
	fake := newFake(t, append(opts, fakeserver.WithUnknownRoutes(), fakeserver.WithClock(still))...)
	target := targetOf(fake, func(ip string) http.RoundTripper { return proxy{fake, ip, tamper} })
	target.Decisions = decisions
	return contract.Verdict(t, c, target)
}

// firstFailure returns the id of a case of the interface that fails with what it
// printed, or "". Cases that take more than a minute's calls, or send a mebibyte, are
// left out.
func firstFailure(t *testing.T, tamper func(*reply), opts ...fakeserver.Option) string {
	for _, c := range contract.AllCases() {
		if c.Spends.Requests > 66 || strings.HasSuffix(c.ID, "1-MiB") || strings.HasPrefix(c.ID, "fake/") {
			continue
		}
		if failed, log := tampered(t, c, false, tamper, opts...); failed {
			return c.ID + "\n" + log
		}
	}
	return ""
}
