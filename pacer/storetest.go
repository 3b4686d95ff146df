package pacer

import (
	"bytes"
	"context"
	"strconv"
	"sync"
	"time"
)

// TB is what [TestStore] needs of a *testing.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// TestStore checks a [Store] of yours: newStore returns one, empty or not,
// whenever it is called; several are to share what they keep, as connections to
// one server do. It takes a few seconds at most, and leaves a few small keys
// that expire. What the store does wrong is said in words.
func TestStore(tb TB, newStore func() Store) {
	tb.Helper()
	prefix := "pacer-test:" + strconv.FormatInt(time.Now().UnixNano(), 36) + ":"
	one, two := connection{newStore(), tb, prefix}, connection{newStore(), tb, prefix}
	checkVersions(one, two)
	checkValues(one, two)
	checkRace(one, two)
}

// connection is a store of which each call has to succeed.
type connection struct {
	store  Store
	tb     TB
	prefix string // of the keys
}

func (c connection) want(holds bool, rule string) {
	if !holds {
		c.tb.Errorf("the store breaks a rule: %s", rule)
	}
}

func (c connection) load(key string) (value []byte, version string, now time.Time) {
	value, version, now, err := c.store.Load(context.Background(), c.prefix+key)
	if err != nil {
		c.tb.Errorf("Load failed: %v", err)
	}
	return value, version, now
}

func (c connection) swap(key, version, value string, ttl time.Duration) bool {
	swapped, err := c.store.Swap(context.Background(), c.prefix+key, version, []byte(value), ttl)
	if err != nil {
		c.tb.Errorf("Swap failed: %v; a version that is not current is no error", err)
	}
	return swapped
}

func checkVersions(one, two connection) {
	const key, ttl = "versions", time.Minute
	value, version, began := one.load(key)
	one.want(len(value) == 0 && version == "", `a key that was never set has no value and the version ""`)
	one.want(!one.swap(key, "7", "x", ttl), `Swap of a key without a value needs the version ""`)
	one.want(one.swap(key, "", "one", ttl), `Swap with the version "" sets a key that has no value`)
	one.want(!two.swap(key, "", "two", ttl), `Swap with the version "" does not replace a value`)
	value, first, now := two.load(key)
	one.want(string(value) == "one", "Load returns what Swap has set, through another connection too")
	one.want(began.Unix() > 0 && !now.Before(began) && now.Sub(began) < time.Minute,
		"Load tells the store's time, which is the same for all connections and does not go back")
	one.want(first != "", `a key with a value has a version other than ""`)
	one.want(two.swap(key, first, "two", ttl), "Swap with the current version sets the value")
	one.want(!one.swap(key, first, "three", ttl), "Swap with an old version changes nothing")
	value, second, _ := one.load(key)
	one.want(string(value) == "two" && second != first, "each Swap gives the value a new version")
	one.swap(key, second, "one", ttl)
	one.want(!one.swap(key, first, "four", ttl), "a version does not come back with an old value")
}

func checkValues(one, two connection) {
	odd := append([]byte{0, 0xff, '\n', '"'}, bytes.Repeat([]byte{7, 0x80}, 16<<10)...)
	one.want(one.swap("values", "", string(odd), time.Minute), "a value may hold 32 KiB")
	value, _, _ := two.load("values")
	one.want(bytes.Equal(value, odd), "a value may hold any bytes")
	clear(value)
	one.swap("values2", "", "x", time.Millisecond)
	time.Sleep(50 * time.Millisecond) // a store may drop a value late, but not early
	value, _, _ = one.load("values")
	one.want(bytes.Equal(value, odd), "what Load returned is the caller's own, keys do not share a value, and it is kept until its ttl has passed")
}

// checkRace lets eight callers count together.
func checkRace(connections ...connection) {
	const callers, each = 8, 20
	var group sync.WaitGroup
	for i := range callers {
		c := connections[i%len(connections)]
		group.Go(func() {
			for done, tries := 0, 0; done < each && tries < 100*each; tries++ {
				value, version, _ := c.load("race")
				n, _ := strconv.Atoi(string(value))
				if c.swap("race", version, strconv.Itoa(n+1), time.Minute) {
					done++
				}
			}
		})
	}
	group.Wait()
	value, _, _ := connections[0].load("race")
	connections[0].want(string(value) == strconv.Itoa(callers*each), "of several Swaps with one version one succeeds")
}
