package observe

import (
	"math"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// countedCall is a call that may count, and its answer.
type countedCall struct {
	at time.Time
	rawcall.Exchange
}

// meter is one way in which a limit per minute may count calls, as a model with which the calls
// of Run are compared.
type meter struct {
	counting string
	limit    float64
	// minuteStart is how many seconds the minutes of the target's clock start after the
	// minutes of Unix time: 0 to 59. The methods take times in seconds from which
	// minuteStart was subtracted, so that a minute of the target's clock starts at each
	// multiple of 60.
	minuteStart float64
}

// used returns how much of the limit is spent at t by calls at these times, which
// are in order.
func (m *meter) used(calls []float64, t float64) float64 {
	since := func(start float64) float64 { return float64(len(calls) - sort.SearchFloat64s(calls, start)) }
	start := math.Floor(t/60) * 60 // when the clock's present minute began
	switch m.counting {
	case decisions.WindowsSliding:
		return since(t - 60 + 1e-4) // a call exactly a minute ago does not count
	case decisions.WindowsAligned:
		return since(start)
	case decisions.WindowsWeighted:
		return since(start) + (since(start-60)-since(start))*(1-(t-start)/60)
	case decisions.WindowsBucket:
		return usedOfBucket(calls, t, m.limit/60)
	default:
		return usedOfFixed(calls, t)
	}
}

// usedOfFixed counts the calls of a window that begins with its first call.
func usedOfFixed(calls []float64, t float64) (used float64) {
	end := math.Inf(-1)
	for _, at := range calls {
		if at >= end {
			end, used = at+60, 0
		}
		used++
	}
	if t >= end {
		return 0
	}
	return used
}

// usedOfBucket returns how many tokens of a bucket are used.
func usedOfBucket(calls []float64, t, perSecond float64) (used float64) {
	last := math.Inf(-1)
	for _, at := range calls {
		used, last = max(0, used-(at-last)*perSecond)+1, at
	}
	return max(0, used-(t-last)*perSecond)
}

// cost says how badly the meter fits the calls; counts says which calls count. A call
// that passed costs 1 if the meter has no room for it in the next 0.7 s, which is about
// the time that a call takes. A refused call costs as much as the meter has room. It costs 5,
// with which no meter is clearest, if Retry-After differs from the meter's wait by more than 2.5 s.
func (m *meter) cost(calls []countedCall, counts func(rawcall.Exchange) bool) (cost int) {
	var counted []float64
	room := func(t float64) float64 { return m.limit - m.used(counted, t) }
	for _, c := range calls {
		t := float64(c.at.UnixMilli())/1000 - m.minuteStart
		refused, opens := c.Status == http.StatusTooManyRequests, t
		if refused {
			opens += namedWait(c.Exchange).Seconds()
		}
		switch {
		case !c.Limited():
		case c.Status == http.StatusOK && room(t+0.7) < 1:
			cost++
		case refused && room(t) >= 1:
			cost += int(room(t))
		case refused && (room(max(t, opens-2.5)) >= 1 || room(opens+2.5) < 1):
			cost += 5
		}
		if counts(c.Exchange) {
			counted = append(counted, t)
		}
	}
	return cost
}

// clearest returns the index of the least cost. The choice is not clear if the least cost
// is more than maxCost, or if another cost exceeds it by less than margin.
func clearest(costs []int, maxCost, margin int) (best int, clear bool) {
	least := slices.Min(costs)
	best = slices.Index(costs, least)
	others := slices.Delete(slices.Clone(costs), best, best+1)
	return best, least <= maxCost && slices.Min(others) >= least+margin
}

// fitMeter returns the meter that explains the calls; nil if none does or several do. It
// leaves out warm-ups, which another limit may have refused.
func fitMeter(calls []countedCall, limit int) *meter {
	reads := slices.DeleteFunc(slices.Clone(calls), func(c countedCall) bool { return c.Name != rawcall.ReadAgent.Name })
	var meters []*meter
	var costs []int
	for _, kind := range []string{
		decisions.WindowsFixed, decisions.WindowsAligned, decisions.WindowsSliding, decisions.WindowsWeighted, decisions.WindowsBucket,
	} {
		m, cost := fitCounting(kind, reads, float64(limit))
		meters, costs = append(meters, m), append(costs, cost)
	}
	// Even the right meter can have a cost of 1, from a call that was under way while a
	// window ended. With a higher cost, the key may have made other calls. A difference of
	// one call between two meters is chance.
	if best, clear := clearest(costs, 1, 2); clear {
		return meters[best]
	}
	return nil
}

// fitCounting returns the best meter for a way of counting, and its cost. It tries each
// second of a minute as the start of the clock's minute.
func fitCounting(counting string, reads []countedCall, limit float64) (best *meter, least int) {
	seconds := 1
	switch counting {
	case decisions.WindowsAligned, decisions.WindowsWeighted:
		seconds = 60
	case decisions.WindowsBucket: // a bucket fills during the first burst
		burst := slices.IndexFunc(reads, func(c countedCall) bool { return c.Status == http.StatusTooManyRequests })
		limit = math.Round(limit / (1 + reads[burst].at.Sub(reads[0].at).Minutes()))
	}
	least = math.MaxInt
	for second := range seconds {
		m := &meter{counting: counting, limit: limit, minuteStart: float64(second)}
		if cost := m.cost(reads, func(x rawcall.Exchange) bool { return x.Status == http.StatusOK }); cost < least {
			best, least = m, cost
		}
	}
	return best, least
}

// fitSpent finds the kinds of calls that count: the set of kinds with which the meter explains
// the calls best. It returns nil if no set is clearly the best.
func (m *meter) fitSpent(calls []countedCall, kinds []callKind) map[string]any {
	costs := make([]int, 1<<len(kinds)) // the cost of each set; a set is a number with a bit for each kind that counts
	for set := range costs {
		costs[set] = m.cost(calls, func(x rawcall.Exchange) bool {
			i := slices.IndexFunc(kinds, func(k callKind) bool { return k.matches(x) })
			if i < 0 {
				return x.Status == http.StatusOK && x.Limited()
			}
			return set&(1<<i) != 0
		})
	}
	// Each kind of call is made a different number of times, so another set of kinds
	// leaves room for at least one call more or less.
	margin := 1
	// These limits open step by step, so a difference of one or two is chance.
	if m.counting == decisions.WindowsWeighted || m.counting == decisions.WindowsBucket {
		margin = 3
	}
	set, clear := clearest(costs, 0, margin)
	if !clear {
		return nil
	}
	spent := map[string]any{}
	for i, k := range kinds {
		spent[k.name] = set&(1<<i) != 0
	}
	return spent
}

// callKind is a kind of call that may count, and how often it is made.
type callKind struct {
	name   string
	call   rawcall.Call
	status int
	calls  int
}

// matches reports whether an exchange is a call of this kind.
func (k callKind) matches(x rawcall.Exchange) bool {
	return x.Name == k.call.Name && x.Status == k.status && x.Call.Body == k.call.Body && x.Path == k.call.Path
}

// namedWait returns the wait that Retry-After names, at least a second. It returns a
// minute if the header names no wait, or a wait of more than a day.
func namedWait(x rawcall.Exchange) time.Duration {
	wait, ok := x.RetryAfter()
	if !ok || wait > 24*time.Hour {
		return time.Minute
	}
	return max(wait, time.Second)
}
