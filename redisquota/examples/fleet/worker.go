package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/redisquota"
)

// What a process tells those that it starts, beside the variables that
// agentmessaging.NewClientFromEnv reads.
const (
	envWorker = "FLEET_WORKER" // how many callers
	envAgent  = "FLEET_AGENT"
	envRedis  = "REDIS_URL"
	envPrefix = "FLEET_PREFIX"
)

// result is what a worker prints.
type result struct{ Accepted, Refused int }

// runWorkers starts the processes and waits for all of them.
func runWorkers(ctx context.Context, service *service, redisURL string) ([]result, error) {
	results, errs := make([]result, processes), make([]error, processes)
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() { results[i], errs[i] = runWorker(ctx, i, service, redisURL) })
	}
	group.Wait()
	return results, errors.Join(errs...)
}

func runWorker(ctx context.Context, process int, service *service, redisURL string) (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	worker := exec.CommandContext(ctx, self)
	worker.Env = append(os.Environ(),
		agentmessaging.EnvBaseURL+"="+service.url, agentmessaging.EnvAPIKey+"="+service.fake.Key(),
		envWorker+"="+strconv.Itoa(callers(process)), envAgent+"="+service.agentID, envRedis+"="+redisURL,
		envPrefix+"="+service.prefix)
	worker.Stderr = os.Stderr
	out, err := worker.Output()
	if err != nil {
		return r, fmt.Errorf("process %d: %w", process+1, err)
	}
	return r, json.NewDecoder(bytes.NewReader(out)).Decode(&r)
}

// work is what each process of the fleet does.
func work(ctx context.Context, stdout io.Writer) error {
	client, err := newClient()
	if err != nil {
		return err
	}
	callers, err := strconv.Atoi(os.Getenv(envWorker))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	var tally tally
	var group sync.WaitGroup
	for range callers {
		group.Go(func() { tally.call(ctx, client) })
	}
	group.Wait()
	if tally.err != nil {
		return tally.err
	}
	return json.NewEncoder(stdout).Encode(tally.result)
}

// newClient is the part to copy: a client whose calls share the API key's
// limits with all others that use the same Redis.
func newClient() (*agentmessaging.Client, error) {
	opts, err := redis.ParseURL(os.Getenv(envRedis))
	if err != nil {
		return nil, err
	}
	opts.ContextTimeoutEnabled, opts.MaxRetries = true, -1
	opts.DialTimeout, opts.ReadTimeout = 250*time.Millisecond, 250*time.Millisecond
	coordinator, err := redisquota.New(redisquota.GoRedis(redis.NewClient(opts)), os.Getenv(agentmessaging.EnvAPIKey),
		redisquota.WithPrefix(os.Getenv(envPrefix))) // the fake of each run has its own quota
	if err != nil {
		return nil, err
	}
	limits := []agentmessaging.Limit{{Key: "key_minute", Max: perMinute, Window: time.Minute}}
	pacer, err := agentmessaging.NewPacer(limits, agentmessaging.WithCoordinator(coordinator))
	if err != nil {
		return nil, err
	}
	return agentmessaging.NewClientFromEnv(agentmessaging.WithLimiter(pacer),
		agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1})) // so that each 429 is seen
}

// tally counts the calls of all goroutines of a process.
type tally struct {
	mu sync.Mutex
	result
	err error
}

// call calls until the time is over. A call that could not go before the end
// is refused by the pacer at once, and never sent.
func (t *tally) call(ctx context.Context, client *agentmessaging.Client) {
	for ctx.Err() == nil {
		_, err := client.GetAgent(ctx, os.Getenv(envAgent))
		var e *agentmessaging.Error
		if ctx.Err() != nil || errors.As(err, &e) && e.Local {
			return
		}
		t.count(err)
	}
}

func (t *tally) count(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.Accepted++
	case errors.Is(err, agentmessaging.ErrRateLimited):
		t.Refused++
	default:
		t.err = err
	}
}
