package pacer

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// A Store keeps one value for each key, for all processes: Redis, Postgres,
// etcd, DynamoDB or another database that can compare and swap. Module redisstore of
// this repository has one; storetest.Run checks yours. Its methods must be safe for
// concurrent use. The pacer gives up each call after 250 ms, even if the method
// ignores ctx. While calls fail, it keeps to a share of the limits ([WithStore]).
type Store interface {
	// Load returns the value of a key, its version, and the store's time, which is the
	// same for all processes. A key that was never set, or has expired, has no value and
	// the version "".
	//
	// A store without a clock, such as etcd or DynamoDB, returns time.Now of hosts that
	// NTP keeps within a few milliseconds of one another. Calls go too early or too late
	// by as much as these differ. If they differ by more than 5 s, processes lose the
	// shared state again and again: the pacer logs that, but storetest cannot see it.
	Load(ctx context.Context, key string) (value []byte, version string, now time.Time, err error)
	// Swap sets the value if the key still has this version, and reports whether it
	// did. The version "" means that the key has no value, or that its value has
	// expired, as in Load. After ttl without another Swap the store may drop the value,
	// or let it expire.
	Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (swapped bool, err error)
}

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
	c.engine.Background(c.step, func() {
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
	offset       int64         // how far the store's time is ahead of the engine's, in microseconds
	lost         bool          // the store has no state, or a damaged one, although it had one before
}

// step takes the reports and questions to the shared ledger. It does not hold the engine's
// lock while the store or the user's logger works.
func (c *coordinator) step() error {
	var s *step
	c.engine.Do(func(now time.Duration) { s = c.beginStep(now) })
	err := c.updateState(s)
	var wasDown bool
	var processes int
	c.engine.Do(func(now time.Duration) {
		wasDown, processes = c.down, len(c.ledger.Members)
		c.endStep(s, now, err)
	})
	switch {
	case err != nil && !wasDown:
		c.logger.Warn("agentmessaging pacer's store does not answer; working on a share of the limits",
			slog.Int("processes", processes), slog.String("error", printable.Line(err.Error(), 256)))
	case err == nil && wasDown:
		c.logger.Info("agentmessaging pacer's store answers again")
	}
	if err == nil && s.lost {
		if s.now >= c.lostUntil {
			c.logger.Warn("agentmessaging pacer begins the shared state afresh: the store has lost it, holds something else, or its time went back")
		}
		// If clocks are too far apart, each step may lose the state: log a series of losses
		// once. The series is over after two minutes without one.
		c.lostUntil = s.now + 2*time.Minute
	}
	return nil
}

// beginStep collects what the step has to do.
func (c *coordinator) beginStep(now time.Duration) *step {
	s := &step{ledger: c.ledger, key: c.key(), changes: append(c.reports, c.questions...), answers: c.answers, now: now, began: time.Now()}
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
	storeWait = 250 * time.Millisecond // for one call of the store
	maxTries  = 20                     // of a Swap that other processes get ahead of
	setBack   = 5 * second             // a store whose time is this far behind the state's was set back
)

// updateState loads, changes and swaps the state. If another process swaps first, it tries
// again.
func (c *coordinator) updateState(s *step) error {
	for range maxTries {
		if err := c.load(s); err != nil {
			return err
		}
		s.apply(&s.ledger)
		var swapped bool
		longest := slices.MaxFunc(s.bounds, func(a, b bound) int { return cmp.Compare(a.window, b.window) }).Window
		err := callStore(func(ctx context.Context) (err error) {
			swapped, err = c.store.Swap(ctx, s.key, s.version, s.encode(), 2*longest+time.Hour)
			return err
		})
		if err != nil || swapped {
			return err
		}
		// In real time, as the store works. Without this wait half of the Swaps of 16 processes fail.
		time.Sleep(time.Duration(rand.Int64N(s.took/2)) * time.Microsecond)
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
	err := callStore(func(ctx context.Context) (err error) {
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
	if s.state == nil || at.UnixMicro() < s.Now-setBack {
		s.state, s.lost = newState(s.bounds, at.UnixMicro()), len(value) > 0 || c.seen == s.key
	}
	s.at(at.UnixMicro())
	s.offset = s.Now - (s.now + before).Microseconds() - took/2
	s.took, s.calls, s.lonely = max(claimAhead.Microseconds()/6, 2*took), 1, false
	s.Members[s.member] = s.Now
	maps.DeleteFunc(s.Members, func(_, seen int64) bool { return seen < s.Now-memberFor })
	if c.down && s.last(nothing).Opens <= s.Now { // wait until the others have left their shares too
		s.gate(nothing).Opens = s.Now + returnHold
	}
	if c.down || s.lost || c.seen != "" && c.seen != s.key {
		c.engine.Do(func(now time.Duration) { s.join(c.ledgerAt(now)) })
	}
	return nil
}

// callStore waits for a call of the store for at most storeWait, even if the store
// ignores its context. A panic of the store is an error.
func callStore(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	first := make(chan error, 2)
	go func() { first <- quota.Protect(func() error { return call(ctx) }) }()
	context.AfterFunc(ctx, func() { first <- ctx.Err() })
	return <-first
}

// endStep adopts the state that the store has taken. If the step failed, it applies the
// changes to the process's own state. Then it delivers the answers.
func (c *coordinator) endStep(s *step, now time.Duration, err error) {
	if err != nil {
		if !c.down {
			c.takeShare(now)
		}
		s.apply(c.ledgerAt(now))
	} else {
		c.offset, c.down, c.downSince, c.seen = s.offset, false, time.Time{}, s.key
		if slices.Equal(s.bounds, c.ledger.bounds) { // not after a SetLimits in between
			c.ledger.state = s.state
		}
	}
	for _, deliver := range s.answers {
		deliver(now)
	}
}

// takeShare turns the state into this process's share of the limits, when the store stops
// answering. From now on each call counts once for each known process. A lonely process
// begins with lonelyPart, and finds its share by refusals.
func (c *coordinator) takeShare(now time.Duration) {
	l := c.ledgerAt(now)
	for b := range l.budgets(everything) {
		if l.lonely && b.paced() {
			b.Level, b.Quiet = lonelyPart, l.Now
		}
	}
	l.Tickets, l.Fresh = nil, l.Now
	c.down, c.downSince = true, time.Now()
}

const (
	claimAhead = 250 * time.Millisecond  // how long before its turn a process asks for it, so that the way to the store delays no call
	storeRetry = 1700 * time.Millisecond // until a process tries a store again that does not answer
	returnHold = 2 * second              // by then the last process has found the store again
	lonelyPart = 0.25                    // the part of Max with which a lonely process begins
)

// zippers is a pool, because a new gzip.Writer costs more than the work that it does here.
var zippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// encode returns the state as the store keeps it. gzip makes the JSON small, and its
// checksum shows whether a value is damaged.
func (s *state) encode() []byte {
	var value bytes.Buffer
	zipper := zippers.Get().(*gzip.Writer)
	defer zippers.Put(zipper)
	zipper.Reset(&value)
	_ = json.NewEncoder(zipper).Encode(s) // numbers and text, to a buffer
	_ = zipper.Close()
	return value.Bytes()
}

// maxBytes bounds the JSON that decode reads; 64 processes need about 10 kB.
const maxBytes = 1 << 20

// decode returns nil for a value that is damaged, or has another format.
func decode(value []byte, limits int) *state {
	unzipper, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil
	}
	plain, err := io.ReadAll(io.LimitReader(unzipper, maxBytes))
	s := &state{}
	if err != nil || json.Unmarshal(plain, s) != nil ||
		s.Format != format || len(s.Limits) != limits || s.Members == nil {
		return nil
	}
	return s
}
