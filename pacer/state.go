package pacer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// state is all that the processes of one API key share: the value in the store.
// Times are in microseconds of the store's clock; 0 means never.
type state struct {
	Format  int
	Born    int64 // names this state: one that was lost is followed by another
	Now     int64 // the latest time that was seen
	Fresh   int64 // since when the calls of all processes are in it
	Passed  int   // interactive calls that went before a batch call
	Limits  []limit
	Gates   gates
	Members []member
	Tickets []ticket
}

// limit is the state of a rule; which half is used depends on its window.
type limit struct {
	short
	long
}

// member is a process that asked within the last two minutes.
type member struct {
	ID     int64
	Seen   int64
	Spread int64 // by how much its answers' times differ
}

// format numbers the layout of a value. Raise it where decode would misread an
// older one.
const format = 2

var (
	errFormat  = errors.New("the value in the store has another format")
	errDamaged = errors.New("the value in the store is damaged")
	errLost    = errors.New("the store has lost the value")
)

func newState(rules []rule, now, born int64) *state {
	s := &state{Format: format, Born: born, Now: now, Fresh: now, Limits: make([]limit, len(rules))}
	m := machine{state: s, rules: rules, now: now, calls: 1}
	m.resume(atOnceAtFirst)
	return s
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

// decode is a value as a state of so many limits.
func decode(value []byte, limits int) (*state, error) {
	unzipper, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil, errDamaged
	}
	plain, err := io.ReadAll(io.LimitReader(unzipper, mostBytes))
	s := &state{}
	switch {
	case err != nil || json.Unmarshal(plain, s) != nil:
		return nil, errDamaged
	case s.Format != format:
		return nil, errFormat
	case len(s.Limits) != limits:
		return nil, errDamaged
	}
	return s, nil
}

func (s *state) clone() *state {
	c, _ := decode(s.encode(), len(s.Limits))
	return c
}

// move changes all times of the state.
func (s *state) move(by int64) {
	times := []*int64{&s.Now, &s.Fresh}
	for i := range s.Limits {
		l := &s.Limits[i]
		times = append(times, &l.Due, &l.Corrected, &l.Quiet, &l.Pressed, &l.Begins, &l.Probing, &l.Changed)
		for j := range l.Slots {
			times = append(times, &l.Slots[j].Ends)
		}
	}
	for i := range s.Gates {
		times = append(times, &s.Gates[i].Opens)
	}
	for i := range s.Members {
		times = append(times, &s.Members[i].Seen)
	}
	for i := range s.Tickets {
		times = append(times, &s.Tickets[i].Due)
	}
	for _, t := range times {
		if *t != 0 {
			*t += by
		}
	}
}
