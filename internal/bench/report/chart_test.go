package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// drawing is what a picture has in it.
type drawing struct {
	texts   []string
	bars    []float64 // widths
	missing int
}

func newDrawing(t *testing.T, svg string) (d drawing) {
	t.Helper()
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := decoder.Token()
		if err == io.EOF {
			return d
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			d.element(t, token)
		case xml.CharData:
			d.texts = append(d.texts, string(token))
		}
	}
}

func (d *drawing) element(t *testing.T, e xml.StartElement) {
	attrs := map[string]string{}
	for _, a := range e.Attr {
		attrs[a.Name.Local] = a.Value
		assert.NotContains(t, a.Value, "NaN")
	}
	switch {
	case strings.HasPrefix(attrs["class"], "bar"):
		width, err := strconv.ParseFloat(attrs["width"], 64)
		require.NoError(t, err)
		d.bars = append(d.bars, width)
	case attrs["class"] == "missing":
		d.missing++
	}
}

func TestCharts(t *testing.T) {
	t.Parallel()
	charts := fixture(t).Charts()
	for name, want := range map[string]struct {
		subjects              []string
		groups, bars, missing int
	}{
		"performance.svg":        {[]string{"go-retryablehttp", "go-retryablehttp, deadline", "agentmessaging", "agentmessaging, caller's deadline", "openai-go", "stripe-go", "vault/api"}, 4, 22, 26},
		"performance-fake.svg":   {[]string{"net/http by hand", "agentmessaging-fake", "stripe-mock", "prism", "fake-gcs-server"}, 4, 16, 4},
		"performance-weight.svg": {[]string{"go-retryablehttp", "agentmessaging", "stripe-go", "vault/api"}, 3, 12, 18},
	} {
		d := newDrawing(t, charts[name])
		assert.Len(t, d.bars, want.bars, name)
		assert.Equal(t, want.missing, d.missing, name)
		for _, subject := range want.subjects {
			found := 0
			for _, text := range d.texts {
				if text == subject {
					found++
				}
			}
			assert.Equal(t, want.groups, found, "%s: %s", name, subject)
		}
		for _, part := range []string{"<title", "<desc", "prefers-color-scheme:dark", `role="img"`} {
			assert.Contains(t, charts[name], part)
		}
	}
	assert.Len(t, charts, 3)
}

// A bar is as long as its value, from zero to the most of its group.
func TestBarLengths(t *testing.T) {
	t.Parallel()
	g := group{title: "a < b", scale: times, line: 1, bars: []bar{
		{name: "x", figure: figureOf(2, 1, 4, 3)},
		{name: "y", figure: figureOf(1, 1, 1, 3), class: "own"},
		{name: "z"},
	}}
	svg := chart{title: "T & U", groups: []group{g, {scale: count, bars: []bar{{name: "none", figure: figureOf(0, 0, 0, 1)}}}}}.svg()
	d := newDrawing(t, svg)
	assert.Equal(t, []float64{175, 87.5, 0}, d.bars)
	assert.Equal(t, 1, d.missing)
	assert.Contains(t, svg, fmt.Sprintf(`<line class="whisker" x1="%.1f" x2="%.1f"`, 250+87.5, 600.0))
	assert.Contains(t, svg, `<line class="line" x1="337.5" x2="337.5"`)
	assert.Contains(t, d.texts, "2.00")
	assert.Contains(t, svg, "T &amp; U")
}

// How to read a bar stands where everybody sees it, and groups that say which
// way is better say it in words.
func TestKeys(t *testing.T) {
	t.Parallel()
	charts := fixture(t).Charts()
	for _, name := range []string{"performance.svg", "performance-fake.svg"} {
		assert.Contains(t, charts[name], `<text class="key" x="20" y="48">Bar: median. Thin line`, name)
	}
	assert.NotContains(t, charts["performance-weight.svg"], `class="key"`) // one round has no interval
	fake := newDrawing(t, charts["performance-fake.svg"]).texts
	for _, title := range []string{
		"Start (less is better)", "Calls a second, of 64 connections (more is better)",
		"Processor time of a call (less is better)", "Memory after the calls (less is better)",
	} {
		assert.Contains(t, fake, title)
	}
}

func TestOneScale(t *testing.T) {
	t.Parallel()
	groups := oneScale(
		group{scale: times, bars: []bar{{figure: figureOf(2, 2, 2, 1)}}},
		group{scale: times, bars: []bar{{figure: figureOf(3, 3, 4, 1)}}},
	)
	assert.Equal(t, []float64{175, 262.5}, newDrawing(t, chart{groups: groups}.svg()).bars)
	for _, g := range fixture(t).clientChart().groups {
		assert.InDelta(t, 5, g.end, 1e-9) // stripe-go's time and allocations
	}
}
