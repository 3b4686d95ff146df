package simulation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

type crowd = loadsim.Crowd

// crowdRow is a row of the table of programs that use the client as it comes.
type crowdRow struct {
	name    string
	models  []model
	crowds  []crowd
	seeds   int
	lost    float64       // of all calls, at most
	refused float64       // 429s a call, at most; 0: not bounded
	longest time.Duration // wait of the last group's calls, at most; 0: not bounded
	took    float64       // minutes for 500 calls, in the mean, at most; 0: not bounded
	most    int           // requests in a run, at most; 0: not bounded
}

// batches are 500 messages of each program, by 20, one and 500 callers.
func batches(c crowd) (all []crowd) {
	for _, callers := range []int{20, 1, 500} {
		for _, latency := range []time.Duration{0, 40 * time.Millisecond} {
			c.Latency, c.Groups = latency, []loadsim.Group{{Callers: callers, Calls: 500 / callers, Call: loadsim.SendMessage}}
			all = append(all, c)
		}
	}
	return all
}

var (
	// windows have room for the messages of innocent, which come every 6 s.
	windows  = []model{loadsim.Fixed, loadsim.FromUse, loadsim.Log, loadsim.Counter}
	many     = crowd{Programs: 16, Latency: 40 * time.Millisecond, Span: 20 * time.Minute, Groups: []loadsim.Group{{Callers: 8, Call: loadsim.SendMessage}}}
	innocent = crowd{
		Limits:  []pacer.Limit{{Max: 60, Window: time.Minute}, {Max: 10, Window: time.Minute, Counts: pacer.CountsAgentCreations}},
		Latency: 40 * time.Millisecond, Groups: []loadsim.Group{
			{Callers: 70, Calls: 1, Call: loadsim.SendMessage}, // refused under the same name at first
			{Callers: 96, Calls: 1, Begin: 4 * time.Minute, Call: loadsim.CreateAgent},
			{Callers: 1, Calls: 80, Begin: 4*time.Minute + 300*time.Millisecond, Every: 6 * time.Second, Call: loadsim.SendMessage},
		},
	}
	shared = crowd{Latency: 40 * time.Millisecond, Groups: []loadsim.Group{
		{Callers: 8, Calls: 31, Call: loadsim.SendMessage}, {Callers: 8, Calls: 31, Call: loadsim.GetAgent},
	}}
)

// refusing is a service that refuses each of so many callers for ever.
func refusing(callers int) []crowd {
	return []crowd{{Latency: 40 * time.Millisecond, Groups: []loadsim.Group{{Callers: callers, Calls: 1, Call: loadsim.SendMessage}}}}
}

// The bounds of 429s and minutes are those of the client before refusals ceased to
// count as failures, which lost up to 16 calls of 1,000 (132 with two programs), and 1.1
// times that with one program, 1.3 times with two.
var crowdRows = []crowdRow{
	{name: "batch of 500, one program", models: loadsim.All, crowds: batches(crowd{}), seeds: 4, refused: 0.45, took: 9.3},
	{name: "the same, replies of 8 s", models: loadsim.All, crowds: batches(crowd{Replies: 8 * time.Second}), seeds: 2, refused: 0.21, took: 36},
	{name: "two programs at once", models: loadsim.All, crowds: batches(crowd{Programs: 2}), seeds: 3, lost: 0.001, refused: 0.9, took: 11.4},
	{name: "16 programs with 8 callers each, 20 minutes", models: loadsim.All, crowds: []crowd{many}, seeds: 3, lost: 0.01},
	{name: "messages beside 96 creations of 10 a minute, all 429s of one name", models: windows, crowds: []crowd{innocent}, seeds: 4, longest: 1200 * time.Millisecond},
	{name: "messages and reads that share a limit", models: loadsim.All, crowds: []crowd{shared}, seeds: 4, refused: 0.27},
	{name: "refused for ever after 1 s, one caller", models: []model{loadsim.Refusing}, crowds: refusing(1), seeds: 8, lost: 1, most: 12},
	{name: "refused for ever after 1 s, 500 callers", models: []model{loadsim.Refusing}, crowds: refusing(500), seeds: 4, lost: 1, most: 560},
}

// measure plays a row, and returns its figures in words: the worst for waits and
// requests, the mean for the others.
func (want crowdRow) measure(t *testing.T) string {
	var lost, made, refused, took, runs float64
	var longest time.Duration
	most := 0
	seeds := want.seeds
	if !*updateDocs {
		seeds = 1
	}
	for _, m := range want.models {
		for _, c := range want.crowds {
			for seed := range seeds {
				c.Model, c.Seed = m, uint64(seed)
				synctest.Test(t, func(*testing.T) {
					calls, gone := 0, 0
					outcomes := c.Play()
					last := outcomes[len(outcomes)-1]
					for _, o := range outcomes {
						calls, gone = calls+o.Done, gone+o.Lost
					}
					lost, made = lost+float64(gone), made+float64(calls+gone)
					refused += float64(last.Refused) / float64(max(1, calls))
					took += last.Last.Minutes() * 500 / float64(max(1, calls))
					longest, most, runs = max(longest, last.Longest), max(most, last.Requests), runs+1
				})
			}
		}
	}
	lost, refused, took = lost/made, refused/runs, took/runs
	var figures []string
	check := func(name, format string, got, most float64) {
		figures = append(figures, fmt.Sprintf("%s "+format+" (at most "+format+")", name, got, most))
		assert.LessOrEqual(t, got, most, name)
	}
	check("lost", "%.2f %%", 100*lost, 100*want.lost)
	if want.refused > 0 {
		check("429s a call", "%.2f", refused, want.refused)
	}
	if want.took > 0 {
		check("minutes for 500 calls", "%.1f", took, want.took)
	}
	if want.longest > 0 {
		check("longest wait", "%.1f s", longest.Seconds(), want.longest.Seconds())
	}
	if want.most > 0 {
		check("requests", "%.0f", float64(most), float64(want.most))
	}
	return fmt.Sprintf("| %s | %s |\n", want.name, strings.Join(figures, "; "))
}
