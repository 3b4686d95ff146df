package pacing

import (
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// BenchmarkAsk is one ask that is granted, with a full log of a day.
func BenchmarkAsk(b *testing.B) {
	limits := []quota.Limit{{Key: "minute", Max: 600, Window: time.Minute}, {Key: "day", Max: 50_000, Window: 24 * time.Hour}}
	state, now := New(limits, Tuning{}), second
	b.ReportAllocs()
	for id := uint64(1); b.Loop(); id++ {
		answer := state.Do(now, quota.Step{Kind: quota.Ask, Limits: limits, Spends: 3, ID: id})
		now += answer.Wait.Microseconds() + second/10
	}
}
