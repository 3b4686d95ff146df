package pacer

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// budget is a bound and its usage at a moment. The usage is the state's own, so a method that
// writes it changes the ledger. ledger.budget derives the other figures from both.
type budget struct {
	*bound
	*usage

	now           time.Duration
	callWeight    int64         // how many calls one call counts as: on a share, the number of processes that used the store last
	slotLength    time.Duration // the part of the window whose calls one slot counts
	arrivalMargin time.Duration // how much longer than the window a call counts, because calls arrive later than they are sent
	allowed       float64       // how many calls a window may hold now: level
	evenGap       time.Duration // Window/allowed: the distance at which calls fill the window evenly
	pace          time.Duration // the distance between calls: evenGap * (1 + spacing); if calls are only counted, quota.TrialWait
	spacing       float64       // Extra, or arrivalMargin/Window if that is more
	burst         time.Duration // how far calls may be ahead of the pace after a quiet time; 0 on a share
}

// next returns when a call with this many calls before it may go. On a share a call counts
// as several calls, but it may go as soon as the window has room for one.
func (b *budget) next(before int64) time.Duration {
	if !b.paced() {
		return max(b.Due, b.now)
	}
	gap := b.pace
	if b.early(b.now) {
		gap = b.evenGap
	}
	return max(max(b.Due, b.now-b.burst)+time.Duration(before)*gap, b.roomAt(b.allowed-float64(before)))
}

// usage is the state of a bound: the calls of the last window, and what the pacer learned from
// refusals.
//
// If the window is shorter than an hour, calls go at an even pace, a few at once after a quiet
// time, and no more than the level in one window. The calls of any other window are only
// counted: only the service knows when such a window starts again, so its refusal closes the
// limit. See spendCounted.
//
// For example, a limit of 60 a minute: evenGap is 1 s, and pace 1.007 s, because a call counts
// for arrivalMargin longer than the minute. After a quiet time 10 calls go within a second
// (burst). The others go about every 1.2 s, so that the minute is full just when those 10 leave
// it (safeDistance). A refusal with 25 calls in the minute shows that somebody else uses the
// limit: Level becomes 0.5, so a minute holds 30 calls. From Quiet on Level grows by half each
// minute. A refusal with 55 calls shows that they came too close together: Extra grows, and with
// it pace.
type usage struct {
	Due       time.Duration // when the pace lets the next call go; a time in the past allows a burst
	Slots     []slot        // the calls of the last window, oldest first
	Held      int64         // the sum of the calls in Slots; forget drops the calls that have left the window
	Level     float64       // how many calls a window allows, as a fraction of Max
	Extra     float64       // by which part the pace is longer than window/level: with 0.25 a quarter longer
	Corrected time.Duration // when a refusal last set Level or Extra; 0: never
	Quiet     time.Duration // when Level begins to climb back to Max
	Early     time.Duration // the time to which an answer last brought Due forward; see ledger.accepted
	Trials    int64         // of a limit that is only counted: 1 plus the calls since trials began; 0: no trials; see spendCounted
}

// slot counts the calls of 1/pacedSlots or 1/countedSlots of the window.
type slot struct {
	Leaves time.Duration // when its calls stop counting: after the window and arrivalMargin
	Calls  int64
}

const (
	pacedSlots    = 240              // slots of a paced window; with 120 a few calls exceeded the limit
	countedSlots  = 60               // slots of a window that is only counted, which may be a day
	maxAtOnce     = 10               // the most calls of a burst
	atOnceAtFirst = 3                // the calls of the first burst, when the state is new
	levelGrowth   = 1.5              // the factor by which the level grows in a window
	shortHold     = 2.25             // how many windows a level stays down after a cut, before it climbs
	longHold      = 40.0             // the same, if the process never saw the store and looks for its share
	quickAnswer   = time.Second / 20 // the shortest time that an answer takes; see spaced
	nearlyFull    = 0.8              // the part of the calls at full pace from which on the pace may have caused a refusal; see learn
	minLevel      = 0.25             // of Max; at a lower level it would take too long to find out that more calls may go
	// A refusal in a nearly full window multiplies Extra by extraGrowth, up to maxExtra. Each
	// call that goes shrinks Extra by the part Extra*Extra, or by maxExtraShrink if that is
	// less. So a small Extra, which costs little, lasts long: on a leaky bucket only one call in
	// 75 is refused.
	extraGrowth    = 1.8
	maxExtra       = 1.5 // bounds the cost of refusals that the pace did not cause
	maxExtraShrink = 1.0 / 140
)

// level returns how many calls a window may hold now. It climbs back to Max after Quiet.
func (b *budget) level() float64 {
	level := max(1, b.Level*b.max)
	if level >= b.max || b.now < b.Quiet {
		return level
	}
	return min(b.max, level*math.Pow(levelGrowth, float64(b.now-b.Quiet)/float64(b.Window)))
}

// pause holds all calls back until a time. After it, calls go at the pace, without a burst.
func (b *budget) pause(until time.Duration) { b.Due = max(b.Due, until) }

// forget drops the slots whose calls have left the window.
func (u *usage) forget(now time.Duration) {
	for len(u.Slots) > 0 && u.Slots[0].Leaves <= now {
		u.Held -= u.Slots[0].Calls
		u.Slots = u.Slots[1:]
	}
}

// add counts calls in their slot, or takes some back.
func (b *budget) add(at time.Duration, calls int64) {
	leaves := (at/b.slotLength+1)*b.slotLength + b.Window + max(0, b.arrivalMargin-b.slotLength)
	i, has := slices.BinarySearchFunc(b.Slots, leaves, func(s slot, leaves time.Duration) int { return cmp.Compare(s.Leaves, leaves) })
	if !has {
		b.Slots = slices.Insert(b.Slots, i, slot{Leaves: leaves})
	}
	calls = max(calls, -b.Slots[i].Calls)
	b.Slots[i].Calls += calls
	b.Held += calls
}

// roomAt returns when the window has room for one more call, if it may hold limit calls.
func (b *budget) roomAt(limit float64) time.Duration {
	room, at := limit-float64(b.Held), b.now
	for _, s := range b.Slots {
		if room >= 1 {
			break
		}
		room += float64(s.Calls)
		at = s.Leaves
	}
	return at
}

// spend counts a call that goes at the given time, now or soon.
func (b *budget) spend(at time.Duration) {
	b.now = at
	if !b.paced() {
		b.spendCounted()
		return
	}
	b.add(b.now, b.callWeight)
	b.Due = max(b.Due, b.now-b.burst) + b.safeDistance()
	b.Extra = b.spacing - b.spacing*min(maxExtraShrink, b.spacing*b.spacing)*float64(b.callWeight)
}

// spendCounted counts a call of a limit without a pace. Once Max calls have gone, and after
// each refusal, the next call is a trial: the other calls wait quota.TrialWait, because a refusal of
// the trial would come within that time. Then one call goes, then two, four and so on, each time
// followed by such a wait.
func (b *budget) spendCounted() {
	if b.Trials == 0 && float64(b.Held) >= b.max {
		b.Trials = 1
	}
	b.add(b.now, b.callWeight)
	if b.Trials > 0 {
		if b.Trials&(b.Trials-1) == 0 { // the trials 1, 2, 4, 8 and so on
			b.Due = b.now + quota.TrialWait
		}
		b.Trials++
	}
}

// safeDistance returns the distance to the next call. It is the pace, or longer if calls at the
// pace would fill the window before its oldest slots leave. Each slot that leaves makes room.
func (b *budget) safeDistance() time.Duration {
	distance, room := time.Duration(b.callWeight)*b.pace, time.Duration(int64(b.allowed)-b.Held)
	for _, s := range b.Slots {
		if room >= 0 {
			distance = max(distance, (s.Leaves-b.now)/(room+1))
		}
		room += time.Duration(s.Calls)
	}
	return distance
}

// learn corrects Level or Extra after the refusal of a call that was granted at the given time.
// The limit opens again at opens.
//
// If the window then holds far fewer calls than the pace sends, the service allows fewer than
// Max: somebody else uses the limit, or it was lowered. learn then cuts the level, which does
// not climb for some windows. Otherwise the calls came too close together, for a service that
// spaces calls or refuses a full window. Then Extra grows. An early call follows an
// answer, so it is never too close to the call before: its refusal cuts the level. A process
// that never saw the store looks for its share, so a refusal in a full window cuts its level too.
func (b *budget) learn(opens, granted time.Duration, neverSawStore bool) {
	if b.Corrected > 0 && granted <= b.Corrected+2*b.pace {
		return // granted before the last correction, or too soon after it to show its effect
	}
	atFullPace, quietWindows := float64(b.Window)/float64(b.pace), shortHold
	then := *b.usage
	then.forget(opens)
	inWindow := float64(then.Held - 1) // without the refused call
	b.Level = b.allowed / b.max
	full := inWindow >= nearlyFull*atFullPace
	switch {
	case neverSawStore:
		b.Level, quietWindows = max(b.allowed/2, inWindow)/b.max, longHold
	case !full || b.early(granted):
		b.Level = max(b.allowed/2, inWindow, minLevel*b.max) / b.max
	}
	if full {
		b.Extra = min(maxExtra, extraGrowth*b.spacing)
	}
	b.Corrected, b.Quiet = b.now, b.now+time.Duration(quietWindows*float64(b.Window))
}

// spaced reports whether the service seems to refuse calls that come too close together, and
// an answer can come between two calls. A level below Max shows that the service refused calls
// for another reason.
func (b *budget) spaced() bool {
	return b.paced() && b.allowed >= b.max && b.pace-b.evenGap > quickAnswer
}

// early reports whether a call granted at that time goes early because of an answer.
func (b *budget) early(granted time.Duration) bool { return granted < b.Early+b.evenGap }

// usedPart returns which part of the limit is used. The limit with the largest part explains a
// refusal best. A limit that is only counted cannot explain a refusal before it is used up, so
// until then its usedPart is negative, below all paced limits.
func (b *budget) usedPart() float64 {
	full := float64(b.Held) / b.allowed
	if !b.paced() && full < 1 {
		return full - 2
	}
	return full
}
