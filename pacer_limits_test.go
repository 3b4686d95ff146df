package agentmessaging_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// documented are the limits of interface 8.1 with the caps of a plan of 8.2.
func documented(minute, ip, day int) []agentmessaging.Limit {
	return []agentmessaging.Limit{
		{Key: "key_minute", Max: minute, Window: time.Minute, Counts: "requests"},
		{Key: "ip_minute", Max: ip, Window: time.Minute, Counts: "requests"},
		{Key: "key_day", Max: day, Window: 24 * time.Hour, Counts: "requests"},
		{Key: "agent_create_key_day", Max: 50, Window: 24 * time.Hour, Counts: "agent creations"},
		{Key: "agent_create_ip_minute", Max: 10, Window: time.Minute, Counts: "agent creations"},
		{Key: "byok_set_key_hour", Max: 5, Window: time.Hour, Counts: "BYOK sets"},
		{Key: "warmup_key_hour", Max: 3, Window: time.Hour, Counts: "warm-ups"},
	}
}

func TestNamedLimits(t *testing.T) {
	assert.Equal(t, documented(60, 120, 1000), agentmessaging.PreviewLimits())
	assert.Equal(t, documented(300, 500, 10_000), agentmessaging.ProLimits())
	assert.Equal(t, documented(600, 1000, 50_000), agentmessaging.BYOKLimits())
	agentmessaging.PreviewLimits()[0].Max = 7 // a copy
	assert.Equal(t, 60, agentmessaging.PreviewLimits()[0].Max)
}

func TestNewPacerRefusesLimits(t *testing.T) {
	good := agentmessaging.Limit{Max: 1, Window: time.Second}
	for _, tt := range []struct {
		limits []agentmessaging.Limit
		want   string
	}{
		{nil, "limits: must be 1 to 30 limits"},
		{slices.Repeat([]agentmessaging.Limit{good}, 31), "limits: must be 1 to 30 limits"},
		{[]agentmessaging.Limit{{Max: 0, Window: time.Second}}, "limits[0].Max: must be at least 1"},
		{[]agentmessaging.Limit{good, {Max: 1, Window: time.Second - 1}}, "limits[1].Window: must be at least a second"},
		{[]agentmessaging.Limit{{Max: 1, Window: time.Second, Counts: "x"}}, "limits[0].Counts: must be one of the Counts constants, or empty"},
	} {
		pacer, err := agentmessaging.NewPacer(tt.limits)
		var invalid *agentmessaging.ValidationError
		require.ErrorAs(t, err, &invalid, tt.want)
		assert.ErrorContains(t, err, tt.want)
		assert.Nil(t, pacer)
	}
	newPacer(t, slices.Repeat([]agentmessaging.Limit{good}, 30))
}

func TestNewPacerRefusesOptions(t *testing.T) {
	for name, opt := range map[string]agentmessaging.PacerOption{
		"PacerOption":     nil,
		"WithCoordinator": agentmessaging.WithCoordinator(nil),
		"WithFleetSize":   agentmessaging.WithFleetSize(0),
		"WithPacerLogger": agentmessaging.WithPacerLogger(nil),
		"WithPacerClock":  agentmessaging.WithPacerClock(nil),
	} {
		_, err := agentmessaging.NewPacer(perMinute(1), opt)
		require.ErrorIs(t, err, agentmessaging.ErrInvalid, name)
		assert.ErrorContains(t, err, name)
	}
	_, err := agentmessaging.NewPacer(perMinute(1), agentmessaging.WithCoordinator((*store)(nil)))
	require.ErrorIs(t, err, agentmessaging.ErrInvalid)
	newPacer(t, perMinute(1), agentmessaging.WithPacerLogger(slog.Default()), agentmessaging.WithFleetSize(1))
}

// TestPacerCounts: which attempts spend which limits.
func TestPacerCounts(t *testing.T) {
	sets := createAttempt
	sets.SetsBYOK = true
	attempts := map[string]agentmessaging.LimitedAttempt{
		"status":     {Method: "GET", Path: "/v1/status"},
		"get byok":   {Method: "GET", Path: "/v1/byok"},
		"clear byok": {Method: "DELETE", Path: "/v1/byok"},
		"set byok":   {Method: "PUT", Path: "/v1/byok", SetsBYOK: true},
		"warm up":    {Method: "POST", Path: "/v1/warmup"},
		"create":     createAttempt,
		"create key": sets,
		"get agent":  {Method: "GET", Path: "/v1/agents/{agent_id}"},
		"send":       sendAttempt,
		"connect":    {Method: "POST", Path: "/v1/agents/{agent_id}/channels/sms"},
	}
	free := []string{"status", "get byok", "clear byok"}
	for counts, spenders := range map[agentmessaging.Counted][]string{
		"":                                  {"set byok", "warm up", "create", "create key", "get agent", "send", "connect"},
		agentmessaging.CountsRequests:       {"set byok", "warm up", "create", "create key", "get agent", "send", "connect"},
		agentmessaging.CountsAgentCreations: {"create", "create key"},
		agentmessaging.CountsBYOKSets:       {"set byok", "create key"},
		agentmessaging.CountsWarmUps:        {"warm up"},
	} {
		for name, attempt := range attempts {
			synctest.Test(t, func(t *testing.T) {
				pacer := newPacer(t, []agentmessaging.Limit{{Max: 1, Window: time.Minute, Counts: counts}})
				acquire(t, pacer, attempt)
				ctx, cancel := after(time.Second)
				defer cancel()
				_, err := pacer.Acquire(ctx, attempt)
				assert.Equal(t, slices.Contains(spenders, name), err != nil, "%q and %q", counts, name)
				assert.False(t, slices.Contains(free, name) && err != nil)
			})
		}
	}
}

// TestOperationLimitsHoldUpNobodyElse: while creations, BYOK sets and warm-ups
// wait, messages go.
func TestOperationLimitsHoldUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := newPacer(t, agentmessaging.PreviewLimits())
		ctx, cancel := context.WithCancel(t.Context())
		setBYOK := agentmessaging.LimitedAttempt{Method: "PUT", Path: "/v1/byok", SetsBYOK: true, MaxWait: time.Hour}
		warmUp := agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/warmup", MaxWait: time.Hour}
		create := createAttempt
		create.MaxWait = time.Hour
		for range 12 {
			for _, attempt := range []agentmessaging.LimitedAttempt{setBYOK, warmUp, create} {
				go func() { _, _ = pacer.Acquire(ctx, attempt) }()
			}
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		begin := time.Now()
		for range 10 {
			acquire(t, pacer, sendAttempt)
		}
		assert.Less(t, time.Since(begin), 12*time.Second)
		cancel()
		synctest.Wait()
	})
}
