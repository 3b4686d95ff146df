package contract_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
)

// TestEachAnswerIsHeld: each case notices a service that refuses what it
// should accept, or accepts what it should refuse, in any one of its calls. Of
// a case that fills a limit that is the last one.
func TestEachAnswerIsHeld(t *testing.T) {
	for _, c := range contract.AllCases() {
		if c.Spends.Requests > 200 {
			continue
		}
		lied := func(which int) (failed bool, calls int) {
			failed, _ = tampered(t, c, true, func(r *reply) {
				if calls++; calls == which && r.status == 200 {
					r.refuse(405, "method_not_allowed")
				} else if calls == which {
					r.status, r.body = 200, map[string]any{"trace_id": "t"}
				}
			})
			return failed, calls
		}
		_, calls := lied(0)
		for which := calls; which > 0 && which > calls-8; which-- {
			failed, _ := lied(which)
			assert.True(t, failed, "%s passes though answer %d is a lie", c.ID, which)
		}
	}
}

// TestEachMemberIsHeld: each success body is refused where a member is missing
// or of another type.
func TestEachMemberIsHeld(t *testing.T) {
	optional := []string{"base_url", "model"}
	for _, c := range contract.Successes() {
		var members []string
		failed, log := tampered(t, c, false, func(r *reply) { members = leaves(r.body) })
		assert.False(t, failed, log)
		for _, name := range members {
			failed, _ := tampered(t, c, false, member(name, func(in map[string]any, name string) { in[name] = []any{} }))
			assert.True(t, failed, "%s passes with an array for %s", c.ID, name)
			failed, _ = tampered(t, c, false, member(name, func(in map[string]any, name string) { delete(in, name) }))
			assert.Equal(t, !slices.Contains(optional, name), failed, "%s without %s", c.ID, name)
		}
	}
}

// leaves are the names of the members, those inside an object too.
func leaves(body map[string]any) []string {
	names := slices.Sorted(maps.Keys(body))
	for _, v := range body {
		if inner, ok := v.(map[string]any); ok {
			names = append(names, leaves(inner)...)
		}
	}
	return names
}

// TestTampering: what breaks a rule fails a case that is no decision of this
// project, what breaks a decision fails none of those but another one, and what
// breaks nothing fails none of those. Cases that take more than a minute's calls are
// left out.
func TestTampering(t *testing.T) {
	if failure := firstFailure(t, true, func(*reply) {}); failure != "" {
		t.Skip("a case fails on the fake itself; TestFake shows it")
	}
	for _, tt := range tamperings {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			failure := firstFailure(t, false, tt.tamper)
			assert.Equal(t, tt.breaks == aRule, failure != "", failure)
			if tt.breaks == aDecision {
				assert.NotEmpty(t, firstFailure(t, true, tt.tamper), "no case notices")
			}
		})
	}
}
