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
	// Load returns the value of a key, its version, and the store's time, which
	// is the same for all processes. A store without a clock, such as etcd or DynamoDB,
	// returns time.Now of hosts that NTP keeps within a few milliseconds of one another:
	// by as much as they differ, calls go too early or too late. Where they differ by
	// more than 5 s, processes lose the shared state again and again, which the pacer
	// logs and storetest cannot see. A key that was never set, or has expired, has no
	// value and the version "".
	Load(ctx context.Context, key string) (value []byte, version string, now time.Time, err error)
	// Swap sets the value if the key still has this version, and reports whether it
	// did. The version "" means that the key has no value, or that its value has
	// expired: then Load returns "" too. After ttl without another Swap the store may
	// drop the value, or let it expire.
	Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (swapped bool, err error)
}

// key names the value that holds the state of the API key under the limits,
// whatever their Max.
func (c *coordinator) key() string {
	hash := hmac.New(sha256.New, []byte(c.apiKey()))
	for _, b := range c.ledger.bounds {
		fmt.Fprintf(hash, "%q %d %d\n", b.Key, b.window, b.counts)
	}
	return "agentmessaging:" + hex.EncodeToString(hash.Sum(nil)[:16])
}

// startStep has the engine take a step, unless one is under way: then another one
// follows it.
func (c *coordinator) startStep() {
	if c.stepping || len(c.reports)+len(c.questions) == 0 {
		return
	}
	c.stepping = true
	c.engine.Go(func() {
		defer c.engine.Do(func(time.Duration) {
			c.stepping = false
			c.startStep()
		})
		c.step()
	})
}

// step is some work on the way to the shared ledger.
type step struct {
	ledger       // a copy of this process's; with a state of the store once that is loaded
	changes      []func(*ledger)
	answers      []func(now time.Duration)
	key, version string        // of the store's value
	now          time.Duration // when the step began
	began        time.Time     // then too: the way to the store takes real time, whatever the client's clock
	offset       int64         // what the store's time is ahead of the pacer's
	lost         bool          // the state begins afresh, though it was there before
}

// step takes the reports and the questions to the ledger. The lock is free while the
// store works and while the user's logger writes.
func (c *coordinator) step() {
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
		// With clocks too far apart, each step may lose the state: losses that follow one
		// another within this time are one episode, of which one record is enough.
		c.lostUntil = s.now + 2*time.Minute
	}
}

// beginStep takes what there is to do.
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
	storeWait = 250 * time.Millisecond
	maxTries  = 20
	setBack   = 5 * second
)

// updateState loads, changes and swaps the state, and again if another process was
// quicker.
func (c *coordinator) updateState(s *step) error {
	var before string
	for range maxTries {
		before = s.version
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
		time.Sleep(time.Duration(rand.Int64N(s.took/2)) * time.Microsecond)
	}
	if s.version == before { // another process's Swap would have changed it
		return errors.New("the store refuses the version that Load returned")
	}
	return errors.New("too many processes change the value at once")
}

// load reads the store's state and adds this process as a member. If this process
// counted calls elsewhere (alone on its share, or under other limits), load adds them.
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
	s.took, s.calls, s.peersUnknown = max(claimAhead.Microseconds()/6, 2*took), 1, false
	s.Members[s.member] = s.Now
	maps.DeleteFunc(s.Members, func(_, seen int64) bool { return seen < s.Now-memberFor })
	if c.down && s.last(nothing).Opens == 0 { // others may still be on their shares
		s.shut(nothing, s.Now+returnHold, "")
	}
	if c.down || s.lost || c.seen != "" && c.seen != s.key {
		c.engine.Do(func(now time.Duration) { s.join(c.here(now)) })
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

// endStep goes on from the state that the store has taken or, if it has not, from this
// process's.
func (c *coordinator) endStep(s *step, now time.Duration, err error) {
	if err != nil {
		if !c.down {
			c.takeShare(now)
		}
		s.apply(c.here(now))
	} else {
		c.offset, c.down, c.downSince, c.seen = s.offset, false, time.Time{}, s.key
		if slices.Equal(s.bounds, c.ledger.bounds) { // else SetLimits came in between
			c.ledger.state = s.state
		}
	}
	for _, deliver := range s.answers {
		deliver(now)
	}
}

// takeShare makes the state this process's share: each call now counts once per
// known process, and the first goes when this process's ticket was due. A process that
// knows of no other begins with a part, and finds its share by refusals.
func (c *coordinator) takeShare(now time.Duration) {
	l := c.here(now)
	for b := range l.budgets(everything) {
		switch {
		case !b.paced():
		case l.peersUnknown:
			b.Level, b.Quiet = lonelyPart, l.Now
		default:
			b.Due = max(b.Due, l.turnOf(b.counts, int64(len(l.Members))*b.pace))
		}
	}
	l.Tickets, l.Fresh = nil, l.Now
	c.down, c.downSince = true, time.Now()
}

const (
	claimAhead = 250 * time.Millisecond // before its turn a process asks for it, which hides the way to the store
	storeRetry = 1700 * time.Millisecond
	returnHold = 2 * second // the last process has found the store by then
	lonelyPart = 0.25       // of Max, for a process that knows of no other
)

// zippers are reused, since a new one costs more than what it does here.
var zippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// encode is the state as the store keeps it. gzip makes the JSON small, and its
// checksum finds out whether a value is damaged.
func (s *state) encode() []byte {
	var value bytes.Buffer
	zipper := zippers.Get().(*gzip.Writer)
	defer zippers.Put(zipper)
	zipper.Reset(&value)
	_ = json.NewEncoder(zipper).Encode(s) // numbers and text, to a buffer
	_ = zipper.Close()
	return value.Bytes()
}

// maxBytes bounds the JSON that is read; 64 processes need about 10 kB.
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
