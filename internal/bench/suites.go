package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/report"
)

// A suite is a package of benchmarks.
type suite struct {
	name, folder string
	most         int // rounds; 0 is as many as asked for
}

// suites: what is not a time of calls does not vary enough for ten rounds.
var suites = []suite{
	{"client", "client", 0},
	{"fake", "../../fakeserver", 0},
	{"programs", "programs", 3},
	{"weight", "weight", 1},
}

func (s suite) rounds(o options) int {
	if s.most > 0 {
		return min(s.most, o.rounds)
	}
	return o.rounds
}

// build compiles the test binary of the suite, in the module that it is of.
func (s suite) build(ctx context.Context, into string) error {
	if _, err := os.Stat(s.folder); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", s.binary(into), ".")
	cmd.Dir = s.folder
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// binary has the ending that Windows needs and nobody else minds.
func (s suite) binary(in string) string { return filepath.Join(in, s.name+".test.exe") }

// run runs all benchmarks once. Where one fails, the output has the others.
func (s suite) run(ctx context.Context, in string, o options) ([]byte, error) {
	args := []string{"-test.run=^$", "-test.bench=.", "-test.count=1", "-test.benchtime=" + o.benchtime}
	if o.short {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(ctx, s.binary(in), args...)
	cmd.Dir = s.folder
	cmd.Stderr = os.Stderr
	return cmd.Output()
}

// block is a round of the suite, and the name of the processor. Failures and
// remarks go to the terminal.
func (s suite) block(ctx context.Context, in string, o options, round int) (report.Block, string, error) {
	output, err := s.run(ctx, in, o)
	kept, cpu, rest := report.Split(output)
	if rest != "" {
		fmt.Fprint(os.Stderr, rest)
	}
	if err != nil {
		err = fmt.Errorf("%s, round %d: %w", s.name, round, err)
	}
	return report.Block{Suite: s.name, Round: round, Output: kept}, cpu, err
}
