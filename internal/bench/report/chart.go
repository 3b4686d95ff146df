package report

import (
	"fmt"
	"html"
	"strings"
)

// chart is horizontal bars in groups, with scales from zero. It
// draws itself as SVG, by hand: the libraries for Go (gonum/plot, go-chart)
// write colours into each element and letters as a fixed font, so that a
// picture is for light paper only, and none writes a title and a description
// for those who do not see it.
type chart struct {
	title, desc string
	key         string // how to read a bar, under the title; may be empty
	groups      []group
}

type group struct {
	title string
	scale scale
	unit  string  // after the scale's own: " ×"
	line  float64 // across the bars, as where the floor is; 0 is none
	end   float64 // of the scale; 0 is the most of the group
	bars  []bar
}

// bar goes to the median, with a whisker over the interval.
type bar struct {
	name   string
	figure Figure
	class  string // own, floor or empty
}

// Sizes in pixels.
const (
	chartWidth = 780
	barsLeft   = 250
	barsRight  = 600 // what is right of it is for the numbers
	chartTop   = 44
	keyHeight  = 20
	headHeight = 34
	barHeight  = 14
	barPitch   = 22
)

const chartStyle = `<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.key{font-size:12px}.head{font-weight:600}.missing{fill:#59636e}
.paper{fill:#ffffff}.bar{fill:#8c959f}.floor{fill:#c9ced4}.own{fill:#0b62c4}
.whisker{stroke:#1f2328;stroke-width:1.5}.line{stroke:#59636e;stroke-dasharray:3 3}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.missing{fill:#9198a1}
.paper{fill:#0d1117}.bar{fill:#6e7681}.floor{fill:#3d444d}.own{fill:#79c0ff}
.whisker{stroke:#e6edf3}.line{stroke:#9198a1}
}
</style>
`

func (c chart) svg() string {
	var b strings.Builder
	height := c.height()
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="title desc">`+"\n", chartWidth, height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", html.EscapeString(c.title), html.EscapeString(strings.TrimSpace(c.desc+" "+c.key)))
	b.WriteString(chartStyle)
	fmt.Fprintf(&b, `<rect class="paper" width="%d" height="%d"/>`+"\n", chartWidth, height)
	fmt.Fprintf(&b, `<text class="title" x="20" y="28">%s</text>`+"\n", html.EscapeString(c.title))
	if c.key != "" {
		fmt.Fprintf(&b, `<text class="key" x="20" y="%d">%s</text>`+"\n", chartTop+4, html.EscapeString(c.key))
	}
	top := c.top()
	for _, g := range c.groups {
		g.draw(&b, top)
		top += g.height()
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// top is where the groups begin.
func (c chart) top() int {
	if c.key == "" {
		return chartTop
	}
	return chartTop + keyHeight
}

func (c chart) height() int {
	height := c.top() + 16
	for _, g := range c.groups {
		height += g.height()
	}
	return height
}

func (g group) height() int { return headHeight + barPitch*len(g.bars) }

func (g group) draw(b *strings.Builder, top int) {
	fmt.Fprintf(b, `<text class="head" x="20" y="%d">%s</text>`+"\n", top+22, html.EscapeString(g.title))
	top += headHeight
	for i, bar := range g.bars {
		g.drawBar(b, bar, top+barPitch*i)
	}
	if g.line > 0 {
		fmt.Fprintf(b, `<line class="line" x1="%.1f" x2="%.1[1]f" y1="%d" y2="%d"/>`+"\n", g.x(g.line), top-2, top+barPitch*len(g.bars)-4)
	}
}

func (g group) drawBar(b *strings.Builder, bar bar, y int) {
	const baseline = barHeight - 2
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, barsLeft-10, y+baseline, html.EscapeString(bar.name))
	f := bar.figure
	if f.Rounds == 0 {
		fmt.Fprintf(b, `<text class="missing" x="%d" y="%d">%s</text>`+"\n", barsLeft+4, y+baseline, notMeasured)
		return
	}
	class := strings.TrimSpace("bar " + bar.class)
	fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>`, class, barsLeft, y, g.x(f.Mid)-barsLeft, barHeight)
	if f.High > f.Low {
		fmt.Fprintf(b, `<line class="whisker" x1="%.1f" x2="%.1f" y1="%d" y2="%[3]d"/>`, g.x(f.Low), g.x(f.High), y+barHeight/2)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`+"\n", g.x(max(f.High, f.Mid))+8, y+baseline, html.EscapeString(g.scale.plain(f.Mid)+g.unit+f.few()))
}

// x is where a value lies.
func (g group) x(value float64) float64 {
	end := g.end
	if end == 0 {
		end = g.most()
	}
	if end == 0 {
		return barsLeft
	}
	return barsLeft + value/end*(barsRight-barsLeft)
}

func (g group) most() float64 {
	most := g.line
	for _, bar := range g.bars {
		most = max(most, bar.figure.High)
	}
	return most
}
