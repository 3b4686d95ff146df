package pacer

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"
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
// store gets a value without texts of messages, of less than a kilobyte for up to 16
// processes. Its key in the store is a keyed hash, which does not reveal the API key. A
// nil store and an empty apiKey are errors.
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

// keyLocked names the value that holds the state of the API key under the limits,
// whatever their Max.
func (c *coordinator) keyLocked() string {
	hash := hmac.New(sha256.New, []byte(c.apiKey()))
	for _, r := range c.ledger.rules {
		fmt.Fprintf(hash, "%q %d %d\n", r.Key, r.window, r.counts)
	}
	return "agentmessaging:" + hex.EncodeToString(hash.Sum(nil)[:16])
}

// format numbers the layout of a value. Raise it where decode would misread an
// older one.
const format = 6

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
