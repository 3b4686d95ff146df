package redisquota_test

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/pacing"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// modelRedis is a Redis that runs the Go model in place of the script, by the
// clock of the test's bubble, and can be told to fail.
type modelRedis struct {
	mu    sync.Mutex
	state *pacing.State
	calls map[uint64]bool // that it knows of
	fail  func(context.Context) error
}

func (m *modelRedis) Eval(ctx context.Context, _ string, keys, args []string) ([]int64, error) {
	return m.EvalSha(ctx, "", keys, args)
}

func (m *modelRedis) EvalSha(ctx context.Context, _ string, keys, args []string) ([]int64, error) {
	if fail := m.failing(); fail != nil {
		return nil, fail(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	step := stepOf(len(keys)-1, args)
	if m.state == nil {
		m.state, m.calls = pacing.New(step.Limits, pacing.Tuning{}), map[uint64]bool{}
	}
	answer := m.state.Do(time.Now().UnixMicro(), step)
	m.note(step, answer)
	reply := []int64{0, 0, answer.Wait.Microseconds(), answer.Gap.Microseconds(), int64(answer.Limit), int64(answer.Fleet), answer.Epoch, answer.Alone.Microseconds()}
	if answer.Granted {
		reply[0] = 1
	}
	return reply, nil
}

func (m *modelRedis) note(step quota.Step, answer quota.Answer) {
	if answer.Granted {
		m.calls[step.ID] = true
	}
	if step.Kind == quota.Unused {
		delete(m.calls, step.ID)
	}
	for _, g := range step.Grants {
		m.calls[g.ID] = true
	}
}

func (m *modelRedis) failing() func(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fail
}

// set makes Redis fail from now on, or work again where fail is nil; flushed
// makes it forget everything.
func (m *modelRedis) set(fail func(context.Context) error, flushed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = fail
	if flushed {
		m.state = nil
	}
}

func (m *modelRedis) known() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.calls)
}

// stepOf reads the arguments of the script.
func stepOf(limits int, args []string) quota.Step {
	number := func(i int) uint64 {
		n, _ := strconv.ParseUint(args[i], 10, 64)
		return n
	}
	micros := func(i int) time.Duration { return time.Duration(number(i)) * time.Microsecond }
	step := quota.Step{
		Kind: quota.Kind(args[1]), ID: number(2), Spends: quota.Set(number(4)), Batch: args[5] == "1",
		LimitKey: args[6], RetryAfter: micros(7),
	}
	at := 8
	for range limits {
		step.Limits = append(step.Limits, quota.Limit{Key: args[at], Max: int(number(at + 1)), Window: micros(at + 2)})
		at += 3
	}
	for range number(at) {
		step.Grants = append(step.Grants, quota.Grant{ID: number(at + 1), Age: micros(at + 2), Spends: quota.Set(number(at + 3))})
		at += 3
	}
	return step
}
