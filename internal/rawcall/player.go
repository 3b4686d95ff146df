package rawcall

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Player makes calls. It knows the keys in use and the agents that they created
// last.
type Player struct {
	BaseURL    string
	Client     *http.Client
	ClientFrom func(ip string) *http.Client
	Issue      func(plan string, dashboard bool) string
	Keys       map[Key]string
	Agents     map[Key]string
	Last       string // the agent that any of the keys created last
}

// NewPlayer returns a player without a key. A nil client means one with a
// timeout of two minutes.
func NewPlayer(baseURL string, client *http.Client) Player {
	return Player{
		BaseURL: baseURL, Client: cmp.Or(client, &http.Client{Timeout: 2 * time.Minute}),
		Keys: map[Key]string{}, Agents: map[Key]string{},
	}
}

// Play makes one call, and reads at most 8 MiB of the answer. {agent_id} in its
// path is the agent of the key that calls, or else of any key, or one that does
// not exist.
func (p *Player) Play(ctx context.Context, c Call) (Exchange, error) {
	path := c.Of(cmp.Or(p.Agents[c.Key], p.Last, NoAgent)).Path
	req, err := http.NewRequestWithContext(ctx, c.Method, strings.TrimSuffix(p.BaseURL, "/")+path, strings.NewReader(c.Body))
	if err != nil {
		return Exchange{}, err
	}
	p.setHeader(req, c)
	res, err := p.clientOf(c).Do(req)
	if err != nil {
		return Exchange{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	x := Exchange{Call: c, Status: res.StatusCode, Header: res.Header}.Answered(body)
	if x.Status == http.StatusOK && c.Name == CreateAgent.Name {
		p.Last, _ = x.At("agent_id").(string)
		p.Agents[c.Key] = p.Last
	}
	return x, err
}

func (p *Player) setHeader(req *http.Request, c Call) {
	req.Header.Set("Authorization", "Bearer "+p.KeyOf(c.Key))
	if c.Body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Header == "" {
		return
	}
	req.Header.Del(c.Header)
	if value := c.Value(p.KeyOf(c.Key)); value != "" {
		req.Header.Set(c.Header, value)
	}
}

// clientOf is the client of the call's address. It follows no redirect: a
// redirect is an answer to look at.
func (p *Player) clientOf(c Call) *http.Client {
	client := *p.Client
	if c.IP != "" {
		client = *p.ClientFrom(c.IP)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// KeyOf is the key, issued where it has not called before.
func (p *Player) KeyOf(key Key) string {
	if p.Keys[key] == "" {
		p.Keys[key] = p.Issue(key.Plan, key.Dashboard)
	}
	return p.Keys[key]
}

// Exchange is a call and its answer.
type Exchange struct {
	Call
	Status int
	Header http.Header
	Body   []byte
	Value  any // the decoded body; nil where it is not JSON
}

// Answered is the exchange with the body that was answered.
func (x Exchange) Answered(body []byte) Exchange {
	x.Body, x.Value = body, nil
	if json.Unmarshal(body, &x.Value) != nil {
		x.Value = nil
	}
	return x
}

func (x Exchange) String() string {
	sent := strings.TrimSpace(fmt.Sprintf("%s %s %s", x.Method, x.Path, Clip(x.Call.Body)))
	return fmt.Sprintf("%s\nanswered %d %s", sent, x.Status, Clip(string(x.Body)))
}

// Clip shortens a text to 80 characters. Some cases send bytes that no log
// should hold: it replaces what is not UTF-8.
func Clip(text string) string {
	runes := []rune(strings.ToValidUTF8(strings.TrimSpace(text), "\ufffd"))
	if len(runes) <= 80 {
		return string(runes)
	}
	return string(runes[:77]) + "..."
}

// At is the member at a dotted path of the answer, nil where there is none.
func (x Exchange) At(path string) any {
	v := x.Value
	for name := range strings.SplitSeq(path, ".") {
		members, _ := v.(map[string]any)
		v = members[name]
	}
	return v
}

// RetryAfter is the one Retry-After header: whole seconds, at least one.
func (x Exchange) RetryAfter() (wait time.Duration, problem string) {
	values := x.Header.Values("Retry-After")
	seconds, err := strconv.Atoi(strings.Join(values, " "))
	if err != nil || seconds < 1 {
		problem = fmt.Sprintf("Retry-After is %q, want one whole number from 1", Clip(fmt.Sprint(values)))
	}
	return time.Duration(seconds) * time.Second, problem
}

// Shape is the body that the interface gives the answer.
func (x Exchange) Shape() Shape {
	switch x.Status {
	case http.StatusOK:
		return x.Reply
	case http.StatusTooManyRequests:
		return "error rate_limited, trace_id text, limit_key text, reason string optional"
	default:
		return "error text, trace_id text optional, limit_key text optional, reason string optional"
	}
}
