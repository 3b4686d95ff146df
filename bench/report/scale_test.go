package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scale scale
		in    Figure
		want  string
	}{
		{nanoseconds, Figure{}, "not measured"},
		{nanoseconds, Figure{0.41, 0.41, 0.41, 3}, "0.41 ns"},
		{nanoseconds, Figure{4.12, 4.1, 4.14, 3}, "4.1 ns"}, // the same as written
		{nanoseconds, Figure{412, 405, 433, 3}, "410 ns (400–430)"},
		{nanoseconds, Figure{4120, 950, 12_000, 3}, "4.1 µs (0.95–12)"},
		{nanoseconds, Figure{5.2e9, 5.2e9, 5.2e9, 1}, "5.2 s"},
		{microseconds, Figure{1500, 1500, 1500, 1}, "1.5 ms"},
		{milliseconds, Figure{9.96, 9.96, 9.96, 1}, "10 ms"},
		{octets, Figure{1023, 1023, 1023, 1}, "1,000 B"},
		{octets, Figure{5120, 5120, 5120, 1}, "5.0 KiB"},
		{kibioctets, Figure{5120, 5120, 5120, 1}, "5.0 MiB"},
		{mebioctets, Figure{20, 19, 21, 2}, "20 MiB (19–21)"},
		{perSecond, Figure{12_345, 11_900, 13_100, 2}, "12,000/s (12,000–13,000)"},
		{count, Figure{1234, 1234, 1234, 1}, "1,234"},
		{count, Figure{1.0004, 1, 1.0008, 3}, "1"},
		{count, Figure{1.5, 1, 2, 3}, "1.5 (1–2)"},
		{count, Figure{0, 0, 0, 3}, "0"},
		{times, Figure{1.314, 1.3, 1.35, 3}, "1.31 (1.30–1.35)"},
	} {
		assert.Equal(t, c.want, c.scale.cell(c.in))
	}
}

func TestBoundDigits(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "1.25", times.bound(1.25))
	assert.Equal(t, "384 KiB", kibioctets.bound(384))
	assert.Equal(t, "1 KiB", octets.bound(1024))
	assert.Equal(t, "0", count.bound(0))
}
