package redisquota_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/pacing"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
	"github.com/agent-messaging-service/agentmessaging-go/redisquota"
)

// clocked gives the script a clock that the test moves.
type clocked struct {
	redisquota.Scripter
	now *int64
}

func (c clocked) EvalSha(ctx context.Context, digest string, keys, args []string) ([]int64, error) {
	return c.Scripter.EvalSha(ctx, digest, keys, c.at(args))
}

func (c clocked) Eval(ctx context.Context, script string, keys, args []string) ([]int64, error) {
	return c.Scripter.Eval(ctx, script, keys, c.at(args))
}

func (c clocked) at(args []string) []string { return append(args, strconv.FormatInt(*c.now, 10)) }

// TestTwin holds the script to the Go model: the same answers to the same
// random histories. REDISQUOTA_SEED and REDISQUOTA_HISTORIES look further.
func TestTwin(t *testing.T) {
	server := newServer(t)
	first, histories := fromEnv("REDISQUOTA_SEED", 1), fromEnv("REDISQUOTA_HISTORIES", 60)
	for seed := first; seed < first+histories; seed++ {
		playTwins(t, server, uint64(seed), 600)
	}
}

func FuzzTwin(f *testing.F) {
	server := newServer(f)
	for seed := range uint64(3) {
		f.Add(1000+seed, uint16(100))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) { playTwins(t, server, seed, int(steps%1000)) })
}

func playTwins(t *testing.T, server *server, seed uint64, steps int) {
	h := newHistory(seed)
	scripter := clocked{redisquota.GoRedis(server.client(t)), &h.now}
	twin, err := redisquota.New(scripter, fmt.Sprintf("key %d", seed))
	require.NoError(t, err)
	model := pacing.New(h.limits, pacing.Tuning{})
	for n := range steps {
		step := h.next()
		want := model.Do(h.now, step)
		got, err := twin.Do(t.Context(), step)
		require.NoError(t, err)
		require.Equal(t, want, got, "seed %d, step %d at %d: %+v", seed, n, h.now, step)
		h.learn(step, want)
	}
}

// history makes up what a fleet might do, and some of what it never should.
type history struct {
	*rand.Rand
	now     int64
	limits  []quota.Limit
	hurry   int          // how much slower than usual time passes
	foreign bool         // many refusals, under many names
	last    quota.Answer // to the newest Ask
	ids     uint64
	waiting []quota.Step
	granted []quota.Step // the newest, as they were asked for
	at      int64        // of the newest
	probes  []quota.Step
}

func newHistory(seed uint64) *history {
	h := &history{Rand: rand.New(rand.NewPCG(seed, 0)), now: 1_763_700_000_123_456}
	kinds := []quota.Limit{
		{Key: "key_minute", Max: 60, Window: time.Minute},
		{Key: "small", Max: 5, Window: 10 * time.Second},
		{Key: "one", Max: 1, Window: 2 * time.Second},
		{Key: "odd", Max: 7, Window: 12_345_678 * time.Microsecond},
		{Key: "large", Max: 605, Window: time.Minute}, {Key: "burst", Max: 65, Window: time.Minute},
		{Key: "key_day", Max: 40, Window: 24 * time.Hour},
		{Key: "byok_set_key_hour", Max: 5, Window: time.Hour},
		{Key: "warmup_key_hour", Max: 3, Window: time.Hour},
	}
	h.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	h.limits = kinds[:1+h.IntN(5)]
	h.hurry = []int{1, 1, 10, 100}[h.IntN(4)]
	h.foreign = h.IntN(6) == 0
	return h
}

func (h *history) next() quota.Step {
	h.pass()
	var step quota.Step
	switch n := h.IntN(100); {
	case n < 70 && (!h.foreign || n < 35):
		step = h.ask()
	case n < 78:
		step = h.refused()
	case n < 86:
		step = h.of(h.probes, quota.Accepted)
	case n < 92:
		step = h.of(h.granted, quota.Unused)
	case n < 95:
		step = h.of(h.waiting, quota.Unused)
	default:
		step = h.replay()
	}
	step.Limits = h.limits
	return step
}

// pass lets time pass: often to the microsecond that was named, now and then
// for long, and backwards, as when a replica with another clock takes over.
func (h *history) pass() {
	slow := int64(h.hurry)
	switch n := h.IntN(100); {
	case n < 50:
		h.now += 1 + h.Int64N(400_000/slow)
	case n < 70:
		h.now += min(h.last.Wait, 48*time.Hour).Microseconds() - int64(h.IntN(2))
	case n < 90:
		h.now += 1 + h.Int64N(5_000_000/slow)
	case n < 96:
		h.now += h.Int64N(120_000_000 / slow)
	case n < 99:
		h.now += h.window().Microseconds() / int64(1+h.IntN(3))
	default:
		h.now -= h.Int64N(3_000_000)
	}
}

func (h *history) window() time.Duration { return h.limits[h.IntN(len(h.limits))].Window }

func (h *history) ask() quota.Step {
	n := h.IntN(100)
	switch {
	case n < 50 && len(h.waiting) > 0:
		step := h.waiting[h.IntN(len(h.waiting))]
		step.Batch = step.Batch != (n == 0)
		return step
	case n < 55 && len(h.granted) > 0 && h.now-h.at < 1_000_000:
		return h.granted[len(h.granted)-1] // its answer was lost
	}
	return quota.Step{Kind: quota.Ask, ID: h.newID(), Spends: h.spends(), Batch: h.IntN(3) == 0}
}

// newID is of one of five processes, and as long as IDs are.
func (h *history) newID() uint64 {
	h.ids++
	return (0xFFFF_FFF0+uint64(h.IntN(5)))<<32 | h.ids
}

func (h *history) spends() quota.Set {
	all := quota.Set(1)<<len(h.limits) - 1
	if h.IntN(2) == 0 {
		return all
	}
	return 1 + quota.Set(h.IntN(int(all)))
}

func (h *history) of(steps []quota.Step, kind quota.Kind) quota.Step {
	step := quota.Step{ID: h.newID() * uint64(h.IntN(2)), Spends: h.spends() * quota.Set(h.IntN(2))} // nobody's
	if len(steps) > 0 && h.IntN(10) > 0 {
		step = steps[h.IntN(len(steps))]
	}
	step.Kind = kind
	return step
}

func (h *history) refused() quota.Step {
	step := h.of(h.granted, quota.Refused)
	if len(h.probes) > 0 && h.IntN(2) == 0 {
		step = h.of(h.probes, quota.Refused)
	}
	step.LimitKey = []string{
		"", "minute", "day", h.limits[h.IntN(len(h.limits))].Key, fmt.Sprintf("foreign %d", h.IntN(200)),
	}[h.IntN(5)]
	if h.foreign {
		step.LimitKey = fmt.Sprintf("foreign %d", h.IntN(100))
	}
	window := h.window()
	step.RetryAfter = []time.Duration{
		0, time.Duration(h.Int64N(int64(3 * time.Second))), time.Duration(h.Int64N(int64(window))),
		window - time.Duration(h.Int64N(int64(window/20))), window + 2*time.Second, 2 * window, -time.Hour,
	}[h.IntN(7)]
	if h.IntN(1000) == 0 {
		step.RetryAfter = math.MaxInt64
	}
	return step
}

func (h *history) replay() quota.Step {
	step := quota.Step{Kind: quota.Replay, ID: h.newID()}
	for range h.IntN(8) {
		age := time.Duration(h.Int64N(int64(h.window()*2))) - time.Second
		step.Grants = append(step.Grants, quota.Grant{ID: h.newID(), Age: age, Spends: h.spends()})
	}
	if len(h.granted) > 0 { // one that Redis has
		known := h.granted[len(h.granted)-1]
		step.Grants = append(step.Grants, quota.Grant{ID: known.ID, Age: time.Second, Spends: known.Spends})
	}
	return step
}

// learn keeps what later steps refer to.
func (h *history) learn(step quota.Step, answer quota.Answer) {
	if step.Kind == quota.Unused { // what was given back is not asked for again
		h.at = 0
		h.granted, h.waiting = without(h.granted, step.ID), without(h.waiting, step.ID)
	}
	if step.Kind != quota.Ask {
		return
	}
	h.last = answer
	h.waiting = without(h.waiting, step.ID)
	if !answer.Granted {
		h.waiting = newest(append(h.waiting, step), 20)
		return
	}
	h.granted, h.at = newest(append(h.granted, step), 20), h.now
	if answer.Probe {
		h.probes = newest(append(h.probes, step), 3)
	}
}

func without(steps []quota.Step, id uint64) []quota.Step {
	for i, step := range steps {
		if step.ID == id {
			return append(steps[:i:i], steps[i+1:]...)
		}
	}
	return steps
}

func newest(steps []quota.Step, n int) []quota.Step { return steps[max(0, len(steps)-n):] }
