package quota

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

const s = time.Second

// rule is a cool-down that is asked by hand, with jitter of no length.
type rule struct {
	*CoolDown
	*testing.T
	now   time.Duration
	waits map[Class]int
}

func newRule(t *testing.T) *rule {
	r := &rule{CoolDown: &CoolDown{random: func() float64 { return 0 }}, T: t, now: time.Hour, waits: map[Class]int{}}
	r.CoolDown.waiting = func(c Class) int { return r.waits[c] }
	return r
}

// class of the calls of an endpoint.
func class(e *spec.Endpoint) Class { return Class{ID: classIndex(e, false)} }

// asks asks for one of those who wait.
func (r *rule) asks(e *spec.Endpoint, waiting int) Answer {
	r.Helper()
	r.waits[class(e)] = waiting
	return r.Ask(r.now, &Waiter{Class: class(e), deadline: never, MaxWait: never / 4}, waiting)
}

// goes wants the next of those who wait to go, and returns its grant.
func (r *rule) goes(e *spec.Endpoint, waiting int) *Waiter {
	r.Helper()
	a := r.asks(e, waiting)
	require.Len(r.T, a.Grants, 1, "at %s", r.now-time.Hour)
	return &Waiter{Endpoint: e, Class: class(e), Grant: a.Grants[0], granted: true}
}

// holds wants nobody to go for a time.
func (r *rule) holds(e *spec.Endpoint, waiting int, want time.Duration) {
	r.Helper()
	a := r.asks(e, waiting)
	require.Empty(r.T, a.Grants)
	assert.Equal(r.T, want, a.Again-r.now, "at %s", r.now-time.Hour)
}

func (r *rule) passed(w *Waiter) { r.Done(r.now, w, Outcome{Sent: true}) }

func (r *rule) refused(w *Waiter, key string, asked time.Duration) (news bool) {
	_, news, _ = r.Done(r.now, w, Outcome{Sent: true, Refused: true, LimitKey: key, RetryAfter: asked})
	return news
}

// refuses lets the service refuse a call that nothing held back.
func (r *rule) refuses(e *spec.Endpoint, key string, asked time.Duration) (news bool) {
	return r.refused(&Waiter{Endpoint: e, Class: class(e)}, key, asked)
}

// TestRamp: one goes, then two for each that has passed, up to the number that
// passed last time, and from there on one after each gap.
func TestRamp(t *testing.T) {
	r := newRule(t)
	r.refuses(spec.SendMessage, "k", 20*s)
	r.holds(spec.SendMessage, 99, s*20)
	r.now += 20 * s
	var sent []*Waiter
	for _, want := range []int{1, 2, 4} {
		for range want {
			sent = append(sent, r.goes(spec.SendMessage, 99))
		}
		r.holds(spec.SendMessage, 99, s) // for the answers, but no longer
		for _, w := range sent[len(sent)-want:] {
			r.passed(w)
		}
	}
	r.refused(r.goes(spec.SendMessage, 99), "k", 50*s)
	r.now += 50 * s // 7 have passed in 50 s
	for range 7 {
		r.passed(r.goes(spec.SendMessage, 99))
	}
	gap := 50 * s / 7
	r.holds(spec.SendMessage, 99, gap)
	r.now += gap
	r.passed(r.goes(spec.SendMessage, 99))
	shorter := gap - gap/512
	r.holds(spec.SendMessage, 99, shorter)
	r.now += shorter
	r.passed(r.goes(spec.SendMessage, 99))
	r.holds(spec.SendMessage, 99, shorter-shorter*2/512)
	r.holds(spec.SendMessage, 1, s) // a lone caller is not held up by the pace of many
	r.now += s
	r.passed(r.goes(spec.SendMessage, 1))
	r.passed(r.goes(spec.SendMessage, 99))
}

// TestRampOfOpenings: what an opening teaches the next one.
func TestRampOfOpenings(t *testing.T) {
	for _, tt := range []struct {
		name   string
		was    *ramp
		at     time.Duration
		before int
		gap    time.Duration
	}{
		{"the first", nil, 60 * s, 0, 0},
		{"60 passed in a minute", &ramp{sent: 61, refused: 1, passed: 60}, 60 * s, 60, s},
		{"half of them not answered yet", &ramp{sent: 61, refused: 1, passed: 30}, 60 * s, 60, s},
		{"fewer: others were quicker", &ramp{before: 60, gap: s, sent: 12, refused: 2}, 60 * s, 30, 6 * s},
		{"more: the gap grows by a quarter at most", &ramp{before: 4, gap: s, sent: 6, refused: 1}, 60 * s, 5, 5 * s / 4},
		{"nobody: it grows too", &ramp{before: 4, gap: 4 * s, sent: 1, refused: 1}, 60 * s, 2, 5 * s},
		{"never beyond 15 s", &ramp{sent: 2, refused: 1}, time.Hour, 1, 15 * s},
		{"a clock that went back", &ramp{sent: 9, opened: 61 * s}, 60 * s, 0, 0},
	} {
		next := tt.was.next(tt.at)
		assert.Equal(t, &ramp{before: tt.before, gap: tt.gap, opened: tt.at, last: tt.at}, next, tt.name)
	}
}

// TestUnsentCallLeavesItsTurn to another.
func TestUnsentCallLeavesItsTurn(t *testing.T) {
	r := newRule(t)
	r.refuses(spec.SendMessage, "k", s)
	r.now += s
	w := r.goes(spec.SendMessage, 9)
	r.holds(spec.SendMessage, 9, s)
	r.Done(r.now, w, Outcome{})
	r.goes(spec.SendMessage, 9)
}

// TestBackoff: a gate whose openings let nobody through opens less often, the more
// so the fewer wait, and never earlier than the service asked for.
func TestBackoff(t *testing.T) {
	for _, tt := range []struct {
		waiting int
		asked   time.Duration
		want    []time.Duration
	}{
		{1, s, []time.Duration{s, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 64 * s}},
		{4, s, []time.Duration{s, s, 2 * s, 4 * s, 8 * s, 16 * s, 16 * s}},
		{500, s, []time.Duration{s, s, 2 * s, 4 * s, 5 * s, 5 * s}},
		{500, 30 * s, []time.Duration{30 * s, 30 * s, 30 * s, 30 * s}},
		{1, 0, []time.Duration{s, s, 2 * s}},
		{1, s / 4, []time.Duration{s / 4, s / 4, 2 * s}},
	} {
		r := newRule(t)
		r.refuses(spec.SendMessage, "k", tt.asked)
		for _, want := range tt.want {
			r.holds(spec.SendMessage, tt.waiting, want)
			r.now += want
			r.refused(r.goes(spec.SendMessage, tt.waiting), "k", tt.asked)
		}
		r.now += time.Minute + 4*s
		r.passed(r.goes(spec.SendMessage, tt.waiting)) // somebody got through
		r.refused(r.goes(spec.SendMessage, tt.waiting), "k", tt.asked)
		r.holds(spec.SendMessage, tt.waiting, tt.want[0])
	}
}

// TestBackoffEndsWithPatience: the last opening comes when the patience of the first in
// line ends, which counts from when somebody got through last.
func TestBackoffEndsWithPatience(t *testing.T) {
	for _, tt := range []struct{ since, patience, want time.Duration }{
		{0, time.Hour, 64 * s},
		{0, 140 * s, 12 * s},
		{-time.Hour, 140 * s, 12 * s},
		{100 * s, 140 * s, 64 * s},
		{0, 128 * s, s}, // it is over, but Retry-After counts
	} {
		r := newRule(t)
		began := r.now
		r.refuses(spec.SendMessage, "k", s)
		for _, wait := range []time.Duration{s, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s} {
			r.now += wait
			r.refused(r.goes(spec.SendMessage, 1), "k", s)
		}
		first := &Waiter{Class: class(spec.SendMessage), deadline: never, since: began + tt.since, Patience: tt.patience, MaxWait: never / 4}
		a := r.Ask(r.now, first, 1)
		assert.Equal(t, tt.want, a.Again-r.now, "%+v", tt)
	}
}

// TestJitter is for programs that were refused together: up to a tenth of the wait
// and a quarter of a second, within half of the room that the call has. Who has
// waited in vain goes before.
func TestJitter(t *testing.T) {
	for _, tt := range []struct{ deadline, maxWait, want time.Duration }{
		{never, never / 4, 22*s + s/4},
		{21 * s, never / 4, 20*s + s/2},
		{never, 21 * s, 20*s + s/2},
		{20 * s, never / 4, 20 * s},
		{never, s, 20 * s},
	} {
		r := newRule(t)
		r.random = func() float64 { return 1 }
		r.refuses(spec.SendMessage, "k", 20*s)
		first := &Waiter{Class: class(spec.SendMessage), deadline: r.now + tt.deadline, MaxWait: tt.maxWait}
		a := r.Ask(r.now, first, 1)
		assert.Equal(t, tt.want, a.Again-r.now, "%+v", tt)
		assert.Equal(t, r.now+20*s, a.Opens, "the service's own words decide who cannot wait")
		r.now += 23 * s
		r.refused(r.goes(spec.SendMessage, 1), "k", 20*s)
		r.holds(spec.SendMessage, 1, 20*s)
	}
}

// TestNamesOfLimits: which classes a 429 holds back, and for how long.
func TestNamesOfLimits(t *testing.T) {
	message, read, create := spec.SendMessage, spec.GetAgent, spec.CreateAgent
	r := newRule(t)
	r.refuses(message, "a", 10*s)
	r.goes(read, 1) // it was never seen there
	r.refuses(read, "a", 5*s)
	r.holds(message, 1, 10*s)
	r.holds(read, 1, 10*s) // the name is the same, and 10 s are longer
	r.refuses(create, "", 10*s)
	r.refuses(spec.WarmUp, "", 20*s)
	r.holds(create, 1, 10*s) // without a name each class is on its own
	r.now += 10 * s
	r.passed(r.goes(create, 1))
	r.holds(spec.WarmUp, 1, 10*s)

	r.refuses(message, "day", 5*time.Hour)
	r.refuses(message, "a", 10*s)
	assert.Equal(t, "day", r.asks(message, 1).Key, "a shorter wait ends none that is longer")
}

// TestTrials: a class that only shares the name of a refused limit sees for itself
// after 1, 2, 4 seconds and so on, and leaves when it gets through. The refused
// class tries hourly, and opens the gate for all.
func TestTrials(t *testing.T) {
	message, create := spec.SendMessage, spec.CreateAgent
	r := newRule(t)
	for range 2 {
		r.refuses(message, "rate_limited", s)
		r.now += s
		r.passed(r.goes(message, 1))
		r.refuses(create, "rate_limited", 3*time.Hour)
		for _, wait := range []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s} {
			r.holds(message, 9, wait)
			r.now += wait
			r.goes(message, 9) // and is not answered
		}
		r.now += 60 * s
		r.passed(r.goes(message, 9))
		r.goes(message, 9)
		r.goes(message, 9)
		r.holds(create, 1, time.Hour-243*s)
		r.now += time.Hour - 243*s
		trial := r.goes(create, 1)
		r.holds(create, 1, time.Hour)
		r.passed(trial)
		r.passed(r.goes(create, 1))
	}
}

// TestNoTrialBeforeAShortWait is over: a class that shares the limit would take a call
// that the refused class waits for. While the gate backs off it tries all the same.
func TestNoTrialBeforeAShortWait(t *testing.T) {
	message, read := spec.SendMessage, spec.GetAgent
	r := newRule(t)
	r.random = func() float64 { return 1 }
	r.refuses(message, "k", s)
	r.refuses(read, "k", s)
	r.now += time.Hour
	r.refused(r.goes(message, 9), "k", s)
	r.now += s
	r.refused(r.goes(message, 9), "k", s)
	r.holds(read, 9, 2*s)
	r.now += 2 * s
	r.goes(read, 9)
}

// TestNews: the begin of a cool-down, and each second that is added.
func TestNews(t *testing.T) {
	r := newRule(t)
	for _, step := range []struct {
		at, asked time.Duration
		news      bool
	}{
		{0, 10 * s, true},
		{0, 10 * s, false},
		{999 * time.Millisecond, 10 * s, false},
		{s, 10 * s, true},
		{s, 5 * s, false},
		{1100 * time.Millisecond, 10 * s, false},
		{3 * s, 10 * s, true},
	} {
		r.now = time.Hour + step.at
		assert.Equal(t, step.news, r.refuses(spec.GetAgent, "k", step.asked), "%+v", step)
	}
}

// TestRetryAfterOfExtremes: at least a second where the service does not say, and no
// longer than any window.
func TestRetryAfterOfExtremes(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{-s: s, 0: s, 1: 1, 25 * time.Hour: 24 * time.Hour, math.MaxInt64: 24 * time.Hour} {
		r := newRule(t)
		r.refuses(spec.GetAgent, "k", asked)
		assert.Equal(t, want, r.asks(spec.GetAgent, 1).Opens-r.now, asked)
	}
}

// TestOpenGateIsForgotten when nobody has come for a while: calls are as quick as
// before the refusal.
func TestOpenGateIsForgotten(t *testing.T) {
	r := newRule(t)
	r.refuses(spec.GetAgent, "k", s)
	assert.True(t, r.Sort(t.Context(), &Waiter{Endpoint: spec.GetAgent}))
	assert.False(t, r.Sort(t.Context(), &Waiter{Endpoint: spec.SendMessage}), "the others all the time")
	r.now += s
	r.passed(r.goes(spec.GetAgent, 1))
	r.now += s
	r.goes(spec.GetAgent, 1)
	assert.False(t, r.Sort(t.Context(), &Waiter{Endpoint: spec.GetAgent}))
}

// TestClasses: each endpoint has two of its own.
func TestClasses(t *testing.T) {
	seen := map[int]bool{}
	for _, e := range spec.Endpoints {
		for _, sets := range []bool{false, true} {
			class := classIndex(e, sets)
			assert.False(t, seen[class], "%v", e)
			assert.Less(t, class, maxClasses)
			seen[class] = true
		}
	}
}
