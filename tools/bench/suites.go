package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
)

// A suite is a package of benchmarks, or some of them.
type suite struct {
	name, folder string
	bench        string // a regexp, as of go test
	env          string // for building
}

var suites = []suite{
	{name: "client", folder: "client", bench: "."},
	{name: "jsonv2", folder: "client", bench: "^BenchmarkCall$/^over=canned$/^call=post$/^subject=(net|agent)", env: "GOEXPERIMENT=jsonv2"},
	{name: "fake", folder: "../../fakeserver", bench: "."},
	{name: "pacer", folder: "../../pacer", bench: "^BenchmarkLine$"},
}

// measure runs each suite once in each round: what is compared is measured at
// nearly the same time.
func measure(ctx context.Context, o options, all []suite) (measured *results, failed error) {
	measured = newResults()
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return measured, err
	}
	defer os.RemoveAll(folder)
	for round := 1; round <= o.rounds && ctx.Err() == nil; round++ {
		for _, s := range all {
			if o.only != "" && o.only != s.name {
				continue
			}
			begun := time.Now()
			if err := s.round(ctx, folder, o, round, measured); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s, round %d: %w", s.name, round, err))
			}
			fmt.Fprintf(os.Stderr, "round %d of %s took %s\n", round, s.name, time.Since(begun).Round(time.Second))
		}
	}
	return measured, errors.Join(failed, ctx.Err())
}

// round builds the suite if it is the first one, and adds what its benchmarks
// print. Where one fails, the results of the others stay.
func (s suite) round(ctx context.Context, folder string, o options, round int, into *results) error {
	binary := filepath.Join(folder, s.name+".test.exe") // Windows needs the ending and nobody else minds
	if round == 1 {
		build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, ".")
		build.Dir, build.Env = s.folder, append(os.Environ(), s.env)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("not built: %w\n%s", err, out)
		}
	}
	bench := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.bench="+s.bench, "-test.benchtime="+o.benchtime)
	bench.Dir, bench.Stderr = s.folder, os.Stderr
	output, failed := bench.Output()
	if failed != nil {
		failed = fmt.Errorf("%w\n%s", failed, output)
	}
	origin := fmt.Sprintf("suite: %s\nround: %d\ndate: %s\nbenchtime: %s\n", s.name, round, time.Now().UTC().Format(time.DateOnly), o.benchtime)
	return errors.Join(failed, into.add(benchfmt.NewReader(strings.NewReader(origin+machine()+string(output)), s.name)))
}

// machine is what figures depend on, and no more: not the machine's name.
func machine() string { return fmt.Sprintf("cpus: %d\ngo: %s\n", runtime.NumCPU(), runtime.Version()) }
