package pacer

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
)

const (
	claimAhead = 250 * time.Millisecond  // a process asks this long before a turn, so that the round trips to the store delay no call
	storeRetry = 1700 * time.Millisecond // from the start of one step to the next while the store does not answer
	returnHold = 2 * time.Second         // storeRetry and a slow step: by then all processes have found the store again
	firstShare = 0.25                    // the part of Max with which a process begins that never saw the store
)

// keyLocked returns the store's key for the API key and the limits. Processes whose limits
// differ only in Max share a key.
func (c *coordinator) keyLocked() string {
	hash := hmac.New(sha256.New, []byte(c.apiKey()))
	fmt.Fprintln(hash, format) // versions of this package with different formats may use one store: each has its own value
	for _, b := range c.ledger.bounds {
		fmt.Fprintf(hash, "%q %d %d\n", b.Key, b.Window, b.operation)
	}
	return "agentmessaging:" + hex.EncodeToString(hash.Sum(nil)[:16])
}

// startStepLocked starts a step if changes or questions wait for one. If a step is under way,
// the next one follows when it ends.
func (c *coordinator) startStepLocked() {
	if c.stepping || len(c.changes)+len(c.asking) == 0 {
		return
	}
	c.stepping = true
	c.engine.Background(func() error {
		var s *step
		c.engine.Update(func(now time.Duration) { s = c.beginStepLocked(now) })
		err := c.updateState(s)
		c.engine.Update(func(now time.Duration) { c.endStepLocked(s, now, err) })
		return nil
	}, func(err error) error {
		c.stepping = false
		c.startStepLocked()
		return err
	})
}

// step applies the collected changes to the store's state and asks it the collected questions,
// with a Load and a Swap.
type step struct {
	shared       ledger // begins as a copy of this process's ledger; adopt sets its state to the store's
	changes      []func(*ledger)
	questions    []*question
	now          time.Duration // when the step began, by the engine's clock
	began        time.Time     // the same in real time: round trips take real time, whatever clock the client has
	wasOnShare   bool          // the process was on its share when the step began
	lastKey, key string        // of the last successful step, and of this one
	lastStep     time.Duration // when the last successful step was, by the state's clock
	loaded       time.Duration // the middle of the last Load, by the engine's clock
	lost         bool          // the store had a value, and now it has no state, a damaged one or one without the last step, or its time went back
}

// beginStepLocked takes the collected changes and questions into a new step.
func (c *coordinator) beginStepLocked(now time.Duration) *step {
	s := &step{
		shared: c.ledger, changes: c.changes, now: now, began: time.Now(),
		wasOnShare: c.onShareLocked(), lastKey: c.lastKey, key: c.keyLocked(), lastStep: c.ledger.Members[c.ledger.member],
	}
	for _, class := range c.asking {
		waiting := c.engine.WaitingLocked(func(other quota.Class) bool { return other == class })
		s.questions = append(s.questions, &question{class: class, waiting: int64(waiting)})
	}
	s.shared.callWeight, s.shared.state = 1, nil // adopt sets the state
	c.changes, c.asking, c.retryAt = nil, nil, now+storeRetry
	return s
}

// apply makes the changes in a ledger, and then asks it the questions. In this order a refusal
// among the changes holds back the calls that ask.
func (s *step) apply(l *ledger) {
	for _, change := range s.changes {
		change(l)
	}
	for _, q := range s.questions {
		q.answer = l.grant(q.class, q.waiting)
	}
}

const (
	maxSwapTries = 20              // how often a step tries to swap; other processes may swap first
	maxTimeLag   = 5 * time.Second // a store whose time is further behind the state's was set back
)

// updateState loads, changes and swaps the state. If another process swaps first, updateState
// tries again.
func (c *coordinator) updateState(s *step) error {
	for range maxSwapTries {
		stored, err := c.load(s)
		if err != nil {
			return err
		}
		s.adopt(stored)
		if s.wasOnShare || s.lost || s.lastKey != "" && s.lastKey != s.key { // the store does not know all calls of this process
			c.engine.Update(func(now time.Duration) { s.shared.merge(c.ledgerAtLocked(now), s.wasOnShare) })
		}
		s.apply(&s.shared)
		if swapped, err := c.swap(s, stored.version); err != nil || swapped {
			return err
		}
		// Sleep in real time, as the store does not know the client's clock. Without this
		// wait, half of the Swaps of 16 processes fail.
		time.Sleep(rand.N(s.shared.stepDuration / 2))
	}
	return errors.New("the store refuses the version that Load returned, or too many processes change the value at once")
}

// load reads the store's value and time, and measures the round trip.
func (c *coordinator) load(s *step) (stored, error) {
	sent := time.Since(s.began)
	loaded, err := callStore(c.store, func(ctx context.Context) (l stored, err error) {
		if l.value, l.version, l.at, err = c.store.Load(ctx, s.key); err == nil && (l.at.Unix() < 0 || l.at.Year() > 2100) {
			err = fmt.Errorf("the store says that the time is %s", l.at.Format(time.RFC3339))
		}
		return l, err
	})
	received := time.Since(s.began)
	s.shared.stepDuration, s.loaded = max(claimAhead/6, 2*(received-sent)), s.now+(sent+received)/2
	return loaded, err
}

// adopt takes over the state that load has read, and adds this process as a member.
func (s *step) adopt(from stored) {
	now, l := time.Duration(from.at.UnixNano()), &s.shared
	l.state, s.lost = decode(from.value, len(l.bounds)), false
	switch {
	case l.state == nil || now < l.Now-maxTimeLag:
		l.state, s.lost = newState(l.bounds, now), len(from.value) > 0 || s.lastKey == s.key
	case s.lastKey == s.key: // a member may be missing only once its last step is memberTTL ago
		s.lost = l.Members[l.member] < s.lastStep && l.Now <= s.lastStep+memberTTL
	}
	l.advance(now)
	l.Members[l.member] = l.Now
	maps.DeleteFunc(l.Members, func(_ int64, lastStep time.Duration) bool { return lastStep < l.Now-memberTTL })
	if s.wasOnShare && l.Gates[noCosts].Opens <= l.Now { // hold all calls until the other processes have left their shares too
		l.Gates[noCosts] = gate{Opens: l.Now + returnHold}
	}
}

// swap writes the step's state. The store may drop it when nothing in it can matter any more.
func (c *coordinator) swap(s *step, version string) (swapped bool, err error) {
	longest := slices.MaxFunc(s.shared.bounds, func(a, b bound) int { return cmp.Compare(a.Window, b.Window) }).Window
	return callStore(c.store, func(ctx context.Context) (bool, error) {
		return c.store.Swap(ctx, s.key, version, s.shared.encode(), 2*longest+time.Hour)
	})
}

// endStepLocked takes over the result of a step, and delivers the answers.
func (c *coordinator) endStepLocked(s *step, now time.Duration, err error) {
	if err != nil {
		c.stepFailedLocked(s, now, err)
	} else {
		c.stepSwappedLocked(s, now)
	}
	for _, q := range s.questions {
		answer := c.scheduleLocked(now, q.class, q.answer)
		if slices.Contains(c.asking, q.class) { // asked again after a reset: this answer may grant calls, but refuses none
			answer = quota.Schedule{Grants: answer.Grants, LimitKey: answer.LimitKey, AskAgain: quota.Never}
		}
		c.engine.DeliverLocked(q.class, answer)
	}
}

// stepFailedLocked applies a step that failed to the process's own ledger.
func (c *coordinator) stepFailedLocked(s *step, now time.Duration, err error) {
	if !c.onShareLocked() {
		// InAnswer, because the error may quote the store's address with its password.
		c.log(slog.LevelWarn, "agentmessaging pacer's store does not answer; working on a share of the limits",
			slog.Int("processes", len(c.ledger.Members)), slog.String("error", printable.Line(redact.New(c.apiKey()).Hide(err.Error(), redact.InAnswer), 256)))
		c.takeShareLocked(now)
	}
	s.apply(c.ledgerAtLocked(now))
}

// stepSwappedLocked takes over the state that a step has swapped into the store.
func (c *coordinator) stepSwappedLocked(s *step, now time.Duration) {
	if c.onShareLocked() {
		c.log(slog.LevelInfo, "agentmessaging pacer's store answers again")
	}
	if s.lost && now >= c.lostUntil {
		c.log(slog.LevelWarn, "agentmessaging pacer begins the shared state afresh: the store has lost it, holds an older value or something else, or its time went back")
		c.lostUntil = now + 2*time.Minute
	}
	c.offset, c.ledger.callWeight, c.downSince, c.lastKey = s.shared.Now-s.loaded, 1, time.Time{}, s.key
	if slices.Equal(s.shared.bounds, c.ledger.bounds) { // not if SetLimits was called meanwhile
		c.ledger.state = s.shared.state
	}
}

// log does not wait for the logger, because the logger may itself make a call that waits here.
func (c *coordinator) log(level slog.Level, message string, attrs ...slog.Attr) {
	quota.Go(func() error {
		c.logger.LogAttrs(context.Background(), level, message, attrs...)
		return nil
	}, func(error) {})
}

// takeShareLocked makes the process keep to its share of the limits, when the store stops
// answering. From then on each call counts as several calls, one for each known process. A
// process that never saw the store begins with firstShare of the paced limits, and finds its
// share by refusals.
//
// For example, with 4 known processes and a limit of 60 a minute, each call counts as 4: the
// process sends 15 a minute.
func (c *coordinator) takeShareLocked(now time.Duration) {
	l := c.ledgerAtLocked(now)
	for b := range l.budgets(everything) {
		if l.neverSawStore() && b.paced() {
			b.Level, b.Quiet = firstShare, l.Now
		}
	}
	l.Tickets = nil
	l.callWeight, c.downSince = max(1, int64(len(l.Members))), time.Now()
}
