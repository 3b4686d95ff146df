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
)

// key returns the store's key for the API key and the limits. Processes whose limits
// differ only in Max have the same key.
func (c *coordinator) key() string {
	hash := hmac.New(sha256.New, []byte(c.apiKey()))
	for _, b := range c.ledger.bounds {
		fmt.Fprintf(hash, "%q %d %d\n", b.Key, b.window, b.counts)
	}
	return "agentmessaging:" + hex.EncodeToString(hash.Sum(nil)[:16])
}

// startStep starts a step if there is something to do. If one is under way, the next
// follows when it ends.
func (c *coordinator) startStep() {
	if c.stepping || len(c.reports)+len(c.questions) == 0 {
		return
	}
	c.stepping = true
	c.engine.Background(func() error {
		var s *step
		c.engine.Do(func(now time.Duration) { s = c.beginStep(now) })
		err := c.updateState(s)
		c.engine.Do(func(now time.Duration) { c.endStep(s, now, err) })
		return nil
	}, func() {
		c.stepping = false
		c.startStep()
	})
}

// step is one round trip to the store: the reports and questions that it takes along.
type step struct {
	ledger       // a copy of this process's; load puts the store's state into it
	changes      []func(*ledger)
	answers      []func(now time.Duration)
	key, version string        // of the store's value
	now          time.Duration // when the step began, by the engine's clock
	began        time.Time     // the same in real time, which the way to the store takes whatever the client's clock
	down         bool          // as in coordinator, when the step began
	lastKey      string        // the same
	offset       int64         // how far the store's time is ahead of the engine's, in microseconds
	lost         bool          // the store has no state, or a damaged one, although it had one before
}

// beginStep collects what the step has to do.
func (c *coordinator) beginStep(now time.Duration) *step {
	s := &step{
		ledger: c.ledger, changes: append(c.reports, c.questions...), answers: c.answers,
		key: c.key(), now: now, began: time.Now(), down: c.down, lastKey: c.lastKey,
	}
	c.reports, c.questions, c.answers, c.retryAt = nil, nil, nil, now+storeRetry
	return s
}

// apply makes the changes.
func (s *step) apply(l *ledger) {
	for _, change := range s.changes {
		change(l)
	}
}

const (
	maxSwapTries = 20         // of a Swap that other processes get ahead of
	maxTimeLag   = 5 * second // a store whose time is this far behind the state's was set back
)

// updateState loads, changes and swaps the state. If another process swaps first, it tries
// again.
func (c *coordinator) updateState(s *step) error {
	for range maxSwapTries {
		if err := c.load(s); err != nil {
			return err
		}
		s.apply(&s.ledger)
		var swapped bool
		longest := slices.MaxFunc(s.bounds, func(a, b bound) int { return cmp.Compare(a.window, b.window) }).Window
		err := c.callStore(func(ctx context.Context) (err error) {
			swapped, err = c.store.Swap(ctx, s.key, s.version, s.encode(), 2*longest+time.Hour)
			return err
		})
		if err != nil || swapped {
			return err
		}
		// In real time, by which the store works. Without it half of the Swaps of 16 processes fail.
		time.Sleep(time.Duration(rand.Int64N(s.stepDuration/2)) * time.Microsecond)
	}
	return errors.New("the store refuses the version that Load returned, or too many processes change the value at once")
}

// load reads the store's state and adds this process as a member. If this process has
// counted calls that the state does not have (on its share, or under other limits), load
// adds them.
func (c *coordinator) load(s *step) error {
	before := time.Since(s.began)
	var value []byte
	var at time.Time
	err := c.callStore(func(ctx context.Context) (err error) {
		if value, s.version, at, err = c.store.Load(ctx, s.key); err == nil && at.IsZero() {
			err = errors.New("the store does not say what time it is")
		}
		s.state = decode(value, len(s.bounds))
		return err
	})
	if err != nil {
		return err
	}
	took := (time.Since(s.began) - before).Microseconds()
	s.lost = false
	if s.state == nil || at.UnixMicro() < s.Now-maxTimeLag {
		s.state, s.lost = newState(s.bounds, at.UnixMicro()), len(value) > 0 || s.lastKey == s.key
	}
	s.advance(at.UnixMicro())
	s.offset = s.Now - (s.now + before).Microseconds() - took/2
	s.stepDuration, s.callWeight, s.neverSawStore = max(claimAhead.Microseconds()/6, 2*took), 1, false
	s.Members[s.member] = s.Now
	maps.DeleteFunc(s.Members, func(_, lastStep int64) bool { return lastStep < s.Now-memberTTL })
	if s.down && s.lastToOpen(nothing).Opens <= s.Now { // wait until the others have left their shares too
		s.gate(nothing).Opens = s.Now + returnHold
	}
	if s.down || s.lost || s.lastKey != "" && s.lastKey != s.key {
		c.engine.Do(func(now time.Duration) { s.merge(c.ledgerAt(now)) })
	}
	return nil
}

// endStep adopts the state that the store has taken. If the step failed, it applies the
// changes to the process's own state. Then it delivers the answers.
func (c *coordinator) endStep(s *step, now time.Duration, err error) {
	if err != nil {
		if !c.down {
			c.log(slog.LevelWarn, "agentmessaging pacer's store does not answer; working on a share of the limits",
				slog.Int("processes", len(c.ledger.Members)), slog.String("error", printable.Line(err.Error(), 256)))
			c.takeShare(now)
		}
		s.apply(c.ledgerAt(now))
	} else {
		if c.down {
			c.log(slog.LevelInfo, "agentmessaging pacer's store answers again")
		}
		if s.lost {
			c.logLoss(now)
		}
		c.offset, c.down, c.downSince, c.lastKey = s.offset, false, time.Time{}, s.key
		if slices.Equal(s.bounds, c.ledger.bounds) { // not after a SetLimits in between
			c.ledger.state = s.state
		}
	}
	for _, deliver := range s.answers {
		deliver(now)
	}
}

// logLoss logs that the store has lost the state. If clocks are too far apart, each step may
// lose the state: it logs a series of losses once. The series is over after two minutes
// without one.
func (c *coordinator) logLoss(now time.Duration) {
	if now >= c.lostUntil {
		c.log(slog.LevelWarn, "agentmessaging pacer begins the shared state afresh: the store has lost it, holds something else, or its time went back")
	}
	c.lostUntil = now + 2*time.Minute
}

// log does not wait for the logger, which may itself make a call that waits in the pacer.
func (c *coordinator) log(level slog.Level, message string, attrs ...slog.Attr) {
	go quota.Protect(func() error { c.logger.LogAttrs(context.Background(), level, message, attrs...); return nil })
}

// takeShare turns the state into this process's share of the limits, when the store stops
// answering. From now on each call counts once for each known process. A process that never
// saw the store begins with firstShare, and finds its share by refusals.
func (c *coordinator) takeShare(now time.Duration) {
	l := c.ledgerAt(now)
	for b := range l.budgets(everything) {
		if l.neverSawStore && b.paced() {
			b.Level, b.Quiet = firstShare, l.Now
		}
	}
	l.Tickets = nil
	c.down, c.downSince = true, time.Now()
}

const (
	claimAhead = 250 * time.Millisecond  // how long before its turn a process asks for it, so that the way to the store delays no call
	storeRetry = 1700 * time.Millisecond // until a process tries a store again that does not answer
	returnHold = 2 * second              // by then the last process has found the store again
	firstShare = 0.25                    // the part of Max with which a process that never saw the store begins
)
