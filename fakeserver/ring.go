package fakeserver

import (
	"math"
	"slices"
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

func (r *ring[T]) clone() ring[T] {
	c := *r
	c.kept = slices.Clone(r.kept)
	return c
}
