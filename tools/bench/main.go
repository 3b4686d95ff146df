// Command bench measures the client and the fake beside others of their kind.
// Run it in this folder:
//
//	go run .                       measures everything in ten rounds and prints the tables
//	go run . -only client          measures one suite: client, jsonv2, fake or pacer
//	go run . -write                also writes results.txt, docs/performance.md and its pictures
//	go run . -draw                 measures nothing: draws the page from results.txt again
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// As seen from the folder of this command.
const (
	resultsFile = "results.txt"
	page        = "../../docs/performance.md"
)

type options struct {
	rounds          int
	benchtime, only string
	write, draw     bool
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 10, "`times` that each benchmark runs")
	flag.StringVar(&o.benchtime, "benchtime", "100ms", "`time` of a benchmark in a round, as of go test")
	flag.StringVar(&o.only, "only", "", "measure this `suite` only")
	flag.BoolVar(&o.write, "write", false, "write results.txt, the page and the pictures")
	flag.BoolVar(&o.draw, "draw", false, "measure nothing: draw the page and the pictures from results.txt")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, suites); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures, unless it shall only draw. A suite that fails in part does not
// keep what was measured from the tables.
func run(ctx context.Context, o options, all []suite) error {
	if o.draw {
		old, err := load(resultsFile)
		if err == nil {
			err = old.draw(page)
		}
		return err
	}
	if o.write && o.only != "" {
		return errors.New("the page shows all suites, so -write wants all of them")
	}
	measured, failed := measure(ctx, o, all)
	if o.write {
		if err := errors.Join(measured.save(resultsFile), measured.draw(page)); err != nil {
			return err
		}
	}
	for _, t := range tables {
		fmt.Printf("%s\n\n%s\n", t.name, t.markdown(measured))
	}
	fmt.Print("targets\n\n", targetTable(measured))
	return failed
}
