package simulation

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

const (
	picture     = "../../docs/pictures/limit.svg"
	pictureHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 352" font-family="sans-serif" font-size="12">
<style>
.paper { fill: #fff } text { fill: #333 } .grid { stroke: #ddd } .wait { stroke: #bbb; stroke-width: 5 } .ok { fill: #1a7f37 } .no { stroke: #cf222e; stroke-width: 2.5 }
@media (prefers-color-scheme: dark) {
.paper { fill: #161b22 } text { fill: #ddd } .grid { stroke: #30363d } .wait { stroke: #545d68 } .ok { fill: #57ab5a } .no { stroke: #ff7b72 } }
</style>
<rect class="paper" width="800" height="352"/>
<text x="8" y="18">20 callers, one program, 60 calls a minute</text>
<text x="8" y="52">caller 1</text><text x="8" y="318">caller 20</text>
<line class="wait" x1="330" y1="14" x2="350" y2="14"/><text x="356" y="18">waits in line</text>
<circle class="ok" cx="470" cy="14" r="3"/><text x="480" y="18">accepted</text>
<path class="no" d="M566 10l8 8m0-8l-8 8"/><text x="582" y="18">refused with 429</text>
`
	rowHeight, perSecond, left, top = 14, 2.9, 76, 48
)

type callerKey struct{}

// TestPicture plays 20 callers without a Pacer for four minutes. -update-docs draws each of
// them as a row: its waits, and when the service accepted or refused it.
func TestPicture(t *testing.T) {
	var lines, marks []string // marks are drawn over the lines
	play := unpaced(1)(loadsim.FromUse)
	play.Replies, play.Span = 2*time.Second, 4*time.Minute
	for i := range 20 {
		play.Loads = append(play.Loads, loadsim.Load{Workers: []int{1}, Call: func(ctx context.Context, c *agentmessaging.Client) error {
			return loadsim.SendMessage(context.WithValue(ctx, callerKey{}, i), c)
		}})
	}
	synctest.Test(t, func(t *testing.T) {
		var began time.Time
		draw := func(ctx context.Context, event agentmessaging.Event) context.Context {
			if began.IsZero() {
				began = time.Now()
			}
			x, y := left+perSecond*time.Since(began).Seconds(), top+rowHeight*ctx.Value(callerKey{}).(int)
			switch e := event.(type) {
			case agentmessaging.LimiterWait:
				lines = append(lines, fmt.Sprintf(`<line class="wait" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x-perSecond*e.Wait.Seconds(), y, x, y))
			case agentmessaging.AttemptEnd:
				mark := fmt.Sprintf(`<circle class="ok" cx="%.1f" cy="%d" r="3"/>`, x, y)
				if e.StatusCode != 200 {
					mark = fmt.Sprintf(`<path class="no" d="M%.1f %dl8 8m0-8l-8 8"/>`, x-4, y-4)
				}
				marks = append(marks, mark)
			}
			return ctx
		}
		play.Client = []agentmessaging.Option{agentmessaging.WithObserver(agentmessaging.ObserverFunc(draw))}
		m := loadsim.Run(play).Measure(0, 0)
		assert.Zero(t, m.Lost)
		assert.InDelta(t, 240, m.Accepted, 2)
	})
	for minute := range 5 {
		x := left + perSecond*60*float64(minute)
		lines = append(lines, fmt.Sprintf(`<line class="grid" x1="%g" y1="34" x2="%g" y2="326"/><text x="%g" y="344">%d min</text>`, x, x, x-14, minute))
	}
	if *updateDocs {
		require.NoError(t, os.WriteFile(picture, []byte(pictureHead+strings.Join(append(lines, marks...), "\n")+"\n</svg>\n"), 0o644))
	}
}
