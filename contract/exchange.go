package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// caller sends raw HTTP requests to a target.
type caller struct {
	baseURL string
	client  *http.Client
	key     string
	header  http.Header // set over the defaults on each request
}

func newCaller(target Target) caller {
	client := target.HTTPClient
	if client == nil {
		client = &http.Client{Timeout: 2 * time.Minute}
	}
	return caller{baseURL: strings.TrimSuffix(target.BaseURL, "/"), client: withoutRedirects(client), key: target.Key}
}

// withoutRedirects copies client: a redirect is an answer to look at.
func withoutRedirects(client *http.Client) *http.Client {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// with is the caller with a header set; value "" leaves the header out.
func (c caller) with(name, value string) caller {
	c.header = c.header.Clone()
	if c.header == nil {
		c.header = http.Header{}
	}
	c.header.Set(name, value)
	return c
}

// send sends one request and reads at most 8 MiB of the answer.
func (c caller) send(ctx context.Context, e endpoint) (exchange, error) {
	req, err := c.request(ctx, e)
	if err != nil {
		return exchange{}, err
	}
	res, err := c.client.Do(req)
	if err != nil {
		return exchange{}, err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	return exchange{endpoint: e, status: res.StatusCode, header: res.Header, body: got}, err
}

func (c caller) request(ctx context.Context, e endpoint) (*http.Request, error) {
	var reader io.Reader
	if e.body != "" {
		reader = strings.NewReader(e.body)
	}
	req, err := http.NewRequestWithContext(ctx, e.method, c.baseURL+e.path, reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if e.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range c.header {
		req.Header.Del(name)
		if values[0] != "" {
			req.Header[name] = values
		}
	}
	return req, nil
}

// exchange is one request and its answer.
type exchange struct {
	endpoint endpoint
	status   int
	header   http.Header
	body     []byte
}

// String is the exchange for a failure, in short.
func (x exchange) String() string {
	sent := strings.TrimSpace(fmt.Sprintf("%s %s %s", x.endpoint.method, x.endpoint.path, clip(x.endpoint.body)))
	return fmt.Sprintf("%s\nanswered %d %s", sent, x.status, clip(string(x.body)))
}

// clip shortens a text to 80 characters. Some cases send bytes that no log
// should hold: it replaces what is not UTF-8.
func clip(text string) string {
	runes := []rune(strings.ToValidUTF8(strings.TrimSpace(text), "\ufffd"))
	if len(runes) <= 80 {
		return string(runes)
	}
	return string(runes[:77]) + "..."
}

// at is the member at a dotted path of the answer, nil where there is none.
func (x exchange) at(path string) any {
	var v any
	_ = json.Unmarshal(x.body, &v) // a body that is not JSON has no member
	for name := range strings.SplitSeq(path, ".") {
		members, _ := v.(map[string]any)
		v = members[name]
	}
	return v
}
