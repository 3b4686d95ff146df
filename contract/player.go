package contract

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// player makes the calls of steps over raw HTTP. It knows the keys in use and
// the agents that they created last.
type player struct {
	target Target
	client *http.Client
	keys   map[who]string
	agents map[who]string
	last   string // the agent that any of the keys created last
}

func newPlayer(target Target) player {
	return player{
		target: target, client: cmp.Or(target.HTTPClient, &http.Client{Timeout: 2 * time.Minute}),
		keys: map[who]string{{}: target.Key}, agents: map[who]string{},
	}
}

// play makes one call of the step, and reads at most 8 MiB of the answer.
// {agent_id} in its path is the agent of the key that calls, or else of any
// key, or one that does not exist.
func (p *player) play(ctx context.Context, st step) (exchange, error) {
	e := st.e.of(cmp.Or(p.agents[st.key], p.last, noAgent))
	req, err := http.NewRequestWithContext(ctx, e.method, strings.TrimSuffix(p.target.BaseURL, "/")+e.path, strings.NewReader(e.body))
	if err != nil {
		return exchange{}, err
	}
	p.setHeader(req, st)
	res, err := p.clientOf(st).Do(req)
	if err != nil {
		return exchange{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	x := exchange{endpoint: st.e, status: res.StatusCode, header: res.Header, body: body}
	if x.status == http.StatusOK && e.name == createAgent.name {
		p.last, _ = x.at("agent_id").(string)
		p.agents[st.key] = p.last
	}
	return x, err
}

func (p *player) setHeader(req *http.Request, st step) {
	req.Header.Set("Authorization", "Bearer "+p.keyOf(st.key))
	if st.e.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if st.name == "" {
		return
	}
	req.Header.Del(st.name)
	if value := st.value(p.keyOf(st.key)); value != "" {
		req.Header.Set(st.name, value)
	}
}

// clientOf is the client of the step's address, but that it follows no
// redirect: a redirect is an answer to look at.
func (p *player) clientOf(st step) *http.Client {
	client := *p.client
	if st.ip != "" {
		client = *p.target.ClientFrom(st.ip)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// keyOf is the key, issued where it has not called before.
func (p *player) keyOf(by who) string {
	if p.keys[by] == "" {
		p.keys[by] = p.target.Abilities.IssueKeyOn(by.plan, by.dashboard)
	}
	return p.keys[by]
}

type exchange struct {
	endpoint endpoint
	status   int
	header   http.Header
	body     []byte
}

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
