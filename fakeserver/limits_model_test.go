package fakeserver_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// model is interface 8 and what the fake decided about it, written down a
// second time and as plainly as possible: it keeps every counted call.
type model struct {
	sliding bool
	counted map[string][]time.Duration // by limit and who spends it
}

// modelLimits have smaller maxima than those of interface 8.1, so that fewer
// calls meet them.
var modelLimits = map[string]struct {
	max    int
	window time.Duration
	perIP  bool
}{
	"key_minute": {40, time.Minute, false}, "ip_minute": {60, time.Minute, true}, "key_day": {300, 24 * time.Hour, false},
	"agent_create_key_day": {12, 24 * time.Hour, false}, "agent_create_ip_minute": {4, time.Minute, true},
	"byok_set_key_hour": {4, time.Hour, false}, "warmup_key_hour": {3, time.Hour, false},
}

// left is how long until a limit lets a call of a spender through; 0 means now.
func (m *model) left(limit, spender string, now time.Duration) time.Duration {
	calls, length, most := m.counted[spender], modelLimits[limit].window, modelLimits[limit].max
	if m.sliding {
		if i := len(calls) - most; i >= 0 {
			return max(0, calls[i]+length-now)
		}
		return 0
	}
	first, count := -length, 0
	for _, at := range calls {
		if at >= first+length {
			first, count = at, 0
		}
		count++
	}
	if now >= first+length || count < most {
		return 0
	}
	return first + length - now
}

// call returns the limit that refuses a call, the one that opens last, and for how
// long; "" lets the call through. A call that is refused for another reason
// spends requests only.
func (m *model) call(op []string, works bool, key, ip string, now time.Duration) (named string, wait time.Duration) {
	all := []string{"key_minute", "ip_minute", "key_day"}
	if works {
		all = append(all, op...)
	}
	var spenders []string
	for _, limit := range all {
		spender := limit + key
		if modelLimits[limit].perIP {
			spender = limit + ip
		}
		spenders = append(spenders, spender)
		if left := m.left(limit, spender, now); left > wait {
			named, wait = limit, left
		}
	}
	if named == "" {
		for _, spender := range spenders {
			m.counted[spender] = append(m.counted[spender], now)
		}
	}
	return named, wait
}

// modelled are calls, what they spend besides requests, and whether they work.
var modelled = []struct {
	method, path, body string
	limits             []string
	works              bool
}{
	{"GET", "/v1/agents/x", "", nil, false},
	{"POST", "/v1/agents", "[]", []string{"agent_create_key_day", "agent_create_ip_minute"}, false},
	{"POST", "/v1/agents", "{}", []string{"agent_create_key_day", "agent_create_ip_minute"}, true},
	{"POST", "/v1/agents", `{"llm":{"provider":"openai","api_key":"sk"}}`, []string{"agent_create_key_day", "agent_create_ip_minute", "byok_set_key_hour"}, true},
	{"PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`, []string{"byok_set_key_hour"}, true},
	{"POST", "/v1/warmup", "", []string{"warmup_key_hour"}, true},
	{"POST", "/v1/warmup", "{", []string{"warmup_key_hour"}, false},
}

// steps are mostly bursts, and one long pause in a hundred.
func steps(r *rand.Rand) time.Duration {
	longest := []time.Duration{0, 0, 0, 1e6, 1e6, 1e6, 1e6, 3e8, 3e8, 1e9}[r.IntN(10)]
	if r.IntN(100) == 0 {
		longest = 20 * time.Minute
	}
	return time.Duration(r.Int64N(int64(longest) + 1))
}

func TestLimitsAgreeWithANaiveModel(t *testing.T) {
	refused := map[string]int{}
	for seed := range uint64(4) {
		windows := []string{"fixed", "sliding"}[seed%2]
		opts := []fakeserver.Option{frozen(), fakeserver.WithDecision("windows", windows)}
		for limit, l := range modelLimits {
			opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(limit), l.max))
		}
		fake, c := newFake(t, opts...)
		r := rand.New(rand.NewPCG(seed, 11))
		m := &model{sliding: windows == "sliding", counted: map[string][]time.Duration{}}
		keys := []string{c.key, fake.IssueKey(fakeserver.KeyOptions{}), fake.IssueKey(fakeserver.KeyOptions{})}
		ips := []string{"192.0.2.1", "198.51.100.7"}
		now := time.Duration(0)
		for i := range 1500 {
			step := steps(r)
			now += step
			fake.Advance(step)
			o := modelled[r.IntN(len(modelled))*r.IntN(2)]
			key, ip := keys[r.IntN(3)], ips[r.IntN(2)]
			got := c.with(key).from(fake, ip).call(o.method, o.path, o.body)
			named, wait := m.call(o.limits, o.works, key, ip, now)
			refused[named]++
			name := fmt.Sprintf("seed %d, step %d: %s %s at %v: %s", seed, i, o.method, o.path, now, clipped(got.raw))
			require.Equal(t, named, got.text("limit_key"), name)
			if named != "" {
				require.Equal(t, strconv.Itoa(int((wait+time.Second-1)/time.Second)), got.header.Get("Retry-After"), name)
			}
		}
	}
	require.Greater(t, refused[""], 1000, "calls let through")
	require.Len(t, refused, 8, "each limit has refused: %v", refused)
}
