package agentmessaging_test

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDocsDiagrams holds the pictures in docs/diagrams to their sources, the
// text files beside them. To draw them again:
//
//	go test -run TestDocsDiagrams . -update
//
// A source has a line for each element, from top to bottom: "box TITLE |
// DETAIL" in the main column, "exit CONDITION | RESULT" at the right of the
// box before it, "frame TITLE" around the boxes up to "end", or up to "again
// TITLE" with an arrow back to the first of them.
func TestDocsDiagrams(t *testing.T) {
	sources, err := filepath.Glob("docs/diagrams/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	for _, source := range sources {
		picture := strings.TrimSuffix(source, ".txt") + ".svg"
		want := draw(t, source)
		if *update {
			require.NoError(t, os.WriteFile(picture, []byte(want), 0o644))
			continue
		}
		assert.Equal(t, want, read(t, picture), "%s is not what its source says: go test -run TestDocsDiagrams . -update", picture)
	}
}

// Measures of a diagram, in pixels. Text is not measured; its length
// is bounded instead.
const (
	width     = 760
	boxLeft   = 96
	boxWidth  = 288
	boxHeight = 48
	exitLeft  = 456
	exitWidth = 280
	gap       = 26
	maxTitle  = 36 // characters that fit a box
	maxDetail = 44
	maxFrame  = 28 // left of the arrow into its first box
)

// diagram draws from top to bottom.
type diagram struct {
	strings.Builder
	y, bottom  int // the top of the next box, the bottom of the last
	first      int // the middle of the first box of the frame; 0: none yet
	frameTop   int // 0: no frame is open
	frameTitle string
	exits      int // of the last box
	boxMiddle  int
}

func draw(t *testing.T, source string) string {
	t.Helper()
	d := &diagram{y: 56}
	var title, about string
	for line := range strings.Lines(read(t, source)) {
		kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		head, detail, _ := strings.Cut(text, " | ")
		switch kind {
		case "":
		case "title":
			title = text
		case "about":
			about = text
		case "box":
			assert.LessOrEqual(t, len(head), maxTitle, head)
			assert.LessOrEqual(t, len(detail), maxDetail, detail)
			d.box(head, detail)
		case "exit":
			assert.LessOrEqual(t, len(head), maxDetail, head)
			assert.LessOrEqual(t, len(detail), maxTitle, detail)
			d.exit(head, detail)
		case "frame":
			assert.LessOrEqual(t, len(text), maxFrame, text)
			d.frame(text)
		case "end", "again":
			d.end(text)
		default:
			t.Errorf("%s: what is %q?", source, kind)
		}
	}
	return fmt.Sprintf(page0, width, d.bottom+24, html.EscapeString(title), html.EscapeString(about)) +
		d.String() + "</svg>\n"
}

// page0 begins a picture; it is readable on light and on dark paper.
const page0 = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title desc">
<title id="title">%[3]s</title>
<desc id="desc">%[4]s</desc>
<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.strong{font-weight:600}.quiet{fill:#57606a;font-size:12px}
.paper{fill:#ffffff}.box{fill:#f3f4f6;stroke:#57606a}.exit{fill:#eaf2fc;stroke:#0b62c4}
.frame{fill:none;stroke:#6e40c9;stroke-dasharray:5 4}.label{fill:#6e40c9;font-size:12px}
.line{fill:none;stroke:#57606a;stroke-width:1.5}.tip{fill:#57606a}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.quiet{fill:#9da7b3}
.paper{fill:#0d1117}.box{fill:#161b22;stroke:#8b949e}.exit{fill:#0c2d50;stroke:#79c0ff}
.frame{stroke:#d2a8ff}.label{fill:#d2a8ff}.line{stroke:#9da7b3}.tip{fill:#9da7b3}
}
</style>
<rect class="paper" width="%[1]d" height="%[2]d"/>
<text class="title" x="24" y="30">%[3]s</text>
`

func (d *diagram) printf(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

// box puts a box under the last, with an arrow between them.
func (d *diagram) box(title, detail string) {
	if d.bottom > 0 {
		d.printf(`<path class="line" d="M%d %dV%d"/>`, boxLeft+boxWidth/2, d.boxMiddle+boxHeight/2, d.y-7)
		d.printf(`<path class="tip" d="M%d %dl-4 -8h8z"/>`, boxLeft+boxWidth/2, d.y)
	}
	d.card("box", boxLeft, d.y, boxWidth, title, detail, "strong", "quiet")
	d.boxMiddle, d.exits, d.bottom = d.y+boxHeight/2, 0, d.y+boxHeight
	if d.frameTop > 0 && d.first == 0 {
		d.first = d.boxMiddle
	}
	d.y = d.bottom + gap
}

func (d *diagram) card(class string, x, y, width int, upper, lower, upperClass, lowerClass string) {
	d.printf(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`, class, x, y, width, boxHeight)
	d.printf(`<text class="%s" x="%d" y="%d">%s</text>`, upperClass, x+12, y+20, html.EscapeString(upper))
	d.printf(`<text class="%s" x="%d" y="%d">%s</text>`, lowerClass, x+12, y+38, html.EscapeString(lower))
}

// exit puts a box at the right of the last; several stand one under another.
func (d *diagram) exit(condition, result string) {
	middle := d.boxMiddle + d.exits*(boxHeight+8)
	from := boxLeft + boxWidth
	if d.exits > 0 {
		from = (boxLeft + boxWidth + exitLeft) / 2
		d.printf(`<path class="line" d="M%d %dV%d"/>`, from, middle-boxHeight-8, middle)
	}
	d.printf(`<path class="line" d="M%d %dH%d"/>`, from, middle, exitLeft-7)
	d.printf(`<path class="tip" d="M%d %dl-8 -4v8z"/>`, exitLeft, middle)
	d.card("exit", exitLeft, middle-boxHeight/2, exitWidth, condition, result, "quiet", "strong")
	d.exits++
	d.bottom = max(d.bottom, middle+boxHeight/2)
	d.y = d.bottom + gap
}

func (d *diagram) frame(title string) {
	d.frameTop, d.frameTitle, d.first = d.y-6, title, 0
	d.y += 26
}

// end closes the frame; with a title, its last box leads back to its first.
func (d *diagram) end(title string) {
	left, right := boxLeft-72, boxLeft+boxWidth+20
	d.printf(`<rect class="frame" x="%d" y="%d" width="%d" height="%d" rx="8"/>`, left, d.frameTop, right-left, d.bottom+12-d.frameTop)
	d.printf(`<text class="label" x="%d" y="%d">%s</text>`, left+10, d.frameTop+18, html.EscapeString(d.frameTitle))
	if title != "" {
		back := boxLeft - 28
		d.printf(`<path class="line" d="M%d %dH%dV%dH%d"/>`, boxLeft, d.boxMiddle, back, d.first, boxLeft-7)
		d.printf(`<path class="tip" d="M%d %dl-8 -4v8z"/>`, boxLeft, d.first)
		middle := (d.first + d.boxMiddle) / 2
		d.printf(`<text class="label" text-anchor="middle" transform="translate(%d %d) rotate(-90)">%s</text>`, back-8, middle, html.EscapeString(title))
	}
	d.frameTop = 0
	d.bottom += 12
	d.y = d.bottom + gap
}
