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
	c := storeCheck{tb, newStore(), newStore(), "pacer-test:" + strconv.FormatInt(time.Now().UnixNano(), 36) + ":"}
	c.versions()
	c.values()
	c.race()
	c.expires()
}

type storeCheck struct {
	tb           TB
	store, other Store
	prefix       string // of its keys
}

func (c *storeCheck) want(holds bool, rule string) {
	if !holds {
		c.tb.Errorf("the store breaks a rule: %s", rule)
	}
}

func (c *storeCheck) load(s Store, key string) (value []byte, version string, now time.Time) {
	value, version, now, err := s.Load(context.Background(), c.prefix+key)
	if err != nil {
		c.tb.Errorf("Load failed: %v", err)
	}
	return value, version, now
}

func (c *storeCheck) swap(s Store, key, version, value string, ttl time.Duration) bool {
	swapped, err := s.Swap(context.Background(), c.prefix+key, version, []byte(value), ttl)
	if err != nil {
		c.tb.Errorf("Swap failed: %v; a version that is not current is no error", err)
	}
	return swapped
}

func (c *storeCheck) versions() {
	set := func(s Store, version, value string) bool { return c.swap(s, "versions", version, value, time.Minute) }
	value, version, began := c.load(c.store, "versions")
	c.want(len(value) == 0 && version == "", `a key that was never set has no value and the version ""`)
	c.want(!set(c.store, "7", "x"), `Swap of a key without a value needs the version ""`)
	c.want(set(c.store, "", "one"), `Swap with the version "" sets a key that has no value`)
	c.want(!set(c.other, "", "two"), `Swap with the version "" does not replace a value`)
	value, first, now := c.load(c.other, "versions")
	c.want(string(value) == "one", "Load returns what Swap has set, through another connection too")
	c.want(began.Unix() > 0 && !now.Before(began) && now.Sub(began) < time.Minute,
		"Load tells the store's time, which is the same for all connections and does not go back")
	c.want(first != "", `a key with a value has a version other than ""`)
	c.want(set(c.other, first, "two"), "Swap with the current version sets the value")
	c.want(!set(c.store, first, "three"), "Swap with an old version changes nothing")
	value, second, _ := c.load(c.store, "versions")
	c.want(string(value) == "two" && second != first, "each Swap gives the value a new version")
	set(c.store, second, "one")
	c.want(!set(c.store, first, "four"), "a version does not come back with an old value")
}

func (c *storeCheck) values() {
	odd := append([]byte{0, 0xff, '\n', '"'}, bytes.Repeat([]byte{7, 0x80}, 16<<10)...)
	c.want(c.swap(c.store, "values", "", string(odd), time.Minute), "a value may hold 32 KiB")
	value, _, _ := c.load(c.other, "values")
	c.want(bytes.Equal(value, odd), "a value may hold any bytes")
	clear(value)
	again, _, _ := c.load(c.store, "values")
	c.want(bytes.Equal(again, odd), "what Load returned is the caller's own")
	other, _, _ := c.load(c.store, "values2")
	c.want(len(other) == 0, "keys do not share a value")
}

// race lets eight connections count together.
func (c *storeCheck) race() {
	const connections, each = 8, 20
	var group sync.WaitGroup
	for i := range connections {
		store := []Store{c.store, c.other}[i%2]
		group.Go(func() {
			for done, tries := 0, 0; done < each && tries < 100*each; tries++ {
				value, version, _ := c.load(store, "race")
				n, _ := strconv.Atoi(string(value))
				if c.swap(store, "race", version, strconv.Itoa(n+1), time.Minute) {
					done++
				}
			}
		})
	}
	group.Wait()
	value, _, _ := c.load(c.store, "race")
	c.want(string(value) == strconv.Itoa(connections*each), "of several Swaps with one version one succeeds")
}

// expires waits for a value that may be dropped at once. A store may be late,
// but not early.
func (c *storeCheck) expires() {
	c.swap(c.store, "kept", "", "kept", time.Minute)
	c.swap(c.store, "dropped", "", "x", time.Millisecond)
	for range 300 {
		if value, _, _ := c.load(c.store, "dropped"); len(value) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	value, _, _ := c.load(c.store, "kept")
	c.want(string(value) == "kept", "a value is kept until its ttl has passed")
}
