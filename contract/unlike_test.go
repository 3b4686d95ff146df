package contract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// TestUnlikeServices: services answer five questions otherwise than the fake
// does by default. Observe finds that and nothing else. Without Decisions the
// suite refuses them only where an answer breaks a rule of the interface too.
func TestUnlikeServices(t *testing.T) {
	if failure := firstFailure(t, false, func(*reply) {}); failure != "" {
		t.Skip("a case fails on the fake itself; TestFake shows it")
	}
	for round := range 3 { // no question has more than three other answers
		for five := range slices.Chunk(newFake(t).Decisions(), 5) {
			t.Run(fmt.Sprint(five[0].ID, round), func(t *testing.T) {
				t.Parallel()
				service := map[string]string{}
				for _, d := range five {
					service[d.ID] = others(t, d)[round%len(others(t, d))]
				}
				target, _ := observedFake(t, like(t, service))
				found, err := contract.Observe(t.Context(), target, plenty)
				require.NoError(t, err)
				want := contract.FakeAnswers()
				maps.Copy(want, service)
				if service["unknown_method"] == "404" {
					delete(want, "error_names") // it has no name for 405
				}
				wantAnswers(t, want, found)
				breaks := service["length_unit"] == `"bytes"` || service["retry_after"] == "false"
				failure := firstFailure(t, false, func(*reply) {}, like(t, service))
				assert.Equal(t, breaks, failure != "", failure)
			})
		}
	}
}

// others are other answers to a question than the fake's own.
func others(t *testing.T, d fakeserver.Decision) []string {
	if strings.Contains(d.Possible, " or ") {
		all := strings.Split(strings.ReplaceAll(d.Possible, " or ", ", "), ", ")
		return slices.DeleteFunc(all, func(answer string) bool { return answer == d.Default })
	}
	var own any
	require.NoError(t, json.Unmarshal([]byte(d.Default), &own))
	switch own := own.(type) {
	case float64:
		return []string{"100", "4095", "30001"}
	case map[string]any:
		for name, v := range own {
			if truth, is := v.(bool); is {
				own[name] = !truth
			} else if own[name] = fmt.Sprint(v, "-2"); d.ID == "sms_status" {
				own[name] = "pending"
			}
		}
		return []string{string(jsonOf(t, own))}
	default:
		return []string{`"other_` + d.ID + `"`}
	}
}

// like is the option of a service with those answers.
func like(t *testing.T, answers map[string]string) fakeserver.Option {
	o := contract.Observation{Format: 1, Decisions: map[string]contract.Finding{}}
	for id, answer := range answers {
		o.Decisions[id] = contract.Finding{Answer: json.RawMessage(answer)}
	}
	return fakeserver.Like(jsonOf(t, o))
}

// TestQuestionsOfTheFake: contract asks what the fake decides, with the same
// words and answers, though neither imports the other.
func TestQuestionsOfTheFake(t *testing.T) {
	page, answers := new(contract.Observation).Markdown(), contract.FakeAnswers()
	assert.Len(t, answers, len(newFake(t).Decisions()))
	for _, d := range newFake(t).Decisions() {
		assert.Contains(t, page, fmt.Sprintf("\n- %s (`%s`): not asked yet\n", d.Question, d.ID))
		assert.JSONEq(t, answers[d.ID], d.Default, d.ID)
	}
}
