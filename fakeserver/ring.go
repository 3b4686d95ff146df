package fakeserver

import (
	"math"
	"slices"
	"sort"
)

// Unlimited is for WithCallLimit, WithBodyLimit and WithConversationLimit:
// everything is kept, and memory grows for as long as the fake is used.
const Unlimited = math.MaxInt

// ring keeps the newest items. Adding one costs the same however many there
// are.
type ring[T any] struct {
	kept    []T
	oldest  int // where the ring starts, once it is full
	dropped int
}

// add keeps an item, and drops the oldest where there would be more than
// limit, which is the same at each call.
func (r *ring[T]) add(item T, limit int) {
	switch {
	case len(r.kept) < limit:
		r.kept = append(r.kept, item)
		return
	case limit > 0:
		r.kept[r.oldest] = item
		r.oldest = (r.oldest + 1) % limit
	}
	r.dropped++
}

// all returns a copy of the items, oldest first.
func (r *ring[T]) all() []T { return slices.Concat(r.kept[r.oldest:], r.kept[:r.oldest]) }

// since returns a copy of the items from the first that is new, oldest first.
// Once one is new, all behind it are.
func (r *ring[T]) since(isNew func(T) bool) []T {
	at := func(i int) T { return r.kept[(r.oldest+i)%len(r.kept)] }
	first := sort.Search(len(r.kept), func(i int) bool { return isNew(at(i)) })
	found := make([]T, 0, len(r.kept)-first)
	for i := first; i < len(r.kept); i++ {
		found = append(found, at(i))
	}
	return found
}

func (r *ring[T]) clone() ring[T] {
	c := *r
	c.kept = slices.Clone(r.kept)
	return c
}
