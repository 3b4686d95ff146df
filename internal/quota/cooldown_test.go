package quota

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

const s, h = time.Second, time.Hour

// The endpoints that the stories call.
var message, read, create, warmUp = spec.SendMessage, spec.GetAgent, spec.CreateAgent, spec.WarmUp

// step is a moment at which calls of an endpoint wait. goes of them are granted, and the
// service answers each at once with answer; nil: not yet. If goes is 0, answer is for the
// calls that are under way. After that no call is granted before until.
type step struct {
	says          string
	at            time.Duration
	call          *spec.Endpoint
	waiting, goes int
	answer        *Outcome
	until         time.Duration // 0: not checked
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

// played is a cool-down, and the calls that it let go and that are not answered yet.
type played struct {
	*CoolDown
	underWay map[*spec.Endpoint][]*Waiter
}

func play(random float64) *played {
	rule := NewCoolDown(func() float64 { return random }).rule.(*CoolDown)
	return &played{rule, map[*spec.Endpoint][]*Waiter{}}
}

// classify makes a call without a deadline.
func (p *played) classify(call *spec.Endpoint) *Waiter {
	w := &Waiter{Endpoint: call, MaxWait: Never / 4, acquisition: acquisition{deadline: Never}}
	p.Classify(context.Background(), w)
	return w
}

// ask asks at a time for the first of the waiting calls.
func (p *played) ask(at time.Duration, call *spec.Endpoint, waiting int) Schedule {
	w := p.classify(call)
	p.engine.queueLocked(w.Class).calls = make([]*Waiter, waiting)
	schedule := p.AskLocked(h+at, w, waiting)
	for _, w.Grant = range schedule.Grants {
		p.underWay[call] = append(p.underWay[call], w)
	}
	return schedule
}

// answer ends the call that went last.
func (p *played) answer(at time.Duration, call *spec.Endpoint, o *Outcome) (closedLonger bool) {
	w := &Waiter{Endpoint: call} // it went before the limit closed
	if last := len(p.underWay[call]) - 1; last >= 0 {
		w, p.underWay[call] = p.underWay[call][last], p.underWay[call][:last]
	}
	return p.DoneLocked(h+at, w, *o)
}

// coolDownRules has the rules of a cool-down, each with a story that shows it. The columns of a
// step say what happens, at which time, calls of which endpoint, how many wait, how many go,
// what answers them, and until when no other goes.
var coolDownRules = []struct {
	rule   string
	random float64 // for jitter
	story  []step
}{
	{"one goes, then two for each that passed, up to the number of the last opening, and then one after each gap", 0, []step{
		{"a call is refused for 20 s", 0, message, 1, 1, refuses("k", 20*s), 20 * s},
		{"one goes, whose answer is waited for a second", 20 * s, message, 99, 1, nil, 21 * s},
		{"the first passes", 20 * s, message, 99, 0, passes, 0},
		{"two more go", 20 * s, message, 99, 2, nil, 21 * s},
		{"both pass", 20 * s, message, 99, 0, passes, 0},
		{"four more go", 20 * s, message, 99, 4, nil, 21 * s},
		{"all pass", 20 * s, message, 99, 0, passes, 0},
		{"the eighth is refused", 20 * s, message, 99, 1, refuses("k", 70*s), 90 * s},
		{"as many go as then, and 7 in 70 s is a gap of 10 s", 90 * s, message, 99, 7, passes, 100 * s},
		{"one goes after the gap, which shrinks", 100 * s, message, 99, 1, passes, 100*s + shrunk(10*s, 1)},
		{"and shrinks more, for two who wait", 110 * s, message, 2, 1, passes, 110*s + shrunk(shrunk(10*s, 1), 2)},
		{"a lone caller is not held up by the pace of many", 110 * s, message, 1, 0, nil, 111 * s},
		{"it goes after a second", 111 * s, message, 1, 1, passes, 0},
		{"and the pace is forgotten", 111 * s, message, 99, 9, passes, 0},
	}},
	{"an opening teaches the next one", 0, []step{
		{"a call is refused for 60 s", 0, message, 1, 1, refuses("k", 60*s), 60 * s},
		{"all pass in the first opening", 60 * s, message, 99, 60, passes, 0},
		{"but the 61st is refused", 60 * s, message, 99, 1, refuses("k", 60*s), 120 * s},
		{"60 passed in 60 s, so 60 go at once and one a second", 120 * s, message, 99, 60, passes, 121 * s},
		{"the next is refused", 121 * s, message, 99, 1, refuses("k", 59*s), 180 * s},
		{"12 pass", 180 * s, message, 99, 12, passes, 0},
		{"others were quicker, so the next is refused", 180 * s, message, 99, 1, refuses("k", 60*s), 240 * s},
		{"half of 60 go at once, and 12 in 60 s is a gap of 5 s", 240 * s, message, 99, 30, passes, 245 * s},
		{"the next is refused", 245 * s, message, 99, 1, refuses("k", 55*s), 300 * s},
		{"30 passed in 60 s, so the gap is 2 s", 300 * s, message, 99, 30, passes, 302 * s},
		{"one more passes", 302 * s, message, 99, 1, passes, 0},
		{"the next is refused for long", 304 * s, message, 99, 1, refuses("k", 508*s), 812 * s},
		{"31 passed in 512 s, but the gap grows by a quarter at most", 812 * s, message, 99, 31, passes, 812*s + grown(508*s/256)},
		{"the next is refused", 815 * s, message, 99, 1, refuses("k", 59*s), 874 * s},
		{"31 passed in 62 s, so the gap is 2 s again", 874 * s, message, 99, 1, refuses("k", 60*s), 934 * s},
		{"nobody passed, so the gap grows by a quarter", 934 * s, message, 99, 15, passes, 934*s + grown(2*s)},
		{"a 16th passes", 938 * s, message, 99, 1, passes, 0},
		{"the next is refused", 942 * s, message, 99, 1, refuses("k", 6*s), 948 * s},
		{"more passed than before, and 16 in 14 s is a gap below a second", 948 * s, message, 99, 16, passes, 948*s + 14*s/16},
	}},
	{"a gap is 15 s at most", 0, []step{
		{"a call is refused for 10 s", 0, message, 1, 1, refuses("k", 10*s), 10 * s},
		{"one passes", 10 * s, message, 99, 1, passes, 0},
		{"the next is refused for 50 s", 10 * s, message, 99, 1, refuses("k", 50*s), 60 * s},
		{"one passed in 50 s", 60 * s, message, 99, 1, passes, 75 * s},
	}},
	{"a call without an answer counts as passed", 0, []step{
		{"a call is refused for 10 s", 0, message, 1, 1, refuses("k", 10*s), 10 * s},
		{"one goes", 10 * s, message, 99, 1, nil, 11 * s},
		{"another one goes", 11 * s, message, 1, 1, nil, 12 * s},
		{"the third is refused", 12 * s, message, 99, 1, refuses("k", 18*s), 30 * s},
		{"two passed in 20 s", 30 * s, message, 99, 2, passes, 40 * s},
	}},
	{"an unsent call leaves its turn to another", 0, []step{
		{"a call is refused for a second", 0, message, 1, 1, refuses("k", s), s},
		{"one goes", s, message, 9, 1, nil, 2 * s},
		{"but is not sent", s, message, 9, 0, unsent, 0},
		{"another one goes", s, message, 9, 1, nil, 2 * s},
	}},
	{"a call that passes ends the backoff", 0, []step{
		{"a call is refused for a second", 0, message, 1, 1, refuses("k", s), s},
		{"and again", s, message, 1, 1, refuses("k", s), 2 * s},
		{"it gets through", 2 * s, message, 1, 1, passes, 0},
		{"the next is refused for a second", 2 * s, message, 1, 1, refuses("k", s), 3 * s},
		{"and again, for no longer", 3 * s, message, 1, 1, refuses("k", s), 4 * s},
	}},
	{"a name joins the endpoints at which it was seen, and the longer wait counts", 0, []step{
		{"a message is refused for 10 s", 0, message, 1, 1, refuses("a", 10*s), 10 * s},
		{"a read under the same name for 5 s, but waits for 10 s", 0, read, 1, 1, refuses("a", 5*s), 10 * s},
		{"so does a message", 0, message, 1, 0, nil, 10 * s},
		{"under another name for 5 h, before which none tries", 0, message, 1, 0, refuses("day", 5*h), 5 * h},
		{"a shorter wait under the first name changes nothing", 0, message, 1, 0, refuses("a", 10*s), 5 * h},
	}},
	{"each name is on its own, and without a name each endpoint", 0, []step{
		{"a message is refused for 30 s", 0, message, 1, 1, refuses("a", 30*s), 30 * s},
		{"a read under another name for 25 s", 0, read, 1, 1, refuses("b", 25*s), 25 * s},
		{"a creation is refused for 10 s", 0, create, 1, 1, refuses("", 10*s), 10 * s},
		{"a warm-up for 20 s", 0, warmUp, 1, 1, refuses("", 20*s), 20 * s},
		{"the creation goes", 10 * s, create, 1, 1, passes, 0},
		{"the warm-up waits", 10 * s, warmUp, 1, 0, nil, 20 * s},
	}},
	{"a class that only shares a name tries once a second; a refused class does not", 0, []step{
		{"a message is refused", 0, message, 1, 1, refuses("rate_limited", s), s},
		{"and passes", s, message, 1, 1, passes, 0},
		{"a creation is refused for 3 h", s, create, 1, 1, refuses("rate_limited", 3*h), 3*h + s},
		{"a message shares the name", s, message, 9, 0, nil, 2 * s},
		{"one tries after 1 s", 2 * s, message, 9, 1, nil, 3 * s},
		{"and another one, while no answer comes", 3 * s, message, 9, 1, nil, 4 * s},
		{"one passes", 4 * s, message, 9, 1, passes, 0},
		{"messages have left the name", 4 * s, message, 9, 9, passes, 0},
		{"a creation waits", 4 * s, create, 1, 0, nil, 3*h + s},
		{"and passes", 3*h + s, create, 1, 1, passes, 0},
		{"a message is back under the name", 3*h + s, message, 1, 1, refuses("rate_limited", 9*s), 3*h + 10*s},
		{"and a creation shares it", 3*h + s, create, 1, 0, nil, 3*h + 2*s},
	}},
	// Jitter makes the first wait longer than the second try would come.
	{"a class that only shares a name waits out a short limit, unless the gate backs off", 1, []step{
		{"a message is refused", 0, message, 1, 1, refuses("k", s), 0},
		{"a read too", 0, read, 1, 1, refuses("k", s), 0},
		{"the message once more", h, message, 9, 1, refuses("k", s), h + second},
		{"and once more", h + second, message, 9, 1, refuses("k", s), 0},
		{"it waits for 2 s, and a quarter of jitter", h + second, message, 9, 0, nil, h + second + 5*s/2},
		{"a read tries after 2 s", h + second, read, 9, 0, nil, h + second + 2*s},
		{"it goes", h + second + 2*s, read, 9, 1, nil, 0},
		{"a Retry-After counts beyond the backoff", h + second + 5*s/2, message, 9, 1, refuses("k", 80*s), h + second + 5*s/2 + 80*s + (8*s+s/4)/32},
	}},
}

func TestCoolDown(t *testing.T) {
	for _, tt := range coolDownRules {
		t.Run(tt.rule, func(t *testing.T) {
			p := play(tt.random)
			for _, step := range tt.story {
				for n := range step.goes {
					require.Len(t, p.ask(step.at, step.call, step.waiting).Grants, 1, "%s: call %d of %d", step.says, n+1, step.goes)
					if step.answer != nil {
						p.answer(step.at, step.call, step.answer)
					}
				}
				if step.goes == 0 && step.answer != nil {
					for range max(1, len(p.underWay[step.call])) {
						p.answer(step.at, step.call, step.answer)
					}
				}
				if step.until > 0 {
					schedule := p.ask(step.at, step.call, step.waiting)
					assert.Empty(t, schedule.Grants, step.says)
					assert.Equal(t, step.until, schedule.AskAgain-h, "%s: until when no other goes", step.says)
					assert.LessOrEqual(t, schedule.AskAgain, schedule.Turn, "%s: the forecast of the wait", step.says)
				}
			}
		})
	}
}

// A trial that passes frees its class, unless the limit has refused another call of the class
// meanwhile: that call has to wait (interface 8.3).
func TestRefusedDuringATrial(t *testing.T) {
	p := play(0)
	p.answer(0, read, refuses("k", s)) // so that read and message share the name
	p.ask(s, read, 1)
	p.answer(s, message, refuses("k", 60*s))
	assert.Empty(t, p.ask(2*s, read, 0).Grants, "a forecast")
	assert.True(t, p.ask(2*s, read, 1).Grants[0].ReportSuccess, "the trial, which frees the class if it passes")
	p.DoneLocked(h+2*s, p.classify(read), *refuses("k", 60*s))
	p.answer(2*s, read, passes)
	assert.Equal(t, h+62*s, p.ask(2*s, read, 1).AskAgain)
}

// A call that passes shrinks the gap by a half at most, however many have passed.
func TestGapShrinksByAHalf(t *testing.T) {
	r := &ramp{gap: 10 * s, passed: 39}
	r.record(*passes)
	assert.Equal(t, 5*s, r.gap)
}

// A caller's patience counts from the last call that passed, not from when the caller came.
func TestPatienceCountsFromTheLastPass(t *testing.T) {
	g, w := &gate{closedAt: h, retryAfter: 60 * s, lastAccepted: h, ramp: &ramp{failedBefore: 2}}, reading()
	w.limitedSince, w.deadline = h-4*time.Minute, Never
	assert.Equal(t, h+64*s, g.closedSchedule(w, 1).Opens, "after the longest backoff: patience lasts until h + 5 min")
}

// At a limit that has closed for the first time, patience counts from then, even if the call has
// waited for another limit before.
func TestPatienceBeginsAtEachLimit(t *testing.T) {
	p := play(0)
	p.answer(0, message, refuses("minute", 600*s))
	p.answer(600*s, message, refuses("day", 10*s))
	p.ask(610*s, message, 9)
	p.answer(610*s, message, refuses("day", 10*s))
	schedule := p.ask(611*s, message, 9)
	assert.Equal(t, []time.Duration{h + 600*s, h + 610*s}, []time.Duration{schedule.RefusedSince, schedule.RefusedUntil})
}

// A creation with a provider key spends what one without spends, so it waits too (interface
// 8.3). A creation without a key does not wait for the limit on BYOK sets.
func TestRefusedCreation(t *testing.T) {
	for _, tt := range []struct{ refusedHasKey, nextHasKey, waits bool }{
		{false, true, true},
		{true, true, true},
		{true, false, false},
	} {
		for _, before := range []bool{false, true} { // a creation without a key was refused before, for a second
			p, w := play(0), &Waiter{Endpoint: create, SetsBYOK: tt.nextHasKey, MaxWait: Never / 4, acquisition: acquisition{deadline: Never}}
			if before {
				p.DoneLocked(h/2, &Waiter{Endpoint: create}, *refuses("", s))
			}
			p.DoneLocked(h, &Waiter{Endpoint: create, SetsBYOK: tt.refusedHasKey}, *refuses("", h))
			waits := p.Classify(t.Context(), w)
			schedule := p.AskLocked(h+h/2, w, 1)
			waits = waits && schedule.Grants == nil
			assert.Equal(t, tt.waits, waits, "%+v %v", tt, before)
		}
	}
}

// Jitter keeps programs that were refused together apart: up to a tenth of the wait and a
// quarter of a second, but at most half of the time that the call has left. It does not delay
// Opens, by which calls are refused.
func TestJitter(t *testing.T) {
	for _, tt := range []struct{ deadline, maxWait, want time.Duration }{
		{Never, Never / 4, 22*s + s/4},
		{21 * s, Never / 4, 20*s + s/2},
		{Never, 21 * s, 20*s + s/2},
		{20 * s, Never / 4, 20 * s},
		{Never, s, 20 * s},
	} {
		p := play(1)
		p.answer(0, message, refuses("k", 20*s))
		w := p.classify(message)
		w.deadline, w.MaxWait = h+tt.deadline, tt.maxWait
		schedule := p.AskLocked(h, w, 1)
		assert.Equal(t, tt.want, schedule.AskAgain-h, "%+v", tt)
		assert.Equal(t, h+20*s, schedule.Opens, "%+v", tt)
		assert.Equal(t, "k", schedule.Key, "%+v", tt)
	}
}

// A refusal that begins a cool-down is reported, and one that makes it a second longer.
func TestClosedLonger(t *testing.T) {
	p := play(0)
	for _, tt := range []struct {
		at, asked time.Duration
		want      bool
	}{
		{0, 10 * s, true},
		{0, 10 * s, false},
		{999 * time.Millisecond, 10 * s, false},
		{2 * s, 10 * s, true},
		{2 * s, 5 * s, false},
		{2100 * time.Millisecond, 10 * s, false},
		{3100 * time.Millisecond, 10 * s, true},
	} {
		assert.Equal(t, tt.want, p.answer(tt.at, read, refuses("", tt.asked)), "%+v", tt)
	}
	assert.False(t, p.answer(3*s, read, refuses("another", 5*s)), "reads wait for longer already")
}

// When no call has come for a while, calls are as quick as before the refusal. Calls of other
// endpoints are quick all the time.
func TestOpenGateIsForgotten(t *testing.T) {
	p := play(0)
	asks := func(e *spec.Endpoint) bool { return p.Classify(t.Context(), &Waiter{Endpoint: e}) }
	p.answer(0, read, refuses("k", s))
	assert.True(t, asks(read), "a read after its refusal")
	assert.False(t, asks(message), "a message after the refusal of a read")
	p.ask(s, read, 1)
	p.answer(s, read, passes)
	p.ask(2*s, read, 1)
	assert.False(t, asks(read), "a read a second after the last one")
}

// The patience of a class also counts from a call that passes in another class with the same
// limit_key, because the limit may be the same.
func TestTrialThatPassesKeepsOthersPatient(t *testing.T) {
	p := play(0)
	p.answer(0, message, refuses("k", s))
	p.ask(s, message, 1)
	p.answer(s, message, passes)
	p.answer(s, create, refuses("k", h))
	p.ask(2*s, message, 1)
	p.answer(2*s, message, passes)
	p.ask(h+2*s, create, 1)
	p.answer(h+2*s, create, refuses("k", h))
	assert.Equal(t, h+2*s, p.ask(h+2*s, create, 1).RefusedSince)
}

// A frozen program opens a gate late. Patience counts only the time until it was due to open.
func TestLateOpening(t *testing.T) {
	p := play(0)
	p.answer(0, read, refuses("k", s))
	p.ask(9*s, read, 1)
	p.answer(9*s, read, refuses("k", s))
	assert.Equal(t, h+s, p.ask(9*s, read, 1).RefusedUntil)
}
