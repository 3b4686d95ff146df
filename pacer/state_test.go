package pacer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// busyState has something in every field.
func busyState(t testing.TB) (*state, []rule) {
	rules := rulesFor(t, PreviewLimits()...)
	s := newState(rules, someday, -5)
	now := fill(s, rules, someday, 2*minute)
	m := s.at(rules, now)
	for member := range int64(3) {
		m.ask(ask{member: 1<<62 + member, spread: 1000, kinds: creation, batch: member == 1, waits: 3, ahead: claimAhead})
	}
	m.refused(refusal{kinds: message, granted: now, wait: 30 * second, key: "key_minute"})
	m.refused(refusal{kinds: warmUp, granted: now, wait: hour, key: "wärm"})
	m.Passed, m.Limits[0].Top, m.Limits[1].Pressed = 3, 66, now-second
	m.Limits[2].Probing = now + second
	return s, rules
}

func TestCodec(t *testing.T) {
	s, rules := busyState(t)
	got, err := decode(s.encode(), len(rules))
	require.NoError(t, err)
	assert.Equal(t, s, got)
}

// TestValueIsSmall at the preview's limits.
func TestValueIsSmall(t *testing.T) {
	rules := rulesFor(t, PreviewLimits()...)
	for processes, most := range map[int64]int{1: 600, 16: 1000, 64: 2000} {
		s := newState(rules, someday, 1<<60)
		for now := someday; now < someday+3*minute; now += second {
			for member := range processes {
				s.at(rules, now).ask(ask{member: 1<<62 + member, kinds: message, waits: 9, ahead: claimAhead})
			}
		}
		assert.Less(t, len(s.encode()), most, "%d processes", processes)
	}
}

func TestDecodeRefuses(t *testing.T) {
	s, rules := busyState(t)
	value := s.encode()
	const header = 10 // of gzip, of which not everything matters
	for i := header; i < len(value); i++ {
		changed := append([]byte(nil), value...)
		changed[i]++
		_, err := decode(changed, len(rules))
		require.Error(t, err, "byte %d", i)
	}
	_, err := decode(value[:len(value)-1], len(rules))
	assert.Equal(t, errDamaged, err)
	_, err = decode(value, len(rules)+1)
	assert.Equal(t, errDamaged, err)
	s.Format = format + 1
	_, err = decode(s.encode(), len(rules))
	assert.Equal(t, errFormat, err)
}

// FuzzDecode: a value of somebody else's is refused, or read without harm.
func FuzzDecode(f *testing.F) {
	s, rules := busyState(f)
	f.Add(s.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		if got, err := decode(value, len(rules)); err == nil {
			assert.NotNil(t, got.encode())
		}
	})
}
