package pacer

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// A Store keeps one value for each key, for all processes: Redis, Postgres,
// etcd, DynamoDB or another database that can compare and swap. Module redisstore of
// this repository has one; storetest.Run checks yours. Its methods must be safe for
// concurrent use. The pacer gives up each call after 250 ms, even if the method
// ignores ctx. While calls fail, the pacer keeps to a share of the limits ([WithStore]).
type Store interface {
	// Load returns the value of a key, the value's version, and the store's time, which is
	// the same for all processes. A key that was never set, or has expired, has no value
	// and the version "".
	//
	// If the store has no clock, as etcd and DynamoDB, return time.Now, and let NTP keep the
	// hosts' clocks within a few milliseconds of one another. Calls go too early or too late
	// by the difference of the clocks. If clocks differ by more than 5 s, processes lose the
	// shared state again and again: the pacer logs that, but storetest cannot see it.
	Load(ctx context.Context, key string) (value []byte, version string, now time.Time, err error)
	// Swap sets the value if the key still has this version, and reports whether it set
	// the value. The version "" means that the key has no value, or that its value has
	// expired, as in Load. After ttl without another Swap, the store may drop the value,
	// or let it expire.
	Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (swapped bool, err error)
}

// storeWait bounds one call of the store.
const storeWait = 250 * time.Millisecond

// boundedStore bounds the calls of a Store.
type boundedStore struct {
	Store
	busy atomic.Bool // a call has not returned yet
}

// stored is what Load returns.
type stored struct {
	value   []byte
	version string
	at      time.Time // the store's time
}

// callStore makes a call of the store, and waits for it for at most storeWait, even if the
// store ignores its context. Until that call has returned, callStore makes no other one, and
// returns an error. It turns a panic of the store into an error.
func callStore[T any](b *boundedStore, call func(context.Context) (T, error)) (none T, err error) {
	if !b.busy.CompareAndSwap(false, true) {
		return none, errors.New("the last call of the store has not returned")
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	returned := make(chan error, 1)
	var result T // of the goroutine that calls the store, until it has returned
	quota.Go(func() (err error) {
		result, err = call(ctx)
		return err
	}, func(err error) {
		b.busy.Store(false)
		returned <- err
	})
	select {
	case err = <-returned:
		return result, err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// zippers reuses gzip.Writers, because making one costs more than compressing a state.
var zippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// format is the version of the state's layout. Raise it if decode would misread a value of an
// earlier version.
const format = 11

// encode returns the state as the store keeps it. gzip makes the JSON small, and its
// checksum shows whether a value is damaged.
func (s *state) encode() []byte {
	var value bytes.Buffer
	zipper := zippers.Get().(*gzip.Writer)
	defer zippers.Put(zipper)
	zipper.Reset(&value)
	_ = json.NewEncoder(zipper).Encode(s) // cannot fail: numbers and text, written to a buffer
	_ = zipper.Close()
	return value.Bytes()
}

// maxBytes bounds the JSON that decode reads; 64 processes need about 10 kB.
const maxBytes = 1 << 20

// decode returns nil for a value that is damaged, or has another number of limits.
func decode(value []byte, limits int) *state {
	unzipper, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil
	}
	plain, err := io.ReadAll(io.LimitReader(unzipper, maxBytes))
	s := &state{}
	if err != nil || json.Unmarshal(plain, s) != nil ||
		len(s.Limits) != limits || s.Gates == nil || s.Members == nil {
		return nil
	}
	return s
}
