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
	c := storeCheck{tb: tb, store: newStore(), other: newStore(), prefix: "pacer-test:" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	c.versions()
	c.values()
	c.clock()
	c.race()
	c.expires()
}

type storeCheck struct {
	tb           TB
	store, other Store
	prefix       string
}

func (c *storeCheck) key(name string) string { return c.prefix + ":" + name }

func (c *storeCheck) load(s Store, key string) (value []byte, version string) {
	value, version, _, err := s.Load(context.Background(), key)
	if err != nil {
		c.tb.Errorf("Load failed: %v", err)
	}
	return value, version
}

func (c *storeCheck) swap(s Store, key, version string, value []byte) bool {
	swapped, err := s.Swap(context.Background(), key, version, value, time.Minute)
	if err != nil {
		c.tb.Errorf("Swap failed: %v; a version that is not current is no error", err)
	}
	return swapped
}

func (c *storeCheck) want(holds bool, rule string) {
	if !holds {
		c.tb.Errorf("the store breaks a rule: %s", rule)
	}
}

func (c *storeCheck) versions() {
	key := c.key("versions")
	value, version := c.load(c.store, key)
	c.want(len(value) == 0 && version == "", `a key that was never set has no value and the version ""`)
	c.want(!c.swap(c.store, key, "7", []byte("x")), `Swap of a key without a value needs the version ""`)
	c.want(c.swap(c.store, key, "", []byte("one")), `Swap with the version "" sets a key that has no value`)
	c.want(!c.swap(c.other, key, "", []byte("two")), `Swap with the version "" does not replace a value`)
	value, first := c.load(c.other, key)
	c.want(string(value) == "one", "Load returns what Swap has set, through another connection too")
	c.want(first != "", `a key with a value has a version other than ""`)
	c.want(c.swap(c.other, key, first, []byte("two")), "Swap with the current version sets the value")
	c.want(!c.swap(c.store, key, first, []byte("three")), "Swap with an old version changes nothing")
	value, second := c.load(c.store, key)
	c.want(string(value) == "two" && second != first, "each Swap gives the value a new version")
	c.swap(c.store, key, second, []byte("one"))
	c.want(!c.swap(c.store, key, first, []byte("four")), "a version does not come back with an old value")
}

func (c *storeCheck) values() {
	key, odd := c.key("values"), append([]byte{0, 0xff, '\n', '"'}, bytes.Repeat([]byte{7, 0x80}, 16<<10)...)
	c.want(c.swap(c.store, key, "", odd), "a value may hold 32 KiB")
	value, _ := c.load(c.other, key)
	c.want(bytes.Equal(value, odd), "a value may hold any bytes")
	copy(value, bytes.Repeat([]byte{1}, len(value)))
	again, _ := c.load(c.store, key)
	c.want(bytes.Equal(again, odd), "what Load returned is the caller's own")
	other, _ := c.load(c.store, key+"2")
	c.want(len(other) == 0, "keys do not share a value")
}

func (c *storeCheck) clock() {
	_, _, first, _ := c.store.Load(context.Background(), c.key("clock"))
	_, _, second, _ := c.other.Load(context.Background(), c.key("clock"))
	c.want(first.Unix() > 0 && !second.Before(first) && second.Sub(first) < time.Minute,
		"Load tells the store's time, which is the same for all connections and does not go back")
}

// race lets eight connections count together.
func (c *storeCheck) race() {
	const connections, each = 8, 20
	key := c.key("race")
	var group sync.WaitGroup
	for i := range connections {
		store := []Store{c.store, c.other}[i%2]
		group.Go(func() {
			for done, tries := 0, 0; done < each && tries < 100*each; tries++ {
				value, version := c.load(store, key)
				n, _ := strconv.Atoi(string(value))
				if swapped, err := store.Swap(context.Background(), key, version, []byte(strconv.Itoa(n+1)), time.Minute); err != nil {
					return // told by the checks before
				} else if swapped {
					done++
				}
			}
		})
	}
	group.Wait()
	value, _ := c.load(c.store, key)
	c.want(string(value) == strconv.Itoa(connections*each), "of several Swaps with one version one succeeds")
}

// expires waits for a value that may be dropped at once. A store may be late,
// but not early.
func (c *storeCheck) expires() {
	key := c.key("expires")
	c.swap(c.store, key, "", []byte("kept"))
	if _, err := c.store.Swap(context.Background(), c.key("dropped"), "", []byte("x"), time.Millisecond); err != nil {
		c.tb.Errorf("Swap failed with a ttl of a millisecond: %v", err)
	}
	for range 300 {
		if value, _ := c.load(c.store, c.key("dropped")); len(value) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	value, _ := c.load(c.store, key)
	c.want(string(value) == "kept", "a value is kept until its ttl has passed")
}
