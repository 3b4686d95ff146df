package pacer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"slices"
	"sync"
)

// state is all that the processes of one API key share: the value in the store.
// Times are in microseconds of the state's clock; 0 means never.
type state struct {
	Format  int
	Now     int64 // the latest time that was seen
	Fresh   int64 // since when the calls of all processes are in it
	Limits  []limit
	Gates   []gate
	Members map[int64]int64 // when each process asked last
	Tickets []ticket
}

// limit is the state of a rule; which half is used depends on its window.
type limit struct {
	short
	long
}

// format numbers the layout of a value. Raise it where decode would misread an
// older one.
const format = 4

const (
	memberFor = 120 * second
	setBack   = 5 * second
)

func newState(rules []rule, now int64) *state {
	s := &state{Format: format, Now: now, Fresh: now,
		Limits: slices.Repeat([]limit{{short: short{Level: 1}}}, len(rules)), Members: map[int64]int64{}}
	m := machine{state: s, rules: rules, calls: 1}
	for b := range m.budgets(everything) {
		b.pause(now - (atOnceAtFirst-1)*b.pace)
	}
	return s
}

// at brings the state to a time.
func (s *state) at(now int64) {
	s.Now = max(s.Now, now)
	s.Gates = slices.DeleteFunc(s.Gates, func(g gate) bool { return g.Opens <= s.Now })
	s.Tickets = slices.DeleteFunc(s.Tickets, func(t ticket) bool { return t.Due < s.Now-ticketFor })
}

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
