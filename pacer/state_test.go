package pacer

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// someday is every time of the busy state.
const someday = 1_763_700_000 * second

// busy has something in every field.
func busy() *state {
	return &state{
		Format: format, Born: 7, Now: someday, Fresh: someday, Ahead: someday, Passed: 3,
		Limits: []limit{{
			short: short{
				Due: someday, Slots: []slot{{someday, 4}}, Level: 1.1, Corrected: someday,
				Quiet: someday, Pressed: someday, Patience: 30,
			},
			long: long{Begins: someday, Sent: 5, Most: 6, Lasts: hour, Probing: someday, Changed: someday},
		}},
		Gates:   gates{request: {someday, "wärm"}},
		Members: map[int64]int64{1 << 62: someday},
		Tickets: []ticket{{1 << 62, request, true, 2, someday}},
	}
}

func asJSON(t *testing.T, s *state) string {
	t.Helper()
	plain, err := json.Marshal(s)
	require.NoError(t, err)
	return string(plain)
}

func TestEncoding(t *testing.T) {
	assert.NotRegexp(t, `:(0|null|false|"")[,}]`, asJSON(t, busy()), "every field of the busy state is set")
	got, err := decode(busy().encode(), 1)
	require.NoError(t, err)
	assert.Equal(t, busy(), got)
}

func TestDecodeRefuses(t *testing.T) {
	value := busy().encode()
	const header = 10 // of gzip, of which not everything matters
	for i := header; i < len(value); i++ {
		changed := slices.Clone(value)
		changed[i]++
		_, err := decode(changed, 1)
		require.Equal(t, errDamaged, err, "byte %d", i)
	}
	_, err := decode(value[:len(value)-1], 1)
	assert.Equal(t, errDamaged, err)
	_, err = decode(value, 2)
	assert.Equal(t, errDamaged, err)
	s := busy()
	s.Format++
	_, err = decode(s.encode(), 1)
	assert.Equal(t, errFormat, err)
}

// FuzzDecode: a value of somebody else's is refused, or used without harm.
func FuzzDecode(f *testing.F) {
	f.Add(busy().encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := New([]Limit{{Max: 1, Window: 1 << 40}})
		require.NoError(t, err)
		if p.state, err = decode(value, 1); err == nil {
			p.State()
		}
	})
}
