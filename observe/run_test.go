package observe_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/stranger"
	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

var strangers = flag.Int("observe.strangers", 40, "how many services with random decisions to observe")

// agrees reports what a finding says that the service did not decide; "" where
// it is right.
func agrees(t *testing.T, s *stranger.Service, id string, found observe.Finding) bool {
	decided := s.Decides[id]
	if n, isNumber := decided.(int); isNumber && found.Answer == nil {
		return found.AtLeast <= n && (found.AtMost == 0 || n <= found.AtMost)
	}
	return observe.SameJSON(jsonOf(t, decided), found.Answer)
}

// TestStrangers: whatever a service decides, each answer of Run is right, within
// the default budget and wait.
func TestStrangers(t *testing.T) {
	var wrong []string
	answers, unanswered := 0, map[string]int{}
	for seed := range uint64(*strangers) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 8))
			time.Sleep(time.Duration(random.IntN(100_000)) * time.Millisecond) // the clock's minute starts anywhere
			service := stranger.New(seed, "sk-one", "sk-two")
			target := observe.Target{BaseURL: "http://stranger.example", Key: "sk-one", HTTPClient: &http.Client{Transport: service.After(random, 40*time.Millisecond)}}
			budget := observe.DefaultBudget()
			if seed%2 == 1 {
				target.SecondKey = "sk-two"
			}
			if seed%4 > 1 {
				budget.BYOKSets = 3
			}
			most := new(observe.Observation).Preview(target, budget)
			o, err := observe.Run(t.Context(), target, budget)
			require.NoError(t, err)
			assert.Empty(t, o.Spent.Over(most), "seed %d spends beyond what Preview says", seed)
			for id, found := range o.Decisions {
				if strings.Contains(found.NotAsked, "of waiting") && !strings.Contains(found.NotAsked, " 23h") {
					wrong = append(wrong, fmt.Sprintf("seed %d: %s: %s", seed, id, found.NotAsked))
				}
				if !found.Known() {
					unanswered[id+": "+found.NotAsked]++
					continue
				}
				assert.NotEmpty(t, found.Evidence.Request+found.Evidence.Answer, "evidence of %s", id)
				answers++
				if !agrees(t, service, id, found) {
					wrong = append(wrong, fmt.Sprintf("seed %d: %s is %s, found %s, seen in %v", seed, id, jsonOf(t, service.Decides[id]), found, found.Evidence))
				}
			}
		})
	}
	assert.Empty(t, wrong)
	assert.Greater(t, answers, *strangers*25, "answers; not answered: %v", unanswered)
}
