package pacer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
)

// state is all that the processes of one API key share: the value in the store.
// Times are in microseconds of the state's clock; 0 means never.
type state struct {
	Format  int
	Born    int64 // names this state: one that was lost is followed by another
	Ahead   int64 // of the store's clock: by what that one was set back
	Now     int64 // the latest time that was seen
	Fresh   int64 // since when the calls of all processes are in it
	Passed  int   // interactive calls that went before a batch call
	Limits  []limit
	Gates   gates
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
const format = 3

var (
	errFormat  = errors.New("the value in the store has another format")
	errDamaged = errors.New("the value in the store is damaged")
)

const (
	memberFor = 120 * second
	setBack   = 5 * second
)

func newState(rules []rule, now, born int64) *state {
	s := &state{Format: format, Born: born, Now: now, Fresh: now,
		Limits: make([]limit, len(rules)), Gates: gates{}, Members: map[int64]int64{}}
	for b := range s.at(rules, now).spent(everything) {
		b.pause(now - (atOnceAtFirst-1)*b.pace)
	}
	return s
}

// at brings the state to a time. Its own clock goes on where the store's is set
// back.
func (s *state) at(rules []rule, now int64) *machine {
	if now += s.Ahead; now < s.Now-setBack {
		s.Ahead += s.Now - now
	}
	s.Now = max(s.Now, now)
	maps.DeleteFunc(s.Gates, func(_ kinds, g gate) bool { return g.Opens <= s.Now })
	maps.DeleteFunc(s.Members, func(_, seen int64) bool { return seen < s.Now-memberFor })
	s.Tickets = slices.DeleteFunc(s.Tickets, func(t ticket) bool { return t.Due < s.Now-ticketFor })
	return &machine{state: s, rules: rules, now: s.Now, calls: 1}
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

func decode(value []byte, limits int) (*state, error) {
	unzipper, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil, errDamaged
	}
	plain, err := io.ReadAll(io.LimitReader(unzipper, mostBytes))
	s := &state{}
	switch {
	case err != nil:
		return nil, errDamaged
	case json.Unmarshal(plain, s) != nil || s.Format != format:
		return nil, errFormat
	case len(s.Limits) != limits || s.Gates == nil || s.Members == nil:
		return nil, errDamaged
	}
	return s, nil
}
