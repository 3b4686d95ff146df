package quota

import (
	"context"
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

// scene is a test of a cool-down, step by step.
type scene struct {
	name   string
	random float64 // for jitter
	steps  []step
}

// step is a moment at which calls of an endpoint wait. goes of them are granted, and the
// service answers each at once with answer; nil: not yet. If goes is 0, answer is for the
// calls that are under way. After that no call is granted before until.
type step struct {
	at      time.Duration
	call    *spec.Endpoint
	waiting int
	goes    int
	answer  *Outcome
	until   time.Duration // 0: not checked
}

// Outcomes of a call: the service accepts it; it is never sent.
var passes, unsent = &Outcome{Sent: true}, &Outcome{}

func refuses(key string, asked time.Duration) *Outcome {
	return &Outcome{Sent: true, Refused: true, LimitKey: key, RetryAfter: asked}
}

// shrunk is a gap of over 4 s after the n-th call beyond those of the last opening; see ramp.
func shrunk(gap time.Duration, n int) time.Duration { return gap - gap*time.Duration(n*16)/512 }

// grown is a gap after an opening in which fewer calls passed than in the one before.
func grown(gap time.Duration) time.Duration { return gap * 5 / 4 }

// The second wait, of a second, has little of the first one's jitter.
const second = s + (s/10+s/4)/32

var scenes = []scene{
	{name: "one goes, then two for each that passed, up to the number of the last opening, and then one after each gap", steps: []step{
		{call: message, waiting: 1, goes: 1, answer: refuses("k", 20*s), until: 20 * s},
		{at: 20 * s, call: message, waiting: 99, goes: 1, until: 21 * s}, // an answer is waited for, but no longer than a second
		{at: 20 * s, call: message, waiting: 99, answer: passes},
		{at: 20 * s, call: message, waiting: 99, goes: 2, until: 21 * s},
		{at: 20 * s, call: message, waiting: 99, answer: passes},
		{at: 20 * s, call: message, waiting: 99, goes: 4, until: 21 * s},
		{at: 20 * s, call: message, waiting: 99, answer: passes},
		{at: 20 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 70*s), until: 90 * s},
		{at: 90 * s, call: message, waiting: 99, goes: 7, answer: passes, until: 100 * s}, // 7 passed in 70 s
		{at: 100 * s, call: message, waiting: 99, goes: 1, answer: passes, until: 100*s + shrunk(10*s, 1)},
		{at: 110 * s, call: message, waiting: 99, goes: 1, answer: passes, until: 110*s + shrunk(shrunk(10*s, 1), 2)},
		{at: 110 * s, call: message, waiting: 1, until: 111 * s}, // a lone caller is not held up by the pace of many
		{at: 111 * s, call: message, waiting: 1, goes: 1, answer: passes},
		{at: 111 * s, call: message, waiting: 99, goes: 9, answer: passes}, // the pace is forgotten
	}},
	{name: "an opening teaches the next one", steps: []step{
		{call: message, waiting: 1, goes: 1, answer: refuses("k", 60*s), until: 60 * s},
		{at: 60 * s, call: message, waiting: 99, goes: 60, answer: passes},
		{at: 60 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 60*s), until: 120 * s},
		{at: 120 * s, call: message, waiting: 99, goes: 60, answer: passes, until: 121 * s}, // 60 passed in a minute
		{at: 121 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 59*s), until: 180 * s},
		{at: 180 * s, call: message, waiting: 99, goes: 12, answer: passes},
		{at: 180 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 60*s), until: 240 * s},
		{at: 240 * s, call: message, waiting: 99, goes: 30, answer: passes, until: 245 * s}, // 12 did: others were quicker, so half of 60 may go
		{at: 245 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 55*s), until: 300 * s},
		{at: 300 * s, call: message, waiting: 99, goes: 30, answer: passes, until: 302 * s},
		{at: 302 * s, call: message, waiting: 99, goes: 1, answer: passes}, // 31 passed in 512 s: the gap grows by a quarter at most
		{at: 304 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 508*s), until: 812 * s},
		{at: 812 * s, call: message, waiting: 99, goes: 31, answer: passes, until: 812*s + grown(508*s/256)},
		{at: 815 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 59*s), until: 874 * s}, // 31 passed in 62 s: a gap of 2 s
		{at: 874 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 60*s), until: 934 * s}, // nobody did: it grows by a quarter
		{at: 934 * s, call: message, waiting: 99, goes: 15, answer: passes, until: 934*s + grown(2*s)},
	}},
	{name: "a gap is 15 s at most", steps: []step{
		{call: message, waiting: 1, goes: 1, answer: refuses("k", 10*s), until: 10 * s},
		{at: 10 * s, call: message, waiting: 99, goes: 1, answer: passes},
		{at: 10 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 50*s), until: 60 * s},
		{at: 60 * s, call: message, waiting: 99, goes: 1, answer: passes, until: 75 * s}, // one passed in 50 s
	}},
	{name: "who is not answered yet has got through", steps: []step{
		{call: message, waiting: 1, goes: 1, answer: refuses("k", 10*s), until: 10 * s},
		{at: 10 * s, call: message, waiting: 99, goes: 1, until: 11 * s},
		{at: 11 * s, call: message, waiting: 99, goes: 1, until: 12 * s},
		{at: 12 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 18*s), until: 30 * s},
		{at: 30 * s, call: message, waiting: 99, goes: 2, answer: passes, until: 40 * s}, // two passed in 20 s
	}},
	{name: "an unsent call leaves its turn to another", steps: []step{
		{call: message, waiting: 1, goes: 1, answer: refuses("k", s), until: s},
		{at: s, call: message, waiting: 9, goes: 1, until: 2 * s},
		{at: s, call: message, waiting: 9, answer: unsent},
		{at: s, call: message, waiting: 9, goes: 1, until: 2 * s},
	}},
	{name: "who gets through ends the backoff", steps: []step{
		{call: message, waiting: 1, goes: 1, answer: refuses("k", s), until: s},
		{at: s, call: message, waiting: 1, goes: 1, answer: refuses("k", s), until: 2 * s},
		{at: 2 * s, call: message, waiting: 1, goes: 1, answer: passes},
		{at: 2 * s, call: message, waiting: 1, goes: 1, answer: refuses("k", s), until: 3 * s},
		{at: 3 * s, call: message, waiting: 1, goes: 1, answer: refuses("k", s), until: 4 * s},
	}},
	{name: "a name joins the endpoints at which it was seen, and the longer wait counts", steps: []step{
		{call: message, waiting: 1, goes: 1, answer: refuses("a", 10*s), until: 10 * s},
		{call: read, waiting: 1, goes: 1, answer: refuses("a", 5*s), until: 10 * s},
		{call: message, waiting: 1, until: 10 * s},
		{call: message, waiting: 1, answer: refuses("day", 5*h), until: 5 * h}, // not tried before
		{call: message, waiting: 1, answer: refuses("a", 10*s), until: 5 * h},
	}},
	{name: "without a name each endpoint is on its own", steps: []step{
		{call: create, waiting: 1, goes: 1, answer: refuses("", 10*s), until: 10 * s},
		{call: warmUp, waiting: 1, goes: 1, answer: refuses("", 20*s), until: 20 * s},
		{at: 10 * s, call: create, waiting: 1, goes: 1, answer: passes},
		{at: 10 * s, call: warmUp, waiting: 1, until: 20 * s},
	}},
	{name: "who only shares a name tries after 1, 2, 4 seconds and so on, who was refused not at all", steps: []step{
		{call: message, waiting: 1, goes: 1, answer: refuses("rate_limited", s), until: s},
		{at: s, call: message, waiting: 1, goes: 1, answer: passes},
		{at: s, call: create, waiting: 1, goes: 1, answer: refuses("rate_limited", 3*h), until: 3*h + s},
		{at: s, call: message, waiting: 9, until: 2 * s},
		{at: 2 * s, call: message, waiting: 9, goes: 1, until: 4 * s},
		{at: 4 * s, call: message, waiting: 9, goes: 1, until: 8 * s},
		{at: 8 * s, call: message, waiting: 9, goes: 1, until: 16 * s},
		{at: 16 * s, call: message, waiting: 9, goes: 1, until: 32 * s},
		{at: 32 * s, call: message, waiting: 9, goes: 1, until: 64 * s},
		{at: 64 * s, call: message, waiting: 9, goes: 1, until: 124 * s},
		{at: 124 * s, call: message, waiting: 9, goes: 1, answer: passes},
		{at: 124 * s, call: message, waiting: 9, goes: 9, answer: passes}, // it has left
		{at: 124 * s, call: create, waiting: 1, until: 3*h + s},
		{at: 3*h + s, call: create, waiting: 1, goes: 1, answer: passes},
		{at: 3*h + s, call: message, waiting: 1, goes: 1, answer: refuses("rate_limited", 9*s), until: 3*h + 10*s}, // back under the name
		{at: 3*h + s, call: create, waiting: 1, until: 3*h + 2*s},
	}},
	// Jitter makes the first wait longer than the second try would come.
	{name: "nobody who shares a name tries before a short wait is over, but where the gate backs off", random: 1, steps: []step{
		{call: message, waiting: 1, goes: 1, answer: refuses("k", s)},
		{call: read, waiting: 1, goes: 1, answer: refuses("k", s)},
		{at: h, call: message, waiting: 9, goes: 1, answer: refuses("k", s), until: h + second},
		{at: h + second, call: message, waiting: 9, goes: 1, answer: refuses("k", s)},
		{at: h + second, call: message, waiting: 9, until: h + second + 5*s/2}, // 2 s, and a quarter of jitter
		{at: h + second, call: read, waiting: 9, until: h + second + 2*s},
		{at: h + second + 2*s, call: read, waiting: 9, goes: 1},
		{at: h + second + 5*s/2, call: message, waiting: 9, goes: 1, answer: refuses("k", 80*s), until: h + second + 5*s/2 + 80*s + (8*s+s/4)/32}, // a Retry-After beyond the backoff
	}},
}

// played is a cool-down, and the calls that it let go and that are not answered yet.
type played struct {
	*CoolDown
	now      time.Duration
	underWay map[*spec.Endpoint][]*Waiter
}

func play(random float64) *played {
	rule := NewCoolDown(func() float64 { return random }).rule.(*CoolDown)
	return &played{rule, h, map[*spec.Endpoint][]*Waiter{}}
}

// sort is for a call that has all the time there is.
func (p *played) sort(call *spec.Endpoint) *Waiter {
	w := &Waiter{Endpoint: call, MaxWait: never / 4, attempt: attempt{deadline: never}}
	p.Sort(context.Background(), w)
	return w
}

// ask asks for the first of the waiting calls.
func (p *played) ask(call *spec.Endpoint, waiting int) Schedule {
	w := p.sort(call)
	p.engine.queues[w.Class] = &queue{line: line{calls: make([]*Waiter, waiting)}}
	schedule := p.Ask(p.now, w, waiting)
	for _, w.Grant = range schedule.Grants {
		p.underWay[call] = append(p.underWay[call], w)
	}
	return schedule
}

// answer ends the calls that are under way.
func (p *played) answer(call *spec.Endpoint, o Outcome) (news bool) {
	if p.underWay[call] == nil { // the call went before the limit closed
		p.underWay[call] = []*Waiter{{Endpoint: call}}
	}
	for _, w := range p.underWay[call] {
		news = p.Done(p.now, w, o)
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
					schedule := p.ask(step.call, step.waiting)
					assert.Empty(t, schedule.Grants, "step %d", i+1)
					assert.Equal(t, step.until, schedule.Again-h, "step %d", i+1)
				}
			}
		})
	}
}

// A trial that passes frees its class, unless the limit has refused another call of the class
// meanwhile: that call has to wait (interface 8.3).
func TestRefusedDuringATrial(t *testing.T) {
	p := play(0)
	p.answer(read, *refuses("k", s)) // so that read and message share the name
	p.now += s
	p.ask(read, 1)
	p.answer(message, *refuses("k", 60*s))
	p.now += s
	assert.Len(t, p.ask(read, 1).Grants, 1, "the trial")
	p.Done(p.now, p.sort(read), *refuses("k", 60*s))
	p.answer(read, *passes)
	assert.Equal(t, p.now+60*s, p.ask(read, 1).Again)
}

// A creation with a provider key spends what one without spends, so it waits too (interface
// 8.3). A creation without a key does not wait for the limit on BYOK sets.
func TestRefusedCreation(t *testing.T) {
	for _, keyed := range [][2]bool{{false, true}, {true, true}, {true, false}} { // whether the refused creation, and the next, have a key
		p, w := play(0), &Waiter{Endpoint: create, SetsBYOK: keyed[1], MaxWait: never / 4, attempt: attempt{deadline: never}}
		p.Done(p.now, &Waiter{Endpoint: create, SetsBYOK: keyed[0]}, *refuses("", h))
		p.now += h / 2
		assert.Equal(t, keyed[1], p.Sort(t.Context(), w) && p.Ask(p.now, w, 1).Grants == nil, keyed)
	}
}

// TestJitter checks the jitter, which keeps programs that were refused together apart: up to
// a tenth of the wait and a quarter of a second, but at most half of the time that the call
// has left. It does not delay Opens, by which calls are refused.
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
		w := p.sort(message)
		w.deadline, w.MaxWait = p.now+tt.deadline, tt.maxWait
		schedule := p.Ask(p.now, w, 1)
		assert.Equal(t, tt.want, schedule.Again-p.now, "%+v", tt)
		assert.Equal(t, p.now+20*s, schedule.Opens, "%+v", tt)
		assert.Equal(t, "k", schedule.Key, "%+v", tt)
	}
}

// TestNews checks that the begin of a cool-down is news, and each second that is added.
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

// When no call has come for a while, calls are as quick as before the refusal. Calls of other
// endpoints are quick all the time.
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

// A call that passes in one class counts for the patience of a class that waits under the
// same name, because the limit may be the same.
func TestTrialThatPassesKeepsOthersPatient(t *testing.T) {
	p := play(0)
	p.answer(message, *refuses("k", s))
	p.now += s
	p.ask(message, 1)
	p.answer(message, *passes)
	p.answer(create, *refuses("k", h))
	p.now += s
	p.ask(message, 1)
	p.answer(message, *passes)
	passed := p.now
	p.now += h
	p.ask(create, 1)
	p.answer(create, *refuses("k", h))
	assert.Equal(t, passed, p.ask(create, 1).RefusedSince)
}
