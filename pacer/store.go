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
	"reflect"
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
	// is the same for all processes. A key that was never set, or has
	// expired, has no value and the version "".
	Load(ctx context.Context, key string) (value []byte, version string, now time.Time, err error)
	// Swap sets the value if the key still has this version, and reports whether it
	// did. The version "" means that the key has no value. After ttl without another
	// Swap the store may drop the value.
	Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (swapped bool, err error)
}

// WithStore shares the limits with all processes whose pacers use the same store,
// apiKey and limits. The default is that the process has the limits for itself. The
// store gets a value of about a kilobyte without texts of messages. Its key in the
// store is a keyed hash, which does not reveal the API key. A nil store and an empty
// apiKey are errors.
//
// While the store does not answer, the process keeps to an equal share of the limits,
// by the number of processes that used the store last. If it has never seen the
// store, it begins with a quarter and learns its share from refusals. It tries the
// store again about every two seconds.
//
// Limits are counted by the store's time, and calls wait by the client's clock. In a
// test with a fake clock, let Load return the time of that clock.
func WithStore(store Store, apiKey string) Option {
	return func(p *Pacer) error {
		switch v := reflect.ValueOf(store); {
		case store == nil || v.Kind() == reflect.Pointer && v.IsNil():
			return invalid("WithStore", "was given a nil store")
		case apiKey == "":
			return invalid("WithStore", "was given an empty API key")
		}
		p.coordinator.store, p.coordinator.apiKey = store, func() string { return apiKey }
		return nil
	}
}

// key names the value that holds the state of the API key under the limits,
// whatever their Max.
func (c *coordinator) key() string {
	hash := hmac.New(sha256.New, []byte(c.apiKey()))
	for _, r := range c.ledger.rules {
		fmt.Fprintf(hash, "%q %d %d\n", r.Key, r.window, r.counts)
	}
	return "agentmessaging:" + hex.EncodeToString(hash.Sum(nil)[:16])
}

const (
	storeWait = 250 * time.Millisecond
	mostTries = 20
	setBack   = 5 * second
)

// loaded is a state of the store, which a step changes and swaps.
type loaded struct {
	ledger
	key, version string
	offset       int64 // what its time is ahead of the pacer's
	lost         bool  // it begins afresh, though it was there before
}

// stepShared loads the state, changes it and swaps it, until it is the quickest.
func (c *coordinator) stepShared(now time.Duration, l *loaded, changes []func(*ledger)) error {
	began := time.Now()
	for range mostTries {
		if err := c.load(l, now+time.Since(began)); err != nil {
			return err
		}
		l.apply(changes)
		var swapped bool
		longest := slices.MaxFunc(l.rules, func(a, b rule) int { return cmp.Compare(a.window, b.window) }).Window
		err := bounded(func(ctx context.Context) (err error) {
			swapped, err = c.store.Swap(ctx, l.key, l.version, l.encode(), 2*longest+time.Hour)
			return err
		})
		if err != nil {
			return err
		}
		if swapped {
			c.storeAnswered(l)
			return nil
		}
		time.Sleep(time.Duration(rand.Int64N(c.took/2+1)) * time.Microsecond)
	}
	return errors.New("too many processes change the value at once")
}

// load reads the store's state and adds this process as a member. If the process
// has worked on another state or on a share, load also adds its counts.
func (c *coordinator) load(l *loaded, now time.Duration) error {
	began := time.Now()
	var value []byte
	var at time.Time
	err := bounded(func(ctx context.Context) (err error) {
		value, l.version, at, err = c.store.Load(ctx, l.key)
		l.state = decode(value, len(l.rules))
		return err
	})
	if err != nil {
		return err
	}
	took := time.Since(began).Microseconds()
	c.took += (2*took - c.took) / 4
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.peers
	l.lost = false
	if l.state == nil || at.UnixMicro() < l.Now-setBack {
		l.state, l.lost = newState(l.rules, at.UnixMicro()), len(value) > 0 || p.seen == l.key
	}
	l.at(at.UnixMicro())
	l.offset, l.took, l.calls, l.lonely = l.Now-now.Microseconds()-took/2, max(claimAhead.Microseconds()/6, c.took), 1, false
	l.Members[l.member] = l.Now
	maps.DeleteFunc(l.Members, func(_, seen int64) bool { return seen < l.Now-memberFor })
	if p.down && l.last(nothing).Opens == 0 { // others may still be on their shares
		l.shut(nothing, l.Now+returnHold, "")
	}
	if p.down || l.lost || p.seen != "" && p.seen != l.key {
		l.join(c.here(now))
	}
	return nil
}

// bounded waits for a call of the store for at most storeWait, even if the store
// ignores its context. A panic of the store is an error.
func bounded(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	first := make(chan error, 2)
	go func() { first <- quota.Protect(func() error { return call(ctx) }) }()
	context.AfterFunc(ctx, func() { first <- ctx.Err() })
	return <-first
}

// peers is the pacer's knowledge of the store and the other processes.
type peers struct {
	offset int64 // what the state's clock is ahead of the pacer's

	down    bool          // there is no store, or it does not answer: the state is this process's share
	since   time.Time     // when it went down; zero: it answers, or there is none
	retryAt time.Duration // when a step tries it again
	seen    string        // the key of the value that was seen last
}

const (
	claimAhead = 250 * time.Millisecond // before its turn a process asks for it, which hides the way to the store
	storeRetry = 1700 * time.Millisecond
	returnHold = 2 * second // the last process has found the store by then
	lonelyPart = 0.25       // of Max, for a process that knows of no other
)

// join adds the counts of another ledger: of each limit the larger count is kept. A
// level that a lonely process learned is a share of the limit, so it is left out.
func (l *ledger) join(other *ledger) {
	ahead := l.Now - other.Now
	for _, g := range other.Gates {
		l.shut(g.Kinds, g.Told+ahead, g.Key)
	}
	l.Fresh = l.Now
	for b := range l.budgets(everything) {
		for o := range other.budgets(b.counts) {
			if o.Key != b.Key || o.window != b.window {
				continue
			}
			if o.Sent > b.Sent {
				b.Begins, b.Sent, b.Most, b.Lasts = o.Begins+ahead, o.Sent, o.Most, o.Lasts
			}
			if calls := o.sent(); !b.isLong() && calls > b.sent() {
				b.even(min(calls, int64(b.allowed)-1))
			}
			if o.Corrected > 0 && o.Corrected+ahead > b.Corrected && o.max == b.max && !other.lonely {
				b.Level, b.Extra, b.Corrected, b.Quiet = o.Level, o.Extra, o.Corrected+ahead, o.Quiet+ahead
			}
		}
		b.pause(max(l.Now, l.last(nothing).Opens))
	}
}

// storeAnswered goes on from the state that the store has taken.
func (c *coordinator) storeAnswered(l *loaded) {
	c.mu.Lock()
	p := &c.peers
	back := p.down
	p.offset, p.down, p.since, p.seen = l.offset, false, time.Time{}, l.key
	if l.key == c.key() { // else SetLimits came in between
		c.ledger.state = l.state
	}
	c.mu.Unlock()
	if back {
		c.logger.Info("agentmessaging pacer's store answers again")
	}
	if l.lost {
		c.logger.Warn("agentmessaging pacer begins the shared state afresh: the store has lost it, holds something else, or its clock was set back")
	}
}

// storeFailed goes on with a share of the limits.
func (c *coordinator) storeFailed(now time.Duration, err error) {
	if processes, first := c.shareOut(now); first {
		c.logger.Warn("agentmessaging pacer's store does not answer; working on a share of the limits",
			slog.Int("processes", processes), slog.String("error", printable.Line(err.Error(), 256)))
	}
}

// shareOut makes the state this process's share: each call now counts once
// per known process, and the first goes when this process's ticket was due. A
// process that knows of no other begins with a part, and finds its share by
// refusals. first is false if the store was down already.
func (c *coordinator) shareOut(now time.Duration) (processes int, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peers.down {
		return 0, false
	}
	l := c.here(now)
	for b := range l.budgets(everything) {
		switch {
		case l.lonely:
			b.Level, b.Quiet = lonelyPart, l.Now
		case !b.isLong():
			b.Due = max(b.Due, l.turnOf(b.counts, int64(len(l.Members))*b.pace))
		}
	}
	l.Tickets, l.Fresh = nil, l.Now
	c.peers.down, c.peers.since = true, time.Now()
	return len(l.Members), true
}

// turnOf returns when this process would have been next. If it had no ticket, it
// picks a random time within a round.
func (l *ledger) turnOf(counts costSet, round int64) int64 {
	for _, t := range l.Tickets {
		if t.Member == l.member && t.Kinds&counts != 0 {
			return t.Due
		}
	}
	return l.Now + rand.Int64N(round+1)
}

// format numbers the layout of a value. Raise it where decode would misread an
// older one.
const format = 5

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

// mostBytes bounds the JSON that is read; 64 processes need about 10 kB.
const mostBytes = 1 << 20

// decode returns nil for a value that is damaged, or has another format.
func decode(value []byte, limits int) *state {
	unzipper, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil
	}
	plain, err := io.ReadAll(io.LimitReader(unzipper, mostBytes))
	s := &state{}
	if err != nil || json.Unmarshal(plain, s) != nil ||
		s.Format != format || len(s.Limits) != limits || s.Members == nil {
		return nil
	}
	return s
}
