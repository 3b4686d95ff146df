package contract_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// proxy stands before a fake and changes each answer.
type proxy struct {
	fake   *fakeserver.Server
	next   http.RoundTripper
	tamper func(*reply)
}

// reply is an answer of the fake on its way to a case, and the call that it
// answers.
type reply struct {
	proxy  proxy
	fake   *fakeserver.Server
	req    *http.Request
	sent   string
	status int
	header http.Header
	body   map[string]any
}

func (p proxy) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		sent, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	r := &reply{proxy: p, fake: p.fake, req: req, sent: string(sent)}
	if err := r.forward(req); err != nil {
		return nil, err
	}
	p.tamper(r)
	body, err := json.Marshal(r.body)
	return &http.Response{
		StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewReader(body)), Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, err
}

// forward sends req to the fake and takes its answer.
func (r *reply) forward(req *http.Request) error {
	res, err := r.proxy.next.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	r.status, r.header, r.body = res.StatusCode, res.Header, nil
	return json.NewDecoder(res.Body).Decode(&r.body)
}

// send makes another call by the same key and takes its answer.
func (r *reply) send(method, path, body string) {
	req := r.req.Clone(r.req.Context())
	req.Method, req.URL.Path, req.URL.RawPath = method, path, ""
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	if body == "" {
		req.Body = nil
	}
	if err := r.forward(req); err != nil {
		panic(err)
	}
}

// again sends the same body elsewhere.
func (r *reply) again(method, path string) { r.send(method, path, r.sent) }

// refuse makes the answer an error.
func (r *reply) refuse(status int, code string) {
	r.status = status
	r.body = map[string]any{"error": code, "trace_id": "trace_of_the_proxy", "limit_key": "key_minute"}
	if status == 429 {
		r.header.Set("Retry-After", "60")
	}
}

// member is a text member of the request, at its top or inside llm.
func (r *reply) member(name string) string {
	var body map[string]any
	_ = json.Unmarshal([]byte(r.sent), &body)
	if llm, ok := body["llm"].(map[string]any); ok {
		body = llm
	}
	text, _ := body[name].(string)
	return text
}

// text is the longest text member of the request.
func (r *reply) text() (longest string) {
	for _, name := range []string{"text", "system_prompt", "customer_ref", "model", "base_url", "label"} {
		if text := r.member(name); len(text) > len(longest) {
			longest = text
		}
	}
	return longest
}

func (r *reply) key() string { return strings.TrimPrefix(r.req.Header.Get("Authorization"), "Bearer ") }

// exhausted reports whether the key's minute is spent.
func (r *reply) exhausted() bool { return r.status != 401 && r.spent("key_minute") }

// spent reports whether a limit of the key is spent.
func (r *reply) spent(limitKey string) bool {
	for _, l := range r.fake.Limits(r.key()) {
		if string(l.Key) == limitKey {
			return l.Used >= l.Max
		}
	}
	return false
}
