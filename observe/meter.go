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

// room is how many more calls pass at t.
func (m *meter) room(t float64) float64 {
	m.roll(t)
	switch m.kind {
	case alignedWindows:
		return float64(m.limit - m.now)
	case weightedWindows:
		return float64(m.limit-m.now) - float64(m.past)*(m.end()-t)/60
	case tokenBucket:
		return m.tokens
	}
	return float64(m.limit - len(m.calls))
}

// end is when the clock's minute ends.
func (m *meter) end() float64 { return (m.minute+1)*60 + m.phase }

// opens returns when the next call passes. At t there is no room.
func (m *meter) opens(t float64) float64 {
	limit := float64(m.limit)
	switch m.kind {
	case alignedWindows:
		return m.end()
	case weightedWindows:
		if now := float64(m.now); now > limit-1 { // not before the next minute, in which now is past
			return m.end() + 60*(1-(limit-1)/now)
		}
		return m.end() - 60*(limit-1-float64(m.now))/float64(m.past)
	case tokenBucket:
		return t + (1-m.tokens)*60/limit
	}
	return m.calls[len(m.calls)-m.limit] + 60
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

// cost says how badly the meter fits the calls; counts says which calls count. A
// call that passed costs 1 if the meter has no room for it in the next 0.7 s, about
// the time that a call is under way. A refused call costs the room that the meter
// has, at most 5. It also costs 5 if Retry-After differs from the meter's wait by
// more than 2.5 s.
func (m *meter) cost(calls []count, counts func(rawcall.Exchange) bool) (cost int) {
	m.reset()
	for _, c := range calls {
		t := float64(c.at.UnixMilli()) / 1000
		room := m.room(t)
		switch {
		case !c.Limited():
		case c.Status == http.StatusOK && room < 1 && m.opens(t) > t+0.7:
			cost++
		case c.Status == http.StatusTooManyRequests && room >= 1:
			cost += int(min(5, room))
		case c.Status == http.StatusTooManyRequests && math.Abs(m.opens(t)-t-retryAfter(c.Exchange).Seconds()) > 2.5:
			cost += 5
		}
		if counts(c.Exchange) {
			m.take(t)
		}
	}
	return cost
}

// fitMeter returns the meter that explains the calls, and nil if none does or
// several do. Warm-ups are left out: another limit may have refused them.
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

// fitSpent finds the kinds of calls that count: the set with which the meter
// explains the calls best. It returns nil if that is not clear.
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
	margin := 1
	if m.kind == weightedWindows || m.kind == tokenBucket { // they open bit by bit, so one call more or less is chance
		margin = 3
	}
	if least > 3 || second < least+margin {
		return nil
	}
	spent := map[string]any{}
	for i, k := range kinds {
		spent[k.name] = found&(1<<i) != 0
	}
	return spent
}
