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
	m.opens, m.passed, m.limits[0].top, m.limits[1].pressed = now+second, 3, 66, now-second
	m.limits[2].probing = now + second
	return s, rules
}

func TestCodec(t *testing.T) {
	s, rules := busyState(t)
	got, err := decode(s.encode(), len(rules))
	require.NoError(t, err)
	assert.Equal(t, s.encode(), got.encode())
	assert.InDelta(t, s.limits[0].level, got.limits[0].level, 0.001, "the level is rounded")
	for i := range s.limits {
		s.limits[i].level, got.limits[i].level = 0, 0
	}
	assert.Equal(t, s, got)
}

// TestValueIsSmall at the preview's limits.
func TestValueIsSmall(t *testing.T) {
	rules := rulesFor(t, PreviewLimits()...)
	for processes, most := range map[int64]int{1: 500, 16: 1000, 64: 2500} {
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
	for i := range value {
		changed := append([]byte(nil), value...)
		changed[i]++
		_, err := decode(changed, len(rules))
		require.Error(t, err, "byte %d", i)
	}
	_, err := decode(value[:len(value)-1], len(rules))
	assert.Equal(t, errDamaged, err)
	_, err = decode(value, len(rules)+1)
	assert.Equal(t, errDamaged, err)
	value[0] = format + 1
	_, err = decode(value, len(rules))
	assert.Equal(t, errFormat, err)
}

// FuzzDecode: a value of somebody else's is refused, or read without harm.
func FuzzDecode(f *testing.F) {
	s, rules := busyState(f)
	f.Add(s.encode()[5:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		got := &state{}
		c := &coder{reads: true, value: body}
		if got.visit(c); c.bad || len(got.limits) != len(rules) || got.now < someday-hour || got.now > someday+hour {
			return
		}
		assert.NotNil(t, got.encode())
	})
}
