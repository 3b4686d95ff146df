// Command bench measures the client and the fake beside others of their kind,
// and prints what it found. Run it in this folder:
//
//	go run .                        measures everything, in ten rounds
//	go run . -only client           measures the client only
//	go run . -write                 also writes results.txt, docs/performance.md and its pictures
//	go run . -write -only client    the same, and keeps what results.txt has of the rest
//	go run . -draw                  measures nothing: draws the page from results.txt again
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"time"
)

type options struct {
	rounds    int
	benchtime string
	only      *regexp.Regexp // of the suites' names
	write     bool
	draw      bool
	short     bool
}

func main() {
	o := options{only: regexp.MustCompile("")}
	flag.IntVar(&o.rounds, "rounds", 10, "`times` that each benchmark is run; the weight is measured once, and programs three times at most")
	flag.StringVar(&o.benchtime, "benchtime", "100ms", "`time` of a benchmark in a round, as of go test")
	flag.Func("only", "measure only the suites that match this `regexp`: client, fake, programs, weight; with -write the results of the others are kept", func(s string) (err error) {
		o.only, err = regexp.Compile(s)
		return err
	})
	flag.BoolVar(&o.write, "write", false, "write results.txt, the page and the pictures; refused where the results that are kept are of another machine")
	flag.BoolVar(&o.draw, "draw", false, "measure nothing: draw the page and the pictures from results.txt")
	flag.BoolVar(&o.short, "short", false, "leave out what takes much time or memory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, suites, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures, unless it shall only draw. A suite that fails does not keep the
// others from the tables, which say that it was not measured.
func run(ctx context.Context, o options, all []suite, w io.Writer) error {
	if o.draw {
		return draw(w)
	}
	file, failed := measure(ctx, o, all, time.Now())
	if file == nil {
		return failed
	}
	if !o.write {
		return errors.Join(show(w, file), failed)
	}
	if err := os.WriteFile(resultsFile, []byte(file.String()), 0o644); err != nil {
		return err
	}
	return errors.Join(draw(w), failed)
}
