package observe

import (
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// The answers to the question how a limit counts, called windows in the file.
const (
	fixedWindows    = "fixed"        // a window starts with its first call
	alignedWindows  = "aligned"      // a window starts with the minute of a clock
	slidingWindows  = "sliding"      // a call counts for exactly a minute
	weightedWindows = "weighted"     // two aligned windows, the earlier weighed by how much of it is within the last minute
	tokenBucket     = "token bucket" // fills all the time
)

// count is a call that may count, and its answer.
type count struct {
	at time.Time
	rawcall.Exchange
}

// meter is one way of counting a minute's calls: a model that says of each call
// whether it passes, given which earlier ones counted.
type meter struct {
	kind  string
	limit int
	phase float64 // when the clock's minute starts, in seconds after a whole minute in Unix time

	calls     []float64 // times that count, in seconds
	now, past int       // of the clock's minute and of the one before
	minute    float64   // the number of the clock's minute
	tokens    float64
	filled    float64
}

func (m *meter) reset() {
	m.calls, m.now, m.past, m.minute, m.tokens, m.filled = nil, 0, 0, math.Inf(-1), float64(m.limit), math.Inf(-1)
}

// opens returns when the next call passes; a time not after t means now.
func (m *meter) opens(t float64) float64 {
	m.roll(t)
	limit, end := float64(m.limit), (m.minute+1)*60+m.phase
	switch n := len(m.calls); {
	case (m.kind == fixedWindows || m.kind == slidingWindows) && n >= m.limit:
		return m.calls[n-m.limit] + 60
	case m.kind == alignedWindows && m.now >= m.limit:
		return end
	case m.kind == weightedWindows:
		past, now := float64(m.past), float64(m.now)
		if now >= limit { // not before the next minute, in which now is past
			return end + 60*(1-(limit-1)/now)
		}
		if past > 0 {
			return end - 60*min(1, (limit-now)/past)
		}
	case m.kind == tokenBucket && m.tokens < 1:
		return t + (1-m.tokens)*60/limit
	}
	return t
}

func (m *meter) take(t float64) {
	m.roll(t)
	m.calls, m.now, m.tokens = append(m.calls, t), m.now+1, m.tokens-1
	if m.kind == fixedWindows {
		m.calls[len(m.calls)-1] = m.calls[0] // all leave with the first
	}
}

func (m *meter) roll(t float64) {
	for len(m.calls) > 0 && m.calls[0]+60 <= t {
		m.calls = m.calls[1:]
	}
	if minute := math.Floor((t - m.phase) / 60); minute != m.minute {
		m.past = 0
		if minute == m.minute+1 {
			m.past = m.now
		}
		m.now, m.minute = 0, minute
	}
	m.tokens = min(float64(m.limit), m.tokens+max(0, t-m.filled)*float64(m.limit)/60)
	m.filled = t
}

// cost says how badly the meter fits: 1 for each call that it would have refused,
// and 5 for each refusal, of which there are few, whose Retry-After it would have
// put off by over 2.5 s. counts says which calls count.
func (m *meter) cost(calls []count, counts func(rawcall.Exchange) bool) (cost int) {
	m.reset()
	for _, c := range calls {
		t := float64(c.at.UnixMilli()) / 1000
		if c.Limited() && (c.Status == http.StatusOK || c.Status == http.StatusTooManyRequests) {
			opens := m.opens(t)
			if c.Status == http.StatusOK && opens > t {
				cost++
			} else if c.Status != http.StatusOK && math.Abs(opens-t-retryAfter(c.Exchange).Seconds()) > 2.5 {
				cost += 5
			}
		}
		if counts(c.Exchange) {
			m.take(t)
		}
	}
	return cost
}

// fitMeter returns the meter that explains the calls, nil where several do or
// none. Warm-ups are left out: another limit may have refused them.
func fitMeter(calls []count, limit int) *meter {
	var reads []count
	for _, c := range calls {
		if c.Name == rawcall.ReadAgent.Name {
			reads = append(reads, c)
		}
	}
	passed := func(x rawcall.Exchange) bool { return x.Status == 200 }
	var best *meter
	least, second := math.MaxInt, math.MaxInt // costs of the best meter, and of the best one of another kind
	for _, kind := range []string{fixedWindows, alignedWindows, slidingWindows, weightedWindows, tokenBucket} {
		m, cost := fitKind(kind, reads, limit, passed)
		if cost < least {
			best, least, second = m, cost, least
		} else {
			second = min(second, cost)
		}
	}
	if least > 3+len(reads)/20 || second < least+4 {
		return nil
	}
	return best
}

// fitKind tries each second of a minute as the start of the clock's minute.
func fitKind(kind string, calls []count, limit int, counts func(rawcall.Exchange) bool) (best *meter, least int) {
	if kind == tokenBucket { // it fills during the first burst
		burst := slices.IndexFunc(calls, func(c count) bool { return c.Status == http.StatusTooManyRequests })
		limit = int(math.Round(float64(limit) / (1 + calls[burst].at.Sub(calls[0].at).Minutes())))
	}
	least = math.MaxInt
	for phase := range 60 {
		m := &meter{kind: kind, limit: limit, phase: float64(phase)}
		if cost := m.cost(calls, counts); cost < least {
			best, least = m, cost
		}
		if kind != alignedWindows && kind != weightedWindows {
			break
		}
	}
	return best, least
}

// fitSpent finds the kinds of calls that count: those with which the meter
// explains the calls; nil where that is not clear.
func (m *meter) fitSpent(calls []count, kinds []kind) map[string]any {
	least, second, found := math.MaxInt, math.MaxInt, 0
	for set := range 1 << len(kinds) {
		counts := func(x rawcall.Exchange) bool {
			for i, k := range kinds {
				if x.Name == k.call.Name && x.Status == k.status && x.Call.Body == k.call.Body && x.Path == k.call.Path {
					return set&(1<<i) != 0
				}
			}
			return x.Status == 200 && x.Limited()
		}
		cost := m.cost(calls, counts)
		if cost < least {
			least, second, found = cost, least, set
		} else {
			second = min(second, cost)
		}
	}
	if least > 3 || second == least {
		return nil
	}
	spent := map[string]any{}
	for i, k := range kinds {
		spent[k.name] = found&(1<<i) != 0
	}
	return spent
}
