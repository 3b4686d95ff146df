package contract_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/stranger"
	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

// TestEachAnswerIsHeld: each case notices a service that refuses what it
// should accept, or accepts what it should refuse, in any one of its last three calls. Of
// a case that fills a limit that is the last one.
func TestEachAnswerIsHeld(t *testing.T) {
	for _, c := range contract.AllCases() {
		if c.Spends.Requests > 70 || strings.HasSuffix(c.ID, "1-MiB") {
			continue
		}
		for which := c.Spends.Requests; which > max(0, c.Spends.Requests-3); which-- {
			calls := 0
			failed, _ := tampered(t, c, true, func(r *reply) {
				if calls++; calls == which && r.status == 200 {
					r.refuse(405, "method_not_allowed")
				} else if calls == which {
					r.status, r.body = 200, map[string]any{"trace_id": "t"}
				}
			})
			assert.True(t, failed, "%s passes though answer %d is a lie", c.ID, which)
		}
	}
}

// TestTampering: what breaks a rule fails its case, which is no decision of this
// project; what breaks a decision fails none but such a case; and what breaks nothing
// fails none of the interface. What breaks no rule is tried at once, from either end: the
// last change of a member is the one that shows.
func TestTampering(t *testing.T) {
	cases := map[string]contract.Case{}
	for _, c := range contract.AllCases() {
		cases[c.ID] = c
	}
	var open, decisions []tampering
	for _, tt := range tamperings {
		if tt.fails == "" {
			open = append(open, tt)
		} else if tt.decision() {
			decisions = append(decisions, tt)
		}
	}
	for _, tt := range slices.Concat(wrongServices(), decisions) {
		failed, _ := tampered(t, cases[tt.fails], tt.decision(), tt.tamper)
		assert.True(t, failed, "%s passes with %s", tt.fails, tt.name)
	}
	backwards := slices.Clone(decisions)
	slices.Reverse(backwards)
	for _, together := range [][]tampering{open, decisions, backwards} {
		assert.Empty(t, firstFailure(t, func(r *reply) {
			for _, tt := range together {
				tt.tamper(r)
			}
		}), "a case refuses what breaks no rule")
	}
}

var strangers = flag.Int("contract.strangers", 2, "how many services with random decisions to hold to the contract")

var all = flag.Bool("contract.all", false, "try a live day on every wrong service, not on each 27th, and fill the day of the plan byok")

// aDay is the budget of a live run for one day.
var aDay = contract.Spend{Requests: 1000, Creations: 50, BYOKSets: 5, WarmUps: 3, Wait: 2 * time.Hour}

// TestLiveDay: with the requests of one day and two keys alone most wrong
// services are found out, and a right one passes.
func TestLiveDay(t *testing.T) {
	var missed []string
	ran := 0
	for i, tt := range append([]tampering{{"right", "", func(*reply) {}}}, wrongServices()...) {
		if i%27 != 0 && !*all {
			continue
		}
		ran++
		synctest.Test(t, func(t *testing.T) {
			fake := newFake(t, fakeserver.WithUnknownRoutes())
			target := contract.Target{BaseURL: fake.BaseURL(), Key: fake.Key(), SecondKey: fake.IssueKeyOn("preview", true), Budget: aDay, Observed: &observe.Observation{
				Decisions: map[string]observe.Finding{"windows": {Answer: json.RawMessage(`"fixed"`)}}, Limits: map[string]int{"key_minute": 60}},
				HTTPClient: &http.Client{Transport: proxy{fake, "192.0.2.1", tt.tamper}}}
			failure, cases := contract.FirstLiveFailure(t, target)
			switch {
			case tt.fails == "":
				assert.Empty(t, failure, tt.name)
				assert.Greater(t, cases, 250, "cases that run")
			case failure == "":
				missed = append(missed, tt.name)
			}
		})
	}
	t.Logf("%d of %d wrong services are found out", ran-1-len(missed), ran-1)
	assert.LessOrEqual(t, len(missed)*5, ran, "missed: %q", missed)
}

// TestStrangers: a service of the interface document is not accused of anything,
// whatever it decides and however its limits count.
func TestStrangers(t *testing.T) {
	var accused []string
	for seed := range uint64(*strangers) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 11))
			service := stranger.New(seed, "sk-one", "sk-two")
			service.Decides["retry_after"], service.Decides["length_unit"] = true, "code points" // the interface does not leave all of it open
			client := &http.Client{Transport: service.After(random, 40*time.Millisecond)}
			o, err := observe.Run(t.Context(), observe.Target{BaseURL: "http://stranger.example", Key: "sk-one", HTTPClient: client}, observe.Spend{})
			require.NoError(t, err)
			time.Sleep(24 * time.Hour)
			failure, cases := contract.FirstLiveFailure(t, contract.Target{
				BaseURL: "http://stranger.example", Key: "sk-one", SecondKey: "sk-two", HTTPClient: client, Budget: aDay, Observed: o,
			})
			if failure != "" {
				accused = append(accused, fmt.Sprintf("seed %d: %s", seed, failure))
			} else {
				assert.Greater(t, cases, 150, "cases that run")
			}
		})
	}
	assert.Empty(t, strings.Join(accused, "\n"))
}

// TestBrokenAnswers: two answers that the fake can give to open questions break a
// rule of the interface.
func TestBrokenAnswers(t *testing.T) {
	for id, answer := range map[string]any{"retry_after": false, "length_unit": "bytes"} {
		assert.NotEmpty(t, firstFailure(t, func(*reply) {}, fakeserver.WithDecision(id, answer)), id)
	}
}
