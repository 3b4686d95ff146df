package pacer

import (
	"encoding/json"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newBusyPlay has something in every field.
func newBusyPlay(t testing.TB) play {
	p := newPlay(t, PreviewLimits()...)
	now := p.fill(someday, 2*minute)
	m := p.at(now)
	for member := range int64(3) {
		m.ask(ask{member: 1<<62 + member, spread: 1000, kinds: creation, batch: member == 1, waits: 3, ahead: claimAhead})
	}
	m.refused(refusal{kinds: message, granted: now, wait: 30 * second, key: "key_minute"})
	m.refused(refusal{kinds: warmUp, granted: now, wait: hour, key: "wärm"})
	p.Passed, p.Limits[0].Top, p.Limits[1].Pressed, p.Limits[2].Probing = 3, 66, now-second, now+second
	return p
}

func TestEncoding(t *testing.T) {
	p := newBusyPlay(t)
	got, err := decode(p.encode(), len(p.rules))
	require.NoError(t, err)
	assert.Equal(t, p.state, got)
}

// TestMove moves every time of the state, and nothing else.
func TestMove(t *testing.T) {
	p := newBusyPlay(t)
	numbers := func() (all []int64) {
		plain, err := json.Marshal(p.state)
		require.NoError(t, err)
		for _, number := range regexp.MustCompile(`\d+`).FindAllString(string(plain), -1) {
			n, _ := strconv.ParseInt(number, 10, 64)
			all = append(all, n)
		}
		return all
	}
	before := numbers()
	p.move(-hour)
	for i, now := range numbers() {
		if isTime := before[i] > someday-hour && before[i] < someday+2*hour; isTime {
			assert.Equal(t, before[i]-hour, now, "number %d of the state", i)
		} else {
			assert.Equal(t, before[i], now, "number %d of the state", i)
		}
	}
}

// TestValueIsSmall at the preview's limits.
func TestValueIsSmall(t *testing.T) {
	for processes, most := range map[int64]int{1: 600, 16: 1000, 64: 2000} {
		p := newPlay(t, PreviewLimits()...)
		for now := someday; now < someday+2*minute; now += second {
			for member := range processes {
				p.at(now).ask(ask{member: 1<<62 + member, kinds: message, waits: 9, ahead: claimAhead})
			}
		}
		assert.Less(t, len(p.encode()), most, "%d processes", processes)
	}
}

func TestDecodeRefuses(t *testing.T) {
	p := newBusyPlay(t)
	value := p.encode()
	const header = 10 // of gzip, of which not everything matters
	for i := header; i < len(value); i++ {
		changed := append([]byte(nil), value...)
		changed[i]++
		_, err := decode(changed, len(p.rules))
		require.Error(t, err, "byte %d", i)
	}
	_, err := decode(value[:len(value)-1], len(p.rules))
	assert.Equal(t, errDamaged, err)
	_, err = decode(value, len(p.rules)+1)
	assert.Equal(t, errDamaged, err)
	p.Format++
	_, err = decode(p.encode(), len(p.rules))
	assert.Equal(t, errFormat, err)
}

// FuzzDecode: a value of somebody else's is refused, or used without harm.
func FuzzDecode(f *testing.F) {
	p := newBusyPlay(f)
	f.Add(p.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		if got, err := decode(value, len(p.rules)); err == nil {
			play{got, p.rules}.at(someday).ask(ask{kinds: message, waits: 1})
		}
	})
}
