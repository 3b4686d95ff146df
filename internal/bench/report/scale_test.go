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
		{nanoseconds, figureOf(0.41, 0.41, 0.41, 3), "0.41 ns"},
		{nanoseconds, figureOf(4.12, 4.1, 4.14, 3), "4.1 ns"}, // the same as written
		{nanoseconds, figureOf(412, 405, 433, 3), "410 ns (400–430)"},
		{nanoseconds, figureOf(4120, 950, 12_000, 3), "4.1 µs (0.95–12)"},
		{nanoseconds, figureOf(5.2e9, 5.2e9, 5.2e9, 1), "5.2 s"},
		{microseconds, figureOf(1500, 1500, 1500, 1), "1.5 ms"},
		{milliseconds, figureOf(9.96, 9.96, 9.96, 1), "10 ms"},
		{octets, figureOf(1023, 1023, 1023, 1), "1,000 B"},
		{octets, figureOf(5120, 5120, 5120, 1), "5.0 KiB"},
		{kibioctets, figureOf(5120, 5120, 5120, 1), "5.0 MiB"},
		{mebioctets, figureOf(20, 19, 21, 2), "20 MiB (19–21)"},
		{perSecond, figureOf(12_345, 11_900, 13_100, 2), "12,000/s (12,000–13,000)"},
		{count, figureOf(1234, 1234, 1234, 1), "1,234"},
		{count, figureOf(1.0004, 1, 1.0008, 3), "1"},
		{count, figureOf(1.5, 1, 2, 3), "1.5 (1–2)"},
		{count, figureOf(0, 0, 0, 3), "0"},
		{times, figureOf(1.314, 1.3, 1.35, 3), "1.31 (1.30–1.35)"},
		{times, Figure{1.314, 1.3, 1.35, 3, true}, "1.31 (1.30–1.35), of 3 rounds"},
		{count, Figure{7, 7, 7, 2, true}, "7, of 2 rounds"},
		{count, Figure{7, 7, 7, 1, true}, "7, of 1 round"},
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
