package redisquota_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// BenchmarkStep is an Ask to a local Redis, over all limits of the preview:
// granted ones, and ones that wait in a queue of so many.
func BenchmarkStep(b *testing.B) {
	minute := func(most int) []quota.Limit {
		return []quota.Limit{
			{Key: "key_minute", Max: most, Window: time.Minute}, {Key: "ip_minute", Max: most, Window: time.Minute},
			{Key: "key_day", Max: 1_000_000_000, Window: 24 * time.Hour}, {Key: "agent_create_key_day", Max: 50, Window: 24 * time.Hour},
			{Key: "agent_create_ip_minute", Max: 10, Window: time.Minute}, {Key: "byok_set_key_hour", Max: 5, Window: time.Hour},
			{Key: "warmup_key_hour", Max: 3, Window: time.Hour},
		}
	}
	for _, bench := range []struct {
		name          string
		most, waiting int
	}{{"granted", 1_000_000_000, 0}, {"waiting1", 1, 1}, {"waiting16", 1, 16}, {"waiting64", 1, 64}} {
		b.Run(bench.name, func(b *testing.B) { benchmarkStep(b, minute(bench.most), bench.waiting) })
	}
}

func benchmarkStep(b *testing.B, limits []quota.Limit, waiting int) {
	server := newServer(b)
	c := server.coordinator(b, canary)
	step := quota.Step{Kind: quota.Ask, Limits: limits, Spends: quota.SetOf(0, 1, 2), ID: 1}
	do(b, c, step)
	var took []time.Duration
	for b.Loop() {
		step.ID++
		if waiting > 0 {
			step.ID = uint64(2 + len(took)%waiting)
		}
		begin := time.Now()
		_, err := c.Do(b.Context(), step)
		took = append(took, time.Since(begin))
		require.NoError(b, err)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkMemory is what an API key costs Redis when its day is full.
func BenchmarkMemory(b *testing.B) {
	for _, day := range []int{1_000, 10_000, 50_000} {
		b.Run(fmt.Sprint(day), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(memory(b, day), "bytes")
			}
		})
	}
}

func memory(b *testing.B, day int) (bytes float64) {
	server := newServer(b)
	c, client := server.coordinator(b, canary), server.client(b)
	limits := []quota.Limit{{Key: "key_minute", Max: day / 16, Window: time.Minute}, {Key: "key_day", Max: day, Window: 24 * time.Hour}}
	for first := 0; first < day; first += 500 {
		step := quota.Step{Kind: quota.Replay, Limits: limits, ID: 1 << 32}
		for n := range 500 {
			age := time.Duration(first+n) * 24 * time.Hour / time.Duration(day)
			step.Grants = append(step.Grants, quota.Grant{ID: 1<<62 + uint64(first+n), Age: age, Spends: 3})
		}
		do(b, c, step)
	}
	for _, key := range keysOf(b, client) {
		bytes += float64(client.MemoryUsage(b.Context(), key, 0).Val())
	}
	return bytes
}
