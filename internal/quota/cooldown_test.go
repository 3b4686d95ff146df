package quota

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

const s, h = time.Second, time.Hour

// The endpoints that the stories call.
var message, read, create, warmUp = spec.SendMessage, spec.GetAgent, spec.CreateAgent, spec.WarmUp

// step is a moment at which calls of an endpoint wait. First the calls that are under way end.
// Then some of the waiting calls go. After that no call goes before until.
type step struct {
	says          string
	at            time.Duration
	call          *spec.Endpoint
	ends          *Outcome // of each call under way, or if there is none, of a call that went before the limit closed; nil: none ends
	waiting, goes int
	answer        *Outcome         // to each call that goes, at once; nil: not yet
	until         time.Duration    // 0: not checked
	refused       [2]time.Duration // since when and until when nobody got through, from which patience counts; zero: not checked
}

// Outcomes of a call: the service accepts it; it is never sent.
var passes, unsent = &Outcome{Sent: true}, &Outcome{}

func refuses(key string, asked time.Duration) *Outcome {
	return &Outcome{Sent: true, Refused: true, LimitKey: key, RetryAfter: asked}
}

// shrunk is the next gap after one of more than 4 s, if the n-th call beyond the number of the last
// opening passes: a gap of a second would shrink by n/512, and a long one 4*4 times as fast.
func shrunk(gap time.Duration, n int) time.Duration { return gap - gap*time.Duration(n*4*4)/512 }

// grown is the next gap, if no call passed in an opening.
func grown(gap time.Duration) time.Duration { return gap * 5 / 4 }

// starved is the longest wait of calls that were refused when their limit opened. The jitter, of up
// to a tenth of the wait and a quarter of a second, is divided by 32 for them.
func starved(wait time.Duration) time.Duration { return wait + (wait/10+s/4)/32 }

// The last story has two such waits of a second and a backoff of 2 s with a quarter of jitter.
var secondTry, thirdTry = h + starved(s), h + starved(s) + 2*s + 2*s/4

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
func (p *played) classify(call *spec.Endpoint) *Waiter { w, _ := p.asks(call, false); return w }

// asks makes a call without a deadline, and reports whether the engine must ask about it.
func (p *played) asks(call *spec.Endpoint, setsBYOK bool) (*Waiter, bool) {
	w := &Waiter{Endpoint: call, SetsBYOK: setsBYOK, MaxWait: Never / 4, acquisition: acquisition{deadline: Never}}
	return w, p.Classify(context.Background(), w)
}

// ask asks at a time for the first of the waiting calls, which are all alike.
func (p *played) ask(at time.Duration, call *spec.Endpoint, waiting int) Schedule {
	w := p.classify(call)
	p.engine.queueLocked(w.Class).calls = slices.Repeat([]*Waiter{w}, waiting)
	schedule := p.AskLocked(h+at, w, waiting)
	for _, w.Grant = range schedule.Grants {
		p.underWay[call] = append(p.underWay[call], w)
	}
	return schedule
}

// answer ends the call that went last.
func (p *played) answer(at time.Duration, call *spec.Endpoint, o *Outcome) (closedLonger bool) {
	w := p.classify(call) // it went before the limit closed
	if last := len(p.underWay[call]) - 1; last >= 0 {
		w, p.underWay[call] = p.underWay[call][last], p.underWay[call][:last]
	}
	return p.DoneLocked(h+at, w, *o)
}

// coolDownRules has the rules of a cool-down, each with a story that shows it.
var coolDownRules = []struct {
	rule   string
	random float64 // for jitter
	story  []step
}{
	{rule: "one goes, then two for each that passed, up to the number of the last opening, and then one after each gap", story: []step{
		{says: "a call is refused for 20 s", call: message, waiting: 1, goes: 1, answer: refuses("k", 20*s), until: 20 * s},
		{says: "one goes, whose answer is waited for a second", at: 20 * s, call: message, waiting: 99, goes: 1, until: 21 * s},
		{says: "it passes, and two more go", at: 20 * s, call: message, ends: passes, waiting: 99, goes: 2, until: 21 * s},
		{says: "both pass, and four more go", at: 20 * s, call: message, ends: passes, waiting: 99, goes: 4, until: 21 * s},
		{says: "all pass, and the eighth is refused", at: 20 * s, call: message, ends: passes, waiting: 99, goes: 1, answer: refuses("k", 70*s), until: 90 * s},
		{says: "as many go as then, and 7 in 70 s is a gap of 10 s", at: 90 * s, call: message, waiting: 99, goes: 7, answer: passes, until: 100 * s},
		{says: "one goes after the gap, which shrinks", at: 100 * s, call: message, waiting: 99, goes: 1, answer: passes, until: 100*s + shrunk(10*s, 1)},
		{says: "and shrinks more, for two who wait", at: 110 * s, call: message, waiting: 2, goes: 1, answer: passes, until: 110*s + shrunk(shrunk(10*s, 1), 2)},
		{says: "a lone caller is not held up by the pace of many", at: 110 * s, call: message, waiting: 1, until: 111 * s},
		{says: "it goes after a second", at: 111 * s, call: message, waiting: 1, goes: 1, answer: passes},
		{says: "and the pace is forgotten", at: 111 * s, call: message, waiting: 99, goes: 9, answer: passes},
	}},
	{rule: "an opening teaches the next one", story: []step{
		{says: "a call is refused for 60 s", call: message, waiting: 1, goes: 1, answer: refuses("k", 60*s), until: 60 * s},
		{says: "all pass in the first opening", at: 60 * s, call: message, waiting: 99, goes: 60, answer: passes},
		{says: "but the 61st is refused", at: 60 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 60*s), until: 120 * s},
		{says: "60 passed in 60 s, so 60 go at once and one a second", at: 120 * s, call: message, waiting: 99, goes: 60, answer: passes, until: 121 * s},
		{says: "the next is refused", at: 121 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 59*s), until: 180 * s},
		{says: "12 pass", at: 180 * s, call: message, waiting: 99, goes: 12, answer: passes},
		{says: "others were quicker, so the next is refused", at: 180 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 60*s), until: 240 * s},
		{says: "half of 60 go at once, and 12 in 60 s is a gap of 5 s", at: 240 * s, call: message, waiting: 99, goes: 30, answer: passes, until: 245 * s},
		{says: "the next is refused", at: 245 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 55*s), until: 300 * s},
		{says: "30 passed in 60 s, so the gap is 2 s", at: 300 * s, call: message, waiting: 99, goes: 30, answer: passes, until: 302 * s},
		{says: "one more passes", at: 302 * s, call: message, waiting: 99, goes: 1, answer: passes},
		{says: "the next is refused for long", at: 304 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 508*s), until: 812 * s},
		{says: "31 passed in 512 s, and a gap is 15 s at most", at: 812 * s, call: message, waiting: 99, goes: 31, answer: passes, until: 827 * s},
		{says: "the next is refused", at: 827 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 47*s), until: 874 * s},
		{says: "31 passed in 62 s, so the gap is 2 s again", at: 874 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 60*s), until: 934 * s},
		{says: "nobody passed, so one goes, in case other programs have waited too", at: 934 * s, call: message, waiting: 99, goes: 1, answer: passes, until: 935 * s},
		{says: "half of 31 in all, and the gap has grown by a quarter", at: 935 * s, call: message, waiting: 99, goes: 14, answer: passes, until: 935*s + grown(2*s)},
		{says: "a 16th passes", at: 938 * s, call: message, waiting: 99, goes: 1, answer: passes},
		{says: "the next is refused", at: 942 * s, call: message, waiting: 99, goes: 1, answer: refuses("k", 6*s), until: 948 * s},
		{says: "more passed than before, and 16 in 14 s is a gap below a second", at: 948 * s, call: message, waiting: 99, goes: 16, answer: passes, until: 948*s + 14*s/16},
	}},
	{rule: "an unsent call leaves its turn to another; one without an answer counts as passed, so patience counts from the refusal after it", story: []step{
		{says: "a call is refused for a second", call: message, waiting: 1, goes: 1, answer: refuses("k", s), until: s},
		{says: "one goes", at: s, call: message, waiting: 9, goes: 1, until: 2 * s},
		{says: "but is not sent, so another one goes", at: s, call: message, ends: unsent, waiting: 9, goes: 1, until: 2 * s},
		{says: "it gets no answer, and another one is refused", at: 2 * s, call: message, waiting: 9, goes: 1, answer: refuses("k", s), until: 3 * s},
		{says: "and the next, too", at: 3 * s, call: message, waiting: 9, goes: 1, answer: refuses("k", s), until: 4 * s, refused: [2]time.Duration{2 * s, 3 * s}},
	}},
	{rule: "a call that passes ends the backoff", story: []step{
		{says: "a call is refused for a second", call: message, waiting: 1, goes: 1, answer: refuses("k", s), until: s},
		{says: "and again", at: s, call: message, waiting: 1, goes: 1, answer: refuses("k", s), until: 2 * s},
		{says: "it gets through", at: 2 * s, call: message, waiting: 9, goes: 1, answer: passes, until: 3 * s},
		{says: "the next is refused for a second", at: 3 * s, call: message, waiting: 9, goes: 1, answer: refuses("k", s), until: 4 * s},
		{says: "and again, for no longer", at: 4 * s, call: message, waiting: 9, goes: 1, answer: refuses("k", s), until: 5 * s},
	}},
	{rule: "a name joins the endpoints at which it was seen, and the longer wait counts", story: []step{
		{says: "a message is refused for 10 s", call: message, waiting: 1, goes: 1, answer: refuses("a", 10*s), until: 10 * s},
		{says: "a read under the same name for 5 s, but waits for 10 s", call: read, waiting: 1, goes: 1, answer: refuses("a", 5*s), until: 10 * s},
		{says: "so does a message", call: message, waiting: 1, until: 10 * s},
		{says: "under another name for 5 h, before which none tries", call: message, ends: refuses("day", 5*h), waiting: 1, until: 5 * h},
		{says: "a shorter wait under the first name changes nothing", call: message, ends: refuses("a", 10*s), waiting: 1, until: 5 * h},
	}},
	{rule: "each name is on its own, and without a name each endpoint", story: []step{
		{says: "a message is refused for 30 s", call: message, waiting: 1, goes: 1, answer: refuses("a", 30*s), until: 30 * s},
		{says: "a read under another name for 25 s", call: read, waiting: 1, goes: 1, answer: refuses("b", 25*s), until: 25 * s},
		{says: "a creation is refused for 10 s", call: create, waiting: 1, goes: 1, answer: refuses("", 10*s), until: 10 * s},
		{says: "a warm-up for 20 s", call: warmUp, waiting: 1, goes: 1, answer: refuses("", 20*s), until: 20 * s},
		{says: "the creation goes", at: 10 * s, call: create, waiting: 1, goes: 1, answer: passes},
		{says: "the warm-up waits", at: 10 * s, call: warmUp, waiting: 1, until: 20 * s},
	}},
	{rule: "a class that only shares a name tries once a second; a refused class does not", story: []step{
		{says: "a message is refused", call: message, waiting: 1, goes: 1, answer: refuses("rate_limited", s), until: s},
		{says: "and passes", at: s, call: message, waiting: 1, goes: 1, answer: passes},
		{says: "a creation is refused for 3 h", at: s, call: create, waiting: 1, goes: 1, answer: refuses("rate_limited", 3*h), until: 3*h + s},
		{says: "a message shares the name", at: s, call: message, waiting: 9, until: 2 * s},
		{says: "one tries after 1 s", at: 2 * s, call: message, waiting: 9, goes: 1, until: 3 * s},
		{says: "and another one, while no answer comes", at: 3 * s, call: message, waiting: 9, goes: 1, until: 4 * s},
		{says: "one passes", at: 4 * s, call: message, waiting: 9, goes: 1, answer: passes},
		{says: "messages have left the name", at: 4 * s, call: message, waiting: 9, goes: 9, answer: passes},
		{says: "a creation waits", at: 4 * s, call: create, waiting: 1, until: 3*h + s},
		{says: "and passes", at: 3*h + s, call: create, waiting: 1, goes: 1, answer: passes},
		{says: "a message is back under the name", at: 3*h + s, call: message, waiting: 1, goes: 1, answer: refuses("rate_limited", 9*s), until: 3*h + 10*s},
		{says: "and a creation shares it", at: 3*h + s, call: create, waiting: 1, until: 3*h + 2*s},
	}},
	{rule: "at a limit that has closed for the first time, patience counts from then", story: []step{
		{says: "a message is refused for 10 minutes", call: message, waiting: 1, goes: 1, answer: refuses("minute", 600*s), until: 600 * s},
		{says: "then, at another limit, one that went before, for 10 s", at: 600 * s, call: message, ends: refuses("day", 10*s)},
		{says: "and there once more", at: 610 * s, call: message, waiting: 9, goes: 1, answer: refuses("day", 10*s), until: 620 * s, refused: [2]time.Duration{600 * s, 610 * s}},
	}},
	{rule: "a trial that passes keeps the other class of the same name patient, because the limit may be the same", story: []step{
		{says: "a message is refused", call: message, waiting: 1, goes: 1, answer: refuses("k", s), until: s},
		{says: "and passes", at: s, call: message, waiting: 1, goes: 1, answer: passes},
		{says: "a creation is refused for an hour", at: s, call: create, waiting: 1, goes: 1, answer: refuses("k", h), until: h + s},
		{says: "a message passes", at: 2 * s, call: message, waiting: 1, goes: 1, answer: passes},
		{says: "the creation is refused again", at: h + 2*s, call: create, waiting: 1, goes: 1, answer: refuses("k", h), until: 2*h + 2*s, refused: [2]time.Duration{2 * s, h + s}},
	}},
	{rule: "a frozen program opens a gate late, but patience counts only the time until it was due to open", story: []step{
		{says: "a read is refused for a second", call: read, waiting: 1, goes: 1, answer: refuses("k", s), until: s},
		{says: "and 8 s late once more", at: 9 * s, call: read, waiting: 1, goes: 1, answer: refuses("k", s), until: 10 * s, refused: [2]time.Duration{0, s}},
	}},
	// Jitter makes the first wait longer than the second try would come.
	{rule: "a class that only shares a name waits out a short limit, unless the gate backs off", random: 1, story: []step{
		{says: "a message is refused", call: message, waiting: 1, goes: 1, answer: refuses("k", s)},
		{says: "a read too", call: read, waiting: 1, goes: 1, answer: refuses("k", s)},
		{says: "the message once more", at: h, call: message, waiting: 9, goes: 1, answer: refuses("k", s), until: secondTry},
		{says: "and once more", at: secondTry, call: message, waiting: 9, goes: 1, answer: refuses("k", s)},
		{says: "it waits for 2 s, and a quarter of jitter", at: secondTry, call: message, waiting: 9, until: thirdTry},
		{says: "a read tries after 2 s", at: secondTry, call: read, waiting: 9, until: secondTry + 2*s},
		{says: "it goes", at: secondTry + 2*s, call: read, waiting: 9, goes: 1},
		{says: "a Retry-After counts beyond the backoff", at: thirdTry, call: message, waiting: 9, goes: 1, answer: refuses("k", 80*s), until: thirdTry + starved(80*s)},
	}},
}

func TestCoolDown(t *testing.T) {
	for _, tt := range coolDownRules {
		t.Run(tt.rule, func(t *testing.T) {
			p := play(tt.random)
			for _, step := range tt.story {
				if step.ends != nil {
					for range max(1, len(p.underWay[step.call])) {
						p.answer(step.at, step.call, step.ends)
					}
				}
				for n := range step.goes {
					require.Len(t, p.ask(step.at, step.call, step.waiting).Grants, 1, "%s: call %d of %d", step.says, n+1, step.goes)
					if step.answer != nil {
						p.answer(step.at, step.call, step.answer)
					}
				}
				if step.until > 0 {
					schedule := p.ask(step.at, step.call, step.waiting)
					assert.Empty(t, schedule.Grants, step.says)
					assert.Equal(t, step.until, schedule.AskAgain-h, "%s: until when no other goes", step.says)
					assert.LessOrEqual(t, schedule.AskAgain, schedule.Turn, "%s: the forecast of the wait", step.says)
					if step.refused[1] > 0 {
						assert.Equal(t, step.refused, [2]time.Duration{schedule.RefusedSince - h, schedule.RefusedUntil - h}, "%s: since when and until when nobody got through", step.says)
					}
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
	g, w := &gate{closedAt: h, retryAfter: 60 * s, refusedSince: h, ramp: &ramp{failedBefore: 2}}, reading()
	w.limitedSince, w.deadline = h-4*time.Minute, Never
	assert.Equal(t, h+64*s, g.closedSchedule(w, 1).Opens, "after the longest backoff: patience lasts until h + 5 min")
}

// A creation with a provider key spends what one without spends, so it waits too (interface
// 8.3). A creation without a key does not wait for the limit on BYOK sets.
func TestRefusedCreation(t *testing.T) {
	for rule, tt := range map[string]struct{ refusedHasKey, nextHasKey, waits bool }{
		"one with a key waits after one without":      {nextHasKey: true, waits: true},
		"one with a key waits after one with a key":   {refusedHasKey: true, nextHasKey: true, waits: true},
		"one without a key goes after one with a key": {refusedHasKey: true},
	} {
		for _, before := range []bool{false, true} { // whether a creation without a key was refused before, for a second
			p := play(0)
			if before {
				p.DoneLocked(h/2, p.classify(create), *refuses("", s))
			}
			refused, _ := p.asks(create, tt.refusedHasKey)
			p.DoneLocked(h, refused, *refuses("", h))
			w, waits := p.asks(create, tt.nextHasKey)
			schedule := p.AskLocked(h+h/2, w, 1)
			waits = waits && schedule.Grants == nil
			assert.Equal(t, tt.waits, waits, "%s; one without a key was refused before: %t", rule, before)
		}
	}
}

// Jitter keeps programs that were refused together apart: up to a tenth of the wait and a
// quarter of a second, but at most half of the time that the call has left. It does not delay
// Opens, by which calls are refused.
func TestJitter(t *testing.T) {
	for rule, tt := range map[string]struct{ deadline, maxWait, want time.Duration }{
		"a tenth of the wait and a quarter of a second":      {deadline: Never, maxWait: Never / 4, want: 22*s + s/4},
		"half of the second until the deadline":              {deadline: 21 * s, maxWait: Never / 4, want: 20*s + s/2},
		"half of the second until the end of MaxWait":        {deadline: Never, maxWait: 21 * s, want: 20*s + s/2},
		"none, if the deadline is over when the limit opens": {deadline: 20 * s, maxWait: Never / 4, want: 20 * s},
		"none, if MaxWait is over when the limit opens":      {deadline: Never, maxWait: s, want: 20 * s},
	} {
		p := play(1)
		p.answer(0, message, refuses("k", 20*s))
		w := p.classify(message)
		w.deadline, w.MaxWait = h+tt.deadline, tt.maxWait
		schedule := p.AskLocked(h, w, 1)
		assert.Equal(t, tt.want, schedule.AskAgain-h, "%s: when the next call goes", rule)
		assert.Equal(t, 20*s, schedule.Opens-h, "%s: when the limit opens", rule)
		assert.Equal(t, "k", schedule.LimitKey, rule)
	}
}

// A refusal that begins a cool-down is reported, and one that makes it a second longer.
func TestClosedLonger(t *testing.T) {
	p := play(0)
	for _, tt := range []struct {
		says           string
		at, retryAfter time.Duration
		want           bool
	}{
		{says: "the first refusal", retryAfter: 10 * s, want: true},
		{says: "longer by less than a second", at: 999 * time.Millisecond, retryAfter: 10 * s},
		{says: "longer by 2 s", at: 2 * s, retryAfter: 10 * s, want: true},
		{says: "shorter", at: 2 * s, retryAfter: 5 * s},
		{says: "longer by 0.1 s than the longest", at: 2100 * time.Millisecond, retryAfter: 10 * s},
		{says: "longer by 1.1 s than the longest", at: 3100 * time.Millisecond, retryAfter: 10 * s, want: true},
	} {
		assert.Equal(t, tt.want, p.answer(tt.at, read, refuses("", tt.retryAfter)), tt.says)
	}
	assert.False(t, p.answer(3*s, read, refuses("another", 5*s)), "reads wait for longer already")
}

// When no call has come for a while, calls are as quick as before the refusal. Calls of other
// endpoints are quick all the time.
func TestOpenGateIsForgotten(t *testing.T) {
	p := play(0)
	asks := func(e *spec.Endpoint) bool { _, must := p.asks(e, false); return must }
	p.answer(0, read, refuses("k", s))
	assert.True(t, asks(read), "a read after its refusal")
	assert.False(t, asks(message), "a message after the refusal of a read")
	p.ask(s, read, 1)
	p.answer(s, read, passes)
	p.ask(2*s, read, 1)
	assert.False(t, asks(read), "a read a second after the last one")
}
