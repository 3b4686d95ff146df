// Fleet starts several processes of itself that share one API key through
// Redis, and shows what each of them got.
//
// The service is a fake in the first process, with a limit of 600 requests a
// minute. Redis is the one that REDIS_URL names, or a redis-server that runs
// as long as the example. The processes want far more than the limit allows,
// and one of them much more than the others.
//
// A few seconds show that calls are paced, and how they are shared. They spend
// less than a minute's limit, so that none is refused says little, and how much
// of a window is used cannot be seen: the module's TestFleet runs long enough.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"
)

const (
	processes = 4
	duration  = 4 * time.Second
	perMinute = 600
)

func main() {
	log.SetFlags(0)
	var err error
	if os.Getenv(envWorker) != "" {
		err = work(context.Background(), os.Stdout)
	} else {
		err = run(context.Background(), os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, stdout io.Writer) error {
	url, stopRedis, err := startRedis()
	if err != nil {
		return err
	}
	if url == "" {
		fmt.Fprintln(stdout, "This example needs Redis: set REDIS_URL, or install redis-server.")
		return nil
	}
	defer stopRedis()
	service, err := startService()
	if err != nil {
		return err
	}
	defer service.close()

	fmt.Fprintf(stdout, "%d processes for %s, %d requests a minute for all of them\n", processes, duration, perMinute)
	results, err := runWorkers(ctx, service, url)
	if err != nil {
		return err
	}
	show(results, stdout)
	return nil
}

// show prints what the processes counted themselves.
func show(results []result, stdout io.Writer) {
	var all result
	for _, r := range results {
		all.Accepted += r.Accepted
		all.Refused += r.Refused
	}
	for i, r := range results {
		fmt.Fprintf(stdout, "process %d, %2d callers: %3d accepted, %d refused with 429, %.0f %% of all\n",
			i+1, callers(i), r.Accepted, r.Refused, 100*float64(r.Accepted)/float64(max(1, all.Accepted)))
	}
	fmt.Fprintf(stdout, "together: %d accepted, %d refused with 429\n", all.Accepted, all.Refused)
}

// callers is how many goroutines of a process want to call at any time.
func callers(process int) int {
	if process == 0 {
		return 32
	}
	return 4
}
