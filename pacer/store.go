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
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"time"
)

// A Store keeps one value for each key, for all processes: Redis, Postgres,
// etcd, DynamoDB or another that can compare and swap. Package redisstore of
// this repository is one; storetest.Run checks yours. It is safe for concurrent
// use. The pacer gives up each call after 250 ms, also where ctx is ignored,
// and works on a share of the limits while calls fail.
type Store interface {
	// Load returns the value of a key, its version, and the store's time, which
	// is the same for all processes. A key that was never set, or has
	// expired, has no value and the version "".
	Load(ctx context.Context, key string) (value []byte, version string, now time.Time, err error)
	// Swap sets the value if the key's version is still version, "" meaning
	// that it has no value, and reports whether it did. After ttl without another
	// Swap the value may be dropped.
	Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (swapped bool, err error)
}

// WithStore shares the limits with all processes whose pacers use the same
// store, apiKey and limits. The store holds the API key only as a keyed hash,
// and a value of about a kilobyte that has no text of a message in it.
//
// While the store does not answer, the process works on its share of the limits,
// one of the processes that were seen last or found by trial, and tries the store
// every two seconds.
//
// Limits are counted by the store's time, and waits are slept by the client's
// clock. In a test whose clock is a fake, let Load tell the time of that clock.
func WithStore(store Store, apiKey string) Option {
	return func(p *Pacer) error {
		switch v := reflect.ValueOf(store); {
		case store == nil || v.Kind() == reflect.Pointer && v.IsNil():
			return invalid("WithStore", "was given a nil store")
		case apiKey == "":
			return invalid("WithStore", "was given an empty API key")
		}
		p.store, p.apiKey, p.fleet = store, func() string { return apiKey }, fleet{}
		return nil
	}
}

// key names the value that holds the state of the API key under the limits,
// whatever their Max.
func (p *Pacer) key() string {
	hash := hmac.New(sha256.New, []byte(p.apiKey()))
	for _, r := range p.machine.rules {
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
	machine
	key, version string
	lost         bool // it begins afresh, though it was there before
}

// stepShared loads the state, changes it and swaps it, until it is the quickest.
func (p *Pacer) stepShared(f func(*machine)) error {
	for range mostTries {
		l, err := p.load()
		if err != nil {
			return err
		}
		f(&l.machine)
		var swapped bool
		longest := slices.MaxFunc(l.rules, func(a, b rule) int { return cmp.Compare(a.window, b.window) }).Window
		err = p.bounded(func(ctx context.Context) (err error) {
			swapped, err = p.store.Swap(ctx, l.key, l.version, l.encode(), 2*longest+time.Hour)
			return err
		})
		if err != nil {
			return err
		}
		if swapped {
			p.storeAnswered(l)
			return nil
		}
		p.fleet.late += (1 - p.fleet.late) / 200
		pause := time.Duration(rand.Int64N(p.fleet.took/2+1)) * time.Microsecond
		p.outside(func() { time.Sleep(pause) })
	}
	return errors.New("too many processes change the value at once")
}

// load reads the store's state, and adds what this process knows: that it is a
// member, and all else where it worked on another state, or a share.
func (p *Pacer) load() (*loaded, error) {
	f, l, began := &p.fleet, &loaded{machine: p.machine, key: p.key()}, p.now()
	var value []byte
	var at time.Time
	err := p.bounded(func(ctx context.Context) (err error) {
		value, l.version, at, err = p.store.Load(ctx, l.key)
		l.state = decode(value, len(l.rules))
		return err
	})
	if err != nil {
		return nil, err
	}
	if l.state == nil || at.UnixMicro() < l.Now-setBack {
		l.state = newState(l.rules, at.UnixMicro())
		l.lost = len(value) > 0 || f.seen == l.key
	}
	took := p.now() - began
	f.took += (2*took - f.took) / 4
	l.at(at.UnixMicro())
	l.offset, l.took, l.calls, l.lonely = l.Now-began-took/2, max(claimAhead/6, f.took), 1, false
	l.Members[l.member] = l.Now
	maps.DeleteFunc(l.Members, func(_, seen int64) bool { return seen < l.Now-memberFor })
	if f.down && l.last(nothing).Opens == 0 { // others may still be on their shares
		l.shut(nothing, l.Now+returnHold, "")
	}
	if f.down || l.lost || f.seen != "" && f.seen != l.key {
		l.join(p.here(p.now()))
	}
	return l, nil
}

// bounded gives a call of the store storeWait, whatever the store does.
func (p *Pacer) bounded(call func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	first := make(chan error, 2)
	go func() { first <- protect(func() error { return call(ctx) }) }()
	context.AfterFunc(ctx, func() { first <- ctx.Err() })
	p.outside(func() { err = <-first })
	return err
}

// errPanic is the error of calls that waited for a store or a clock that panicked. On
// a goroutine of the pacer's the panic would end the program.
var errPanic = errors.New("panic while calls waited")

func protect(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	return f()
}

// format numbers the layout of a value. Raise it where decode would misread an
// older one.
const format = 4

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
