package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// connections are kept alive, with a goroutine for each.
const connections = 64

// caller asks one program.
type caller struct {
	baseURL string
	client  *http.Client
}

func newCaller(baseURL string) caller {
	transport := &http.Transport{MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections}
	return caller{baseURL, &http.Client{Transport: transport}}
}

func (c *caller) close() { c.client.CloseIdleConnections() }

func (c *caller) do(ctx context.Context, a ask) error {
	req, err := c.request(ctx, a)
	if err != nil {
		return err
	}
	return c.send(req)
}

func (c *caller) request(ctx context.Context, a ask) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, a.method, c.baseURL+a.path, strings.NewReader(a.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if a.contentType != "" {
		req.Header.Set("Content-Type", a.contentType)
	}
	return req, nil
}

// send sends a request, also one that was sent and answered before.
func (c *caller) send(req *http.Request) (err error) {
	if req.Body, err = req.GetBody(); err != nil {
		return err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d", resp.StatusCode)
	case n == 0:
		return errors.New("the answer has no body")
	}
	return nil
}

// A load is so many calls, or as many as the time allows.
type load struct {
	calls  int64
	within time.Duration
}

// An outcome is how many calls were answered, and how long that took.
type outcome struct {
	calls int64
	took  time.Duration
}

// rate is in calls a second.
func (o outcome) rate() float64 { return float64(o.calls) / o.took.Seconds() }

// share is what one call has of a time, in microseconds.
func (o outcome) share(of time.Duration) float64 {
	return float64(of) / float64(time.Microsecond) / float64(o.calls)
}

// put puts l on a program, over all connections at once. It ends at the first
// answer that is not good.
func (c *caller) put(ctx context.Context, l load, a ask) (outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var asked, answered atomic.Int64
	var workers sync.WaitGroup
	began := time.Now()
	for range connections {
		workers.Go(func() {
			req, err := c.request(ctx, a)
			for err == nil && ctx.Err() == nil && asked.Add(1) <= l.calls && time.Since(began) < l.within {
				if err = c.send(req); err == nil {
					answered.Add(1)
				}
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	return outcome{answered.Load(), time.Since(began)}, context.Cause(ctx)
}
