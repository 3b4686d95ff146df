package cooldown

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// goes lets go who may, with so many attempts left.
func (t *turns) goes(left int, now time.Time) (n int) {
	for ; t.allow(left <= 0, now); n++ {
		t.send(left, now)
	}
	return n
}

// pass has n of them answered.
func (t *turns) pass(left, n int) {
	for range n {
		t.settle(left, Outcome{Sent: true})
	}
}

// TestTurns: at first one goes, and two more for each that passes. After a
// refusal as many go at once as the limit lets in while it was shut.
func TestTurns(t *testing.T) {
	turn := (*turns)(nil).next(epoch, time.Minute)
	for _, want := range []int{1, 1, 2, 4, 8, 16} { // all that go are answered before the next go
		assert.Equal(t, want, turn.goes(1, epoch))
		turn.pass(1, want)
	}
	turn.send(1, epoch)
	turn.settle(1, Outcome{Refused: true, Sent: true})
	now := epoch.Add(64 * time.Second)
	assert.Equal(t, 31, turn.next(now, 64*time.Second).goes(1, now), "all but one that is refused")
	turn = turn.next(now, 32*time.Second)
	assert.Equal(t, 16, turn.goes(1, now), "for half of the time")
	assert.False(t, turn.allow(false, now.Add(2*time.Second-1)), "16 calls have not been answered")
	assert.True(t, turn.allow(false, now.Add(2*time.Second)), "answers that take long hold up nobody for longer")
	turn.settle(1, Outcome{})
	turn.pass(1, 15)
	assert.True(t, turn.allow(false, now), "who was not sent leaves its place")
}

// TestTurnsBeyondTheLimit: up to the number that passed last time callers go as
// quickly as at first, and then at the limit's distance, which shrinks until
// there is a refusal.
func TestTurnsBeyondTheLimit(t *testing.T) {
	now := epoch.Add(time.Minute)
	turn := (&turns{passed: 60, sent: 120, refused: 60, sure: 1, opened: epoch}).next(now, time.Minute/2)
	for _, want := range []int{1, 1, 2, 4, 8, 16, 28} {
		assert.Equal(t, want, turn.goes(1, now), "after %d", turn.passed)
		turn.pass(1, want)
	}
	for _, gap := range []time.Duration{time.Second, time.Second * 15 / 16} {
		assert.Equal(t, gap, turn.wait(now))
		assert.Zero(t, turn.goes(1, now.Add(gap-1)))
		now = now.Add(gap)
		assert.Equal(t, 1, turn.goes(1, now))
		turn.pass(1, 1)
	}
	gap := turn.gap
	assert.Equal(t, gap*5/4, turn.next(now.Add(time.Hour), time.Second).gap)
	assert.Equal(t, now.Sub(turn.opened)/62, turn.next(now, time.Second).gap, "the limit's own distance is nearer")
	assert.Equal(t, gap, (&turns{gap: gap, opened: epoch}).next(now, time.Second).gap, "nobody passed")
	assert.Equal(t, maxGap, (&turns{sent: 1, opened: epoch}).next(epoch.Add(time.Hour), time.Second).gap)
	for _, now := range []time.Time{turn.opened, turn.opened.Add(longestShut + 1)} {
		assert.Equal(t, (*turns)(nil).next(now, 0), turn.next(now, time.Second), "by another clock")
	}
	for _, want := range []int{31, 15} { // of 63, then of none at all: others were quicker
		turn = (&turns{passed: 0, sent: 1, refused: 1, sure: 1, before: 2*want + 1, opened: epoch}).next(now, time.Second)
		assert.Equal(t, want, turn.before)
	}
}

// TestTurnsOfLastAttempts: they go first, a quarter at a time, alone until they
// are answered, and then an eighth slower than the limit allows.
func TestTurnsOfLastAttempts(t *testing.T) {
	now := epoch.Add(24 * time.Second)
	turn := (&turns{passed: 12, sent: 12, sure: 1, opened: epoch}).next(now, 24*time.Second)
	for range 4 {
		assert.Equal(t, 3, turn.goes(0, now))
		assert.False(t, turn.allow(false, now), "the last attempts are not answered")
		turn.pass(0, 3)
	}
	sure := now.Add(12 * 9 * time.Second / 4)
	assert.False(t, turn.allow(true, sure.Add(-1)), "it is not sure")
	assert.Equal(t, 1, turn.goes(0, sure))
	assert.False(t, turn.allow(false, sure), "the last attempt is not answered")
	turn.send(-1, sure) // on a new connection, beyond the last attempt
	turn.pass(0, 2)
	assert.False(t, turn.allow(false, sure.Add(time.Second)), "beyond the limit")
	assert.True(t, turn.allow(false, sure.Add(2*time.Second)), "a place of the limit later")
}

// TestTurnsOfLastAttemptsAlone: with no others to search, they find out by
// themselves that the limit allows more than was thought.
func TestTurnsOfLastAttemptsAlone(t *testing.T) {
	now := epoch.Add(maxGap)
	turn := (&turns{sent: 1, opened: epoch}).next(now, maxGap)
	for range 200 {
		for turn.goes(0, now) == 0 {
			now = now.Add(100 * time.Millisecond)
		}
		assert.Equal(t, 1, turn.lastOut, "no more than one is due at once")
		turn.pass(0, 1)
	}
	assert.Less(t, turn.every, time.Second)
	assert.Less(t, turn.next(now.Add(time.Second), time.Second).gap, 2*time.Second, "not slow again after a refusal")
}

// TestTurnsWithoutAnswers: replies of minutes do not make a limit look small.
func TestTurnsWithoutAnswers(t *testing.T) {
	turn := &turns{sent: 61, passed: 1, refused: 1, sure: 1, opened: epoch}
	next := turn.next(epoch.Add(time.Minute), time.Minute)
	assert.Equal(t, time.Second, next.gap)
	assert.Equal(t, 60, next.before)
	assert.Equal(t, 59, next.sure)
}

// TestTurnsEnd when all who went have their answers, but not before everybody
// has had the time to come.
func TestTurnsEnd(t *testing.T) {
	turns, later := (*turns)(nil).next(epoch, 0), epoch.Add(patience)
	turns.send(1, epoch)
	assert.False(t, turns.over(later), "one has no answer")
	turns.settle(1, Outcome{Sent: true})
	assert.False(t, turns.over(later.Add(-1)), "1 ns before everybody has had the time to come")
	assert.True(t, turns.over(later), "all answered, and time to come")
}

// TestLine leaves nobody behind: who gives up makes room, and of all who may go
// the first goes. Who comes to the head of a queue is woken, since those behind
// look again only after a wait that grows with their place.
func TestLine(t *testing.T) {
	var l line
	callers := make([]*caller, 6)
	for i := range callers {
		callers[i] = &caller{ctx: t.Context(), seat: &Seat{class: i % 3, left: i % 2}}
		l.join(callers[i])
	}
	all := func(int, bool) bool { return true }
	assert.Same(t, callers[0], l.first(all), "a last attempt")
	assert.Same(t, callers[1], l.first(func(_ int, last bool) bool { return !last }))
	assert.Same(t, callers[2], l.first(func(class int, _ bool) bool { return class == 2 }))
	assert.Nil(t, l.first(func(int, bool) bool { return false }))
	for _, i := range []int{0, 2, 4} {
		l.leave(callers[i])
		l.leave(callers[i])
	}
	assert.Same(t, callers[1], l.first(all))
	assert.Equal(t, [2]int{3, 0}, l.waiting)
	for i := range callers[:3] { // three in one queue
		callers[i] = &caller{ctx: t.Context(), seat: &Seat{class: 7}}
		l.join(callers[i])
		assert.Equal(t, time.Duration(i)*patience+7, l.await(callers[i], 7))
	}
	l.leave(callers[1])
	assert.NoError(t, callers[2].alarm.Err(), "it is not the head yet")
	l.leave(callers[0])
	assert.Error(t, callers[2].alarm.Err(), "it is the head and was not woken")
	assert.False(t, l.several(1<<7), "one caller of class 7 waits")
	l.join(callers[0])
	assert.True(t, l.several(1<<7), "two callers of class 7 wait")
}
