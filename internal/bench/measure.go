package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/report"
)

// measure runs the chosen suites. The file is nil where nothing was measured;
// an error beside a file names the suites that failed in part.
func measure(ctx context.Context, o options, all []suite, now time.Time) (*report.File, error) {
	chosen := slices.DeleteFunc(slices.Clone(all), func(s suite) bool { return !o.only.MatchString(s.name) })
	if len(chosen) == 0 || o.rounds < 1 {
		return nil, errors.New("nothing to measure: no suite or no round was asked for")
	}
	old, err := others(o, chosen, all)
	if err != nil {
		return nil, err
	}
	blocks, cpu, failed := buildAndRun(ctx, o, chosen)
	if ctx.Err() != nil || len(blocks) == 0 {
		return nil, errors.Join(ctx.Err(), failed)
	}
	file := &report.File{Header: machine(cpu), Blocks: blocks}
	if err := sameMachine(old, file.Header); err != nil {
		return nil, err
	}
	for _, s := range chosen {
		if s.printed(blocks) {
			file.Header = append(file.Header, report.Measured(s.name, s.how(o, now)))
		}
	}
	if old != nil {
		file.Keep(old, func(name string) bool { return !has(chosen, name) })
	}
	return file, failed
}

func buildAndRun(ctx context.Context, o options, chosen []suite) (blocks []report.Block, cpu string, failed error) {
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(folder)
	built, failed := build(ctx, folder, chosen)
	blocks, cpu, err = rounds(ctx, folder, o, built)
	return blocks, cpu, errors.Join(failed, err)
}

// printed tells whether the suite has any result.
func (s suite) printed(blocks []report.Block) bool {
	return slices.ContainsFunc(blocks, func(b report.Block) bool {
		return b.Suite == s.name && strings.Contains(b.Output, "Benchmark")
	})
}

func has(chosen []suite, name string) bool {
	return slices.ContainsFunc(chosen, func(s suite) bool { return s.name == name })
}

// how a suite was measured: 2026-05-01, 10 rounds of 100ms.
func (s suite) how(o options, now time.Time) string {
	rounds := "1 round"
	if n := s.rounds(o); n > 1 {
		rounds = strconv.Itoa(n) + " rounds"
	}
	how := now.UTC().Format(time.DateOnly) + ", " + rounds + " of " + o.benchtime
	if o.short {
		how += ", short"
	}
	return how
}

func build(ctx context.Context, folder string, chosen []suite) (built []suite, failed error) {
	for _, s := range chosen {
		fmt.Fprintln(os.Stderr, "building", s.name)
		if err := s.build(ctx, folder); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s was not built: %w", s.name, err))
			continue
		}
		built = append(built, s)
	}
	return built, failed
}

// rounds runs each suite once in each round: what is compared is measured at
// nearly the same time, and a slow minute of the machine is one round's.
func rounds(ctx context.Context, folder string, o options, built []suite) (blocks []report.Block, cpu string, failed error) {
	for round := 1; round <= o.rounds && ctx.Err() == nil; round++ {
		for _, s := range built {
			if round > s.rounds(o) {
				continue
			}
			begun := time.Now()
			block, name, err := s.block(ctx, folder, o, round)
			blocks, failed = append(blocks, block), errors.Join(failed, err)
			if name != "" {
				cpu = name
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s took %s\n", round, s.rounds(o), s.name, time.Since(begun).Round(time.Second))
		}
	}
	return blocks, cpu, failed
}

// machine is what figures depend on, and no more: not the machine's name.
func machine(cpu string) []report.Pair {
	kernel, _ := exec.Command("uname", "-sr").Output() // empty where there is none
	return []report.Pair{
		{Key: "goos", Value: runtime.GOOS},
		{Key: "goarch", Value: runtime.GOARCH},
		{Key: "cpu", Value: cpu},
		{Key: "cpus", Value: strconv.Itoa(runtime.NumCPU())},
		{Key: "kernel", Value: release(string(kernel))},
		{Key: "go", Value: runtime.Version()},
	}
}

var releaseNumbers = regexp.MustCompile(`^\S+ \d+(\.\d+)?`)

// release is a kernel's name and the first two numbers of its version: those
// after them are fixes, and what a vendor calls a build.
func release(kernel string) string { return releaseNumbers.FindString(kernel) }

// others is the file with the results of the suites that were not chosen, or
// nil where there is nothing to keep, or no file to keep it in. That it cannot
// be kept is found before minutes are spent, as far as the machine is known
// before.
func others(o options, chosen, all []suite) (*report.File, error) {
	if !o.write || len(chosen) == len(all) {
		return nil, nil
	}
	text, err := os.ReadFile(resultsFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	old, err := report.Parse(string(text))
	if err != nil {
		return nil, err
	}
	return old, sameMachine(old, machine(""))
}

// sameMachine is an error where results of two machines would stand in one
// page. What is not known of this machine is not compared.
func sameMachine(old *report.File, machine []report.Pair) error {
	for _, p := range machine {
		if old == nil || p.Value == "" {
			continue
		}
		if was := old.Get(p.Key); was != p.Value {
			return fmt.Errorf("the other suites in %s were measured with %s %q, not %q: measure all", resultsFile, p.Key, was, p.Value)
		}
	}
	return nil
}
