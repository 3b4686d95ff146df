package quota

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

const (
	s = time.Second
	h = time.Hour
)

// The endpoints that the scenes call.
var message, read, create, warmUp = spec.SendMessage, spec.GetAgent, spec.CreateAgent, spec.WarmUp

// scene is what a cool-down does, step by step.
type scene struct {
	name   string
	random float64 // for jitter
	steps  []step
}

// step is a moment at which calls of an endpoint wait. So many of them go, each of which
// the service answers at once; nil answers nobody yet. Where nobody goes, it answers those
// who are under way. Then nobody goes before the time until.
type step struct {
	at      time.Duration
	call    *spec.Endpoint
	waiting int
	goes    int
	answer  *Outcome
	until   time.Duration // 0: that is not checked
}

// Answers of the service; unsent is a call that never left.
var passes, unsent = &Outcome{Sent: true}, &Outcome{}

func refuses(key string, asked time.Duration) *Outcome {
	return &Outcome{Sent: true, Refused: true, LimitKey: key, RetryAfter: asked}
}

// The columns of a step: at, call, waiting, goes, answer, until.
var scenes = []scene{
	{"one goes, then two for each that passed, up to the number of the last opening, and then one after each gap", 0, []step{
		{0, message, 1, 1, refuses("k", 20*s), 20 * s},
		{20 * s, message, 99, 1, nil, 21 * s}, // an answer is waited for, but no longer than a second
		{20 * s, message, 99, 0, passes, 0},
		{20 * s, message, 99, 2, nil, 21 * s},
		{20 * s, message, 99, 0, passes, 0},
		{20 * s, message, 99, 4, nil, 21 * s},
		{20 * s, message, 99, 0, passes, 0},
		{20 * s, message, 99, 1, refuses("k", 70*s), 90 * s},
		{90 * s, message, 99, 7, passes, 100 * s}, // 7 passed in 70 s
		{100 * s, message, 99, 1, passes, 110*s - 10*s/512},
		{110 * s, message, 99, 1, passes, 120*s - 10*s/512 - (10*s-10*s/512)*2/512}, // the gap shrinks by 1/512, then by 2/512
		{110 * s, message, 1, 0, nil, 111 * s},                                      // a lone caller is not held up by the pace of many
		{111 * s, message, 1, 1, passes, 0},
		{111 * s, message, 99, 9, passes, 0}, // the pace is forgotten
	}},
	{"an opening teaches the next one", 0, []step{
		{0, message, 1, 1, refuses("k", 60*s), 60 * s},
		{60 * s, message, 99, 60, passes, 0},
		{60 * s, message, 99, 1, refuses("k", 60*s), 120 * s},
		{120 * s, message, 99, 60, passes, 121 * s}, // 60 passed in a minute
		{121 * s, message, 99, 1, refuses("k", 59*s), 180 * s},
		{180 * s, message, 99, 12, passes, 0},
		{180 * s, message, 99, 1, refuses("k", 60*s), 240 * s},
		{240 * s, message, 99, 30, passes, 245 * s}, // 12 did: others were quicker, so half of 60 may go
		{245 * s, message, 99, 1, refuses("k", 55*s), 300 * s},
		{300 * s, message, 99, 30, passes, 302 * s},
		{302 * s, message, 99, 1, passes, 0}, // 31 passed in 512 s: the gap grows by a quarter at most
		{304 * s, message, 99, 1, refuses("k", 508*s), 812 * s},
		{812 * s, message, 99, 31, passes, 812*s + 511*s/256*5/4},
		{815 * s, message, 99, 1, refuses("k", 59*s), 874 * s}, // 31 passed in 62 s: a gap of 2 s
		{874 * s, message, 99, 1, refuses("k", 60*s), 934 * s}, // nobody did: it grows by a quarter
		{934 * s, message, 99, 15, passes, 934*s + 5*s/2},
	}},
	{"a gap is 15 s at most", 0, []step{
		{0, message, 1, 1, refuses("k", 10*s), 10 * s},
		{10 * s, message, 99, 1, passes, 0},
		{10 * s, message, 99, 1, refuses("k", 50*s), 60 * s},
		{60 * s, message, 99, 1, passes, 75 * s}, // one passed in 50 s
	}},
	{"who is not answered yet has got through", 0, []step{
		{0, message, 1, 1, refuses("k", 10*s), 10 * s},
		{10 * s, message, 99, 1, nil, 11 * s},
		{11 * s, message, 99, 1, nil, 12 * s},
		{12 * s, message, 99, 1, refuses("k", 18*s), 30 * s},
		{30 * s, message, 99, 2, passes, 40 * s}, // two passed in 20 s
	}},
	{"an unsent call leaves its turn to another", 0, []step{
		{0, message, 1, 1, refuses("k", s), s},
		{s, message, 9, 1, nil, 2 * s},
		{s, message, 9, 0, unsent, 0},
		{s, message, 9, 1, nil, 2 * s},
	}},
	{"who gets through ends the backoff", 0, []step{
		{0, message, 1, 1, refuses("k", s), s},
		{s, message, 1, 1, refuses("k", s), 2 * s},
		{2 * s, message, 1, 1, refuses("k", s), 4 * s},
		{4 * s, message, 1, 1, passes, 0},
		{4 * s, message, 1, 1, refuses("k", s), 5 * s},
		{5 * s, message, 1, 1, refuses("k", s), 6 * s},
	}},
	{"a name joins the endpoints at which it was seen, and the longer wait counts", 0, []step{
		{0, message, 1, 1, refuses("a", 10*s), 10 * s},
		{0, read, 1, 1, refuses("a", 5*s), 10 * s},
		{0, message, 1, 0, nil, 10 * s},
		{0, message, 1, 0, refuses("day", 5*h), h},
		{0, message, 1, 0, refuses("a", 10*s), h},
	}},
	{"without a name each endpoint is on its own", 0, []step{
		{0, create, 1, 1, refuses("", 10*s), 10 * s},
		{0, warmUp, 1, 1, refuses("", 20*s), 20 * s},
		{10 * s, create, 1, 1, passes, 0},
		{10 * s, warmUp, 1, 0, nil, 20 * s},
	}},
	{"who only shares a name tries after 1, 2, 4 seconds and so on; who was refused, each hour", 0, []step{
		{0, message, 1, 1, refuses("rate_limited", s), s},
		{s, message, 1, 1, passes, 0},
		{s, create, 1, 1, refuses("rate_limited", 3*h), h + s},
		{s, message, 9, 0, nil, 2 * s},
		{2 * s, message, 9, 1, nil, 4 * s},
		{4 * s, message, 9, 1, nil, 8 * s},
		{8 * s, message, 9, 1, nil, 16 * s},
		{16 * s, message, 9, 1, nil, 32 * s},
		{32 * s, message, 9, 1, nil, 64 * s},
		{64 * s, message, 9, 1, nil, 124 * s},
		{124 * s, message, 9, 1, passes, 0},
		{124 * s, message, 9, 9, passes, 0}, // it has left
		{124 * s, create, 1, 0, nil, h + s},
		{h + s, create, 1, 1, nil, 2*h + s},
		{h + s, create, 1, 0, passes, 0}, // it is open for all
		{h + s, create, 1, 1, passes, 0},
		{h + s, message, 1, 1, refuses("rate_limited", 9*s), h + 10*s}, // back under the name
		{h + s, create, 1, 0, nil, h + 2*s},
	}},
	// Jitter makes the first wait longer than the second try would come.
	{"nobody who shares a name tries before a short wait is over, but where the gate backs off", 1, []step{
		{0, message, 1, 1, refuses("k", s), 0},
		{0, read, 1, 1, refuses("k", s), 0},
		{h, message, 9, 1, refuses("k", s), h + s},
		{h + s, message, 9, 1, refuses("k", s), 0},
		{h + s, read, 9, 0, nil, h + 3*s},
		{h + 3*s, read, 9, 1, nil, 0},
	}},
}

// played is a cool-down, and the calls that it let go and that are not answered yet.
type played struct {
	*CoolDown
	now      time.Duration
	waiting  map[Class]int
	underWay map[*spec.Endpoint][]*Waiter
}

func play(random float64) *played {
	p := &played{&CoolDown{random: func() float64 { return random }}, h, map[Class]int{}, map[*spec.Endpoint][]*Waiter{}}
	p.CoolDown.waiting = func(c Class) int { return p.waiting[c] }
	return p
}

// ask is for the first of those who wait, who has all the time there is.
func (p *played) ask(call *spec.Endpoint, waiting int) Answer {
	w := &Waiter{Endpoint: call, deadline: never, MaxWait: never / 4}
	p.Sort(context.Background(), w)
	p.waiting[w.Class] = waiting
	answer := p.Ask(p.now, w, waiting)
	for _, w.Grant = range answer.Grants {
		p.underWay[call] = append(p.underWay[call], w)
	}
	return answer
}

// answer ends the calls that are under way.
func (p *played) answer(call *spec.Endpoint, o Outcome) (news bool) {
	if p.underWay[call] == nil { // it went before the limit closed
		p.underWay[call] = []*Waiter{{Endpoint: call, Class: Class{ID: classIndex(call, false)}}}
	}
	for _, w := range p.underWay[call] {
		_, news, _ = p.Done(p.now, w, o)
	}
	delete(p.underWay, call)
	return news
}

func TestCoolDown(t *testing.T) {
	for _, scene := range scenes {
		t.Run(scene.name, func(t *testing.T) {
			p := play(scene.random)
			for i, step := range scene.steps {
				p.now = h + step.at
				for n := range step.goes {
					earlier := p.underWay[step.call]
					delete(p.underWay, step.call)
					require.NotEmpty(t, p.ask(step.call, step.waiting).Grants, "step %d, call %d", i+1, n+1)
					if step.answer != nil {
						p.answer(step.call, *step.answer)
					}
					p.underWay[step.call] = append(earlier, p.underWay[step.call]...)
				}
				if step.goes == 0 && step.answer != nil {
					p.answer(step.call, *step.answer)
				}
				if step.until > 0 {
					answer := p.ask(step.call, step.waiting)
					assert.Empty(t, answer.Grants, "step %d", i+1)
					assert.Equal(t, step.until, answer.Again-h, "step %d", i+1)
				}
			}
		})
	}
}

// TestJitter is for programs that were refused together: up to a tenth of the wait
// and a quarter of a second, within half of the room that the call has. The limit's key
// and the service's own time decide who cannot wait.
func TestJitter(t *testing.T) {
	for _, tt := range []struct{ deadline, maxWait, want time.Duration }{
		{never, never / 4, 22*s + s/4},
		{21 * s, never / 4, 20*s + s/2},
		{never, 21 * s, 20*s + s/2},
		{20 * s, never / 4, 20 * s},
		{never, s, 20 * s},
	} {
		p := play(1)
		p.answer(message, *refuses("k", 20*s))
		class := Class{ID: classIndex(message, false)}
		answer := p.Ask(p.now, &Waiter{Class: class, deadline: p.now + tt.deadline, MaxWait: tt.maxWait}, 1)
		assert.Equal(t, tt.want, answer.Again-p.now, "%+v", tt)
		assert.Equal(t, p.now+20*s, answer.Opens)
		assert.Equal(t, "k", answer.Key)
	}
}

// TestNews: the begin of a cool-down, and each second that is added.
func TestNews(t *testing.T) {
	p := play(0)
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
		p.now = h + step.at
		assert.Equal(t, step.news, p.answer(read, *refuses("k", step.asked)), "%+v", step)
	}
}

// TestRetryAfterOfExtremes: at least a second where the service does not say, and no
// longer than any window.
func TestRetryAfterOfExtremes(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{-s: s, 0: s, 1: 1, 25 * h: 24 * h, math.MaxInt64: 24 * h} {
		p := play(0)
		p.answer(read, *refuses("k", asked))
		assert.Equal(t, want, p.ask(read, 1).Opens-p.now, asked)
	}
}

// TestOpenGateIsForgotten when nobody has come for a while: calls are as quick as
// before the refusal, and those of other endpoints are all the time.
func TestOpenGateIsForgotten(t *testing.T) {
	p := play(0)
	held := func(e *spec.Endpoint) bool { return p.Sort(t.Context(), &Waiter{Endpoint: e}) }
	p.answer(read, *refuses("k", s))
	assert.True(t, held(read))
	assert.False(t, held(message))
	p.now += s
	p.ask(read, 1)
	p.answer(read, *passes)
	p.now += s
	p.ask(read, 1)
	assert.False(t, held(read))
}

// TestClasses: no two endpoints share one, nor do calls that set BYOK and others.
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
