// Package storetest checks your implementation of pacer.Store, in one of your tests:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func() pacer.Store { return newStore(t) })
//	}
package storetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/isnil"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// TB holds the methods of a *testing.T that [Run] calls.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Run checks a store. Each call of newStore returns a new connection, and all connections are
// to one server and see the same keys. The server need not be empty. Run takes a few seconds,
// or a minute if the store blocks. It leaves a few small keys that expire. Each failure names
// the rule that the store broke. Run sees the clock of one machine only, so it cannot check
// how far the clocks of several machines differ.
func Run(tb TB, newStore func() pacer.Store) {
	tb.Helper()
	prefix := "pacer-test:" + strconv.FormatInt(time.Now().UnixNano(), 36) + ":"
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	one, two := connection{tb, newStore(), prefix, ctx}, connection{tb, newStore(), prefix, ctx}
	if isnil.Value(one.store) || isnil.Value(two.store) { // Redis's store of a nil client is a nil pointer
		tb.Errorf("newStore returned a nil store")
		return
	}
	go func() { // on a goroutine, because a store may ignore ctx and block
		defer cancel()
		checkVersions(one, two)
		checkValues(one, two)
		checkRace(one, two)
	}()
	<-ctx.Done()
	if ctx.Err() == context.DeadlineExceeded {
		tb.Errorf("the store breaks a rule: each call returns soon, and when its context ends")
	}
}

// connection is a connection to the store. It reports every call that fails.
type connection struct {
	TB
	store  pacer.Store
	prefix string // put before each key
	ctx    context.Context
}

// want reports a rule that does not hold. Once ctx has ended, want reports nothing, because the
// test may be over.
func (c connection) want(holds bool, rule string) {
	if !holds && c.ctx.Err() == nil {
		c.Errorf("the store breaks a rule: %s", rule)
	}
}

func (c connection) load(key string) (value, version string, now time.Time) {
	bytes, version, now, err := c.store.Load(c.ctx, c.prefix+key)
	c.want(err == nil, fmt.Sprintf("Load succeeds; it failed: %v", err))
	value = string(bytes)
	clear(bytes) // allowed, since the caller owns what Load returned; checkValues looks for harm
	return value, version, now
}

func (c connection) swap(key, version, value string, ttl time.Duration) bool {
	swapped, err := c.store.Swap(c.ctx, c.prefix+key, version, []byte(value), ttl)
	c.want(err == nil, fmt.Sprintf("Swap succeeds, also if a version is not current; it failed: %v", err))
	return swapped
}

func checkVersions(one, two connection) {
	const key, ttl = "versions", time.Minute
	value, version, began := one.load(key)
	one.want(value == "" && version == "", `a key that was never set has no value and the version ""`)
	one.want(!one.swap(key, "7", "x", ttl), `Swap of a key without a value needs the version ""`)
	one.want(one.swap(key, "", "one", ttl), `Swap with the version "" sets a key that has no value`)
	one.want(!two.swap(key, "", "two", ttl), `Swap with the version "" does not replace a value`)
	value, first, now := two.load(key)
	one.want(value == "one", "Load returns what Swap has set, through another connection too")
	one.want(began.Unix() > 0 && !now.Before(began), "Load tells the store's time, which is the same for all connections and does not go back")
	one.want(first != "", `a key with a value has a version other than ""`)
	one.want(two.swap(key, first, "two", ttl), "Swap with the current version sets the value")
	one.want(!one.swap(key, first, "three", ttl), "Swap with an old version changes nothing")
	value, second, _ := one.load(key)
	one.want(value == "two" && second != first, "each Swap gives the value a new version")
	one.swap(key, second, "one", ttl)
	one.want(!one.swap(key, first, "four", ttl), "a version does not come back with an old value")
}

func checkValues(one, two connection) {
	odd := "\x00\xff\n\"" + strings.Repeat("\x07\x80", 16<<10)
	one.want(one.swap("values", "", odd, time.Minute), "a value may hold 32 KiB")
	one.swap("race", "", "expires before checkRace", time.Millisecond)
	one.swap("kept", "", "old", 50*time.Millisecond)
	_, version, before := one.load("kept")
	// On a slow machine the old value may have expired by now, so that Swap returns false. The
	// check of "kept" below is then left out.
	kept := one.swap("kept", version, "new", time.Minute)
	// A store may drop a value late, but not early. A store whose time has whole seconds must be at
	// the next one.
	time.Sleep(1100 * time.Millisecond)
	value, _, after := two.load("values")
	one.want(after.Sub(before) >= time.Second && after.Sub(before) < time.Minute, "the store's time passes as the time of this machine does")
	one.want(value == odd, "a value may hold any bytes, keys do not share one, and it is kept until its ttl has passed")
	value, _, _ = two.load("values")
	one.want(value == odd, "what Load returned is the caller's own")
	value, _, _ = two.load("kept")
	one.want(value == "new" || !kept, "each Swap counts the ttl anew")
	quickest := time.Hour // the quickest of several calls counts, because any machine may be slow for a while
	for range 5 {
		began := time.Now()
		one.load("values")
		quickest = min(quickest, time.Since(began))
	}
	one.want(quickest <= 250*time.Millisecond, "a call takes at most 250 ms: the pacer counts a slower store as away")
}

// checkRace lets eight callers count their Swaps in one value. The key's old value has expired
// before they begin, but a store may drop it late, while they work.
func checkRace(connections ...connection) {
	var swaps atomic.Int64
	var group sync.WaitGroup
	for i := range 8 {
		c := connections[i%len(connections)]
		group.Go(func() {
			for range 50 {
				value, version, _ := c.load("race")
				n, _ := strconv.Atoi(value)
				if c.swap("race", version, strconv.Itoa(n+1), time.Minute) {
					swaps.Add(1)
				}
			}
		})
	}
	group.Wait()
	value, _, _ := connections[0].load("race")
	connections[0].want(swaps.Load() > 0, "when its ttl has passed, a key can be set with the version that Load returns")
	connections[0].want(value == strconv.FormatInt(swaps.Load(), 10), "of several Swaps with one version one succeeds")
}
