package pacer

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// format is the first byte of a value. A change of what follows needs another.
const format = 1

var (
	errFormat  = errors.New("the value in the store has another format")
	errDamaged = errors.New("the value in the store is damaged")
)

// encode is the state as a value: format, checksum, members in a fixed order.
func (s *state) encode() []byte {
	c := &coder{base: s.now, value: []byte{format, 0, 0, 0, 0}}
	s.visit(c)
	binary.BigEndian.PutUint32(c.value[1:], crc32.ChecksumIEEE(c.value[5:]))
	return c.value
}

// decode is a value as a state of so many limits.
func decode(value []byte, limits int) (*state, error) {
	switch {
	case len(value) < 5 || binary.BigEndian.Uint32(value[1:]) != crc32.ChecksumIEEE(value[5:]):
		return nil, errDamaged
	case value[0] != format:
		return nil, errFormat
	}
	s := &state{}
	c := &coder{reads: true, value: value[5:]}
	s.visit(c)
	if c.bad || len(c.value) > 0 || len(s.limits) != limits {
		return nil, errDamaged
	}
	return s, nil
}

// coder writes a state, reads one, or shifts all its times: what visit names is
// stated once for the three.
type coder struct {
	reads bool
	shift int64
	base  int64  // times are written as what they are before it
	value []byte // written, or not read yet
	bad   bool
}

func (s *state) visit(c *coder) {
	c.int(&s.now)
	if c.reads {
		c.base = s.now
	}
	c.int(&s.born)
	c.time(&s.fresh)
	c.time(&s.opens)
	c.int(&s.passed)
	list(c, &s.limits, (*limit).visit)
	list(c, &s.gates, func(g *gate, c *coder) { c.kinds(&g.kinds); c.time(&g.opens); c.text(&g.key) })
	list(c, &s.members, func(m *member, c *coder) { c.int(&m.id); c.time(&m.seen); c.int(&m.spread) })
	list(c, &s.tickets, func(t *ticket, c *coder) {
		c.int(&t.member)
		c.kinds(&t.kinds)
		c.bool(&t.batch)
		c.int(&t.calls)
		c.time(&t.due)
	})
	if c.shift != 0 {
		s.now += c.shift
	}
}

func (l *limit) visit(c *coder) {
	for _, t := range []*int64{&l.due, &l.corrected, &l.quiet, &l.pressed, &l.begins, &l.probing, &l.changed} {
		c.time(t)
	}
	for _, n := range []*int64{&l.streak, &l.patience, &l.sent, &l.most, &l.lasts} {
		c.int(n)
	}
	c.float(&l.level)
	c.float(&l.top)
	last := int64(0)
	list(c, &l.slots, func(s *slot, c *coder) {
		number := s.number - last
		c.int(&number)
		last += number
		s.number = last
		c.int(&s.calls)
	})
}

func (c *coder) int(n *int64) {
	switch {
	case c.reads:
		got, size := binary.Varint(c.value)
		if size <= 0 {
			c.bad, c.value, got, size = true, nil, 0, 0
		}
		*n, c.value = got, c.value[size:]
	case c.shift == 0:
		c.value = binary.AppendVarint(c.value, *n)
	}
}

// time keeps 0, which means never.
func (c *coder) time(t *int64) {
	if c.shift != 0 {
		if *t != 0 {
			*t += c.shift
		}
		return
	}
	before := c.base - *t
	if before >= 0 {
		before++
	}
	if *t == 0 {
		before = 0
	}
	c.int(&before)
	switch {
	case before > 0:
		*t = c.base - before + 1
	case before < 0:
		*t = c.base - before
	default:
		*t = 0
	}
}

func (c *coder) kinds(k *kinds) {
	n := int64(*k)
	c.int(&n)
	*k = kinds(n)
}

func (c *coder) bool(b *bool) {
	n := int64(0)
	if *b {
		n = 1
	}
	c.int(&n)
	*b = n != 0
}

// float keeps thousandths.
func (c *coder) float(x *float64) {
	n := int64(*x * 1000)
	c.int(&n)
	if c.reads {
		*x = float64(n) / 1000
	}
}

func (c *coder) text(s *string) {
	bytes := []byte(*s)
	list(c, &bytes, func(b *byte, c *coder) {
		if n := int64(*b); c.shift == 0 {
			c.int(&n)
			*b = byte(n)
		}
	})
	*s = string(bytes)
}

func list[T any](c *coder, items *[]T, visit func(*T, *coder)) {
	n := int64(len(*items))
	c.int(&n)
	if n < 0 || c.reads && n > int64(len(c.value)) {
		c.bad = true
		return
	}
	if c.reads && n > 0 {
		*items = make([]T, n)
	}
	for i := range *items {
		visit(&(*items)[i], c)
	}
}
