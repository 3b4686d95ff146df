package report

import (
	"math"
	"strconv"
	"strings"
)

const notMeasured = "not measured"

// A scale writes figures of one unit for a reader. The number of a figure is
// divided by the largest step that is not above it.
type scale struct {
	steps  []step // ascending
	number func(float64) string
}

type step struct {
	from   float64
	suffix string
}

var (
	nanoseconds  = scale{[]step{{1, " ns"}, {1e3, " µs"}, {1e6, " ms"}, {1e9, " s"}}, twoDigits}
	microseconds = scale{[]step{{1, " µs"}, {1e3, " ms"}, {1e6, " s"}}, twoDigits}
	milliseconds = scale{[]step{{1, " ms"}, {1e3, " s"}}, twoDigits}
	seconds      = scale{[]step{{1, " s"}}, twoDigits}
	octets       = scale{[]step{{1, " B"}, {1 << 10, " KiB"}, {1 << 20, " MiB"}}, twoDigits}
	kibioctets   = scale{[]step{{1, " KiB"}, {1 << 10, " MiB"}}, twoDigits}
	mebioctets   = scale{[]step{{1, " MiB"}, {1 << 10, " GiB"}}, twoDigits}
	perSecond    = scale{[]step{{1, "/s"}}, twoDigits}
	count        = scale{[]step{{1, ""}}, exact}
	times        = scale{[]step{{1, ""}}, twoDecimals}
)

// cell is a figure with its interval, where the two differ as written, and with
// its rounds where some are missing.
func (s scale) cell(f Figure) string {
	if f.Rounds == 0 {
		return notMeasured
	}
	at := s.step(f.Mid)
	write := func(x float64) string { return s.number(x / at.from) }
	mid, low, high := write(f.Mid), write(f.Low), write(f.High)
	if low == mid && high == mid {
		return mid + at.suffix + f.few()
	}
	return mid + at.suffix + " (" + low + "–" + high + ")" + f.few()
}

func (f Figure) few() string {
	switch {
	case !f.Few:
		return ""
	case f.Rounds == 1:
		return ", of 1 round"
	}
	return ", of " + strconv.Itoa(f.Rounds) + " rounds"
}

// plain is a number alone.
func (s scale) plain(x float64) string {
	at := s.step(x)
	return s.number(x/at.from) + at.suffix
}

// bound is a limit, with all of its digits.
func (s scale) bound(x float64) string {
	at := s.step(x)
	return strconv.FormatFloat(x/at.from, 'f', -1, 64) + at.suffix
}

func (s scale) step(x float64) step {
	at := s.steps[0]
	for _, step := range s.steps {
		if x >= step.from {
			at = step
		}
	}
	return at
}

// twoDigits are those that count: 0.041, 4.1, 41, 410, 4,100.
func twoDigits(x float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 1, 64), 64)
	if err != nil || rounded == 0 {
		return "0"
	}
	decimals := 1 - int(math.Floor(math.Log10(math.Abs(rounded))))
	return thousands(strconv.FormatFloat(rounded, 'f', max(decimals, 0), 64))
}

// exact is a count; one that was divided by calls has two decimals at most.
func exact(x float64) string {
	return thousands(strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64))
}

func twoDecimals(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// thousands puts a comma before each three digits of the whole part.
func thousands(number string) string {
	whole, rest, _ := strings.Cut(number, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		return whole + "." + rest
	}
	return whole
}
