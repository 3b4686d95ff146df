package simulation

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// chart shows spans of values, a band for each group and in it a line for each
// series. It draws itself as SVG that can be read on light and on dark paper.
type chart struct {
	title, desc string
	axis        string
	// log is a logarithmic axis, with a place for zero left of it.
	log    bool
	ticks  []float64 // the first and the last are the ends of the axis
	label  func(float64) string
	series []string
	groups []group
}

type group struct {
	name  string
	spans []span // by series
}

// span is a line from low to high, with a mark at mid.
type span struct{ low, mid, high float64 }

// Sizes in pixels.
const (
	chartWidth = 760
	plotLeft   = 185
	plotRight  = 730
	plotTop    = 76
	lineHeight = 16
	bandGap    = 14
	zeroWidth  = 40 // left of a logarithmic axis
)

const chartStyle = `<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}
.paper{fill:#ffffff}.band{fill:#f3f4f6}.grid{stroke:#c9ced4;stroke-width:1}
.span{stroke-width:3;stroke-linecap:round}
.s0 .span{stroke:#b3261e}.s0 .mark{fill:#b3261e}
.s1 .span{stroke:#9a6700}.s1 .mark{fill:#9a6700}
.s2 .span{stroke:#6e40c9}.s2 .mark{fill:#6e40c9}
.s3 .span{stroke:#0b62c4}.s3 .mark{fill:#0b62c4}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.paper{fill:#0d1117}.band{fill:#161b22}.grid{stroke:#3d444d}
.s0 .span{stroke:#ff7b72}.s0 .mark{fill:#ff7b72}
.s1 .span{stroke:#e3b341}.s1 .mark{fill:#e3b341}
.s2 .span{stroke:#d2a8ff}.s2 .mark{fill:#d2a8ff}
.s3 .span{stroke:#79c0ff}.s3 .mark{fill:#79c0ff}
}
</style>
`

func (c chart) svg() string {
	var b strings.Builder
	height := c.bottom() + 52
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="title desc">`+"\n", chartWidth, height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", html.EscapeString(c.title), html.EscapeString(c.desc))
	b.WriteString(chartStyle)
	fmt.Fprintf(&b, `<rect class="paper" width="%d" height="%d"/>`+"\n", chartWidth, height)
	fmt.Fprintf(&b, `<text class="title" x="20" y="26">%s</text>`+"\n", html.EscapeString(c.title))
	c.drawLegend(&b)
	c.drawBands(&b)
	c.drawAxis(&b)
	for i, g := range c.groups {
		for j, s := range g.spans {
			c.drawSpan(&b, s, j, c.bandTop(i)+lineHeight*j+lineHeight/2)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c chart) bandTop(i int) int { return plotTop + i*(lineHeight*len(c.series)+bandGap) }

func (c chart) bottom() int { return c.bandTop(len(c.groups)) }

func (c chart) drawLegend(b *strings.Builder) {
	x := 20
	for i, name := range c.series {
		fmt.Fprintf(b, `<g class="s%d">%s</g><text x="%d" y="54">%s</text>`+"\n", i, mark(i, float64(x+6), 50), x+18, html.EscapeString(name))
		x += 42 + 7*len(name)
	}
}

func (c chart) drawBands(b *strings.Builder) {
	height := lineHeight * len(c.series)
	for i, g := range c.groups {
		top := c.bandTop(i)
		fmt.Fprintf(b, `<rect class="band" x="%d" y="%d" width="%d" height="%d"/>`, plotLeft-10, top, plotRight-plotLeft+20, height)
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotLeft-18, top+height/2+4, html.EscapeString(g.name))
	}
}

func (c chart) drawAxis(b *strings.Builder) {
	ticks := c.ticks
	if c.log {
		ticks = append([]float64{0}, ticks...)
	}
	for _, tick := range ticks {
		x := c.x(tick)
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x, x, plotTop-6, c.bottom())
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x, c.bottom()+18, html.EscapeString(c.label(tick)))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (plotLeft+plotRight)/2, c.bottom()+42, html.EscapeString(c.axis))
}

// x is where a value lies; what is beyond the axis lies at its end.
func (c chart) x(value float64) float64 {
	first, last := c.ticks[0], c.ticks[len(c.ticks)-1]
	value = min(value, last)
	if !c.log {
		return plotLeft + (max(value, first)-first)/(last-first)*(plotRight-plotLeft)
	}
	if value <= 0 {
		return plotLeft
	}
	part := (math.Log(max(value, first)) - math.Log(first)) / (math.Log(last) - math.Log(first))
	return plotLeft + zeroWidth + part*(plotRight-plotLeft-zeroWidth)
}

func (c chart) drawSpan(b *strings.Builder, s span, series, y int) {
	fmt.Fprintf(b, `<g class="s%d"><line class="span" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>%s</g>`+"\n",
		series, c.x(s.low), c.x(s.high), y, y, mark(series, c.x(s.mid), y))
}

// mark differs in shape as well as in colour.
func mark(series int, x float64, y int) string {
	switch series % 4 {
	case 0:
		return fmt.Sprintf(`<circle class="mark" cx="%.1f" cy="%d" r="5"/>`, x, y)
	case 1:
		return fmt.Sprintf(`<rect class="mark" x="%.1f" y="%d" width="9" height="9"/>`, x-4.5, y-4)
	case 2:
		return fmt.Sprintf(`<path class="mark" d="M%.1f %dl6 11h-12z"/>`, x, y-6)
	}
	return fmt.Sprintf(`<path class="mark" d="M%.1f %dl6 6l-6 6l-6-6z"/>`, x, y-6)
}
