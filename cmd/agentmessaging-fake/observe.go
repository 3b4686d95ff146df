package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/atomicfile"
	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

// observeUsage is the help of observe. It is written by hand, since the flags of observe
// have longer explanations than the flags of the program.
const observeUsage = `usage: agentmessaging-fake observe [flags]

Finds out how the service at AGENT_MESSAGING_BASE_URL answers what the interface leaves open. It uses the API key in
AGENT_MESSAGING_API_KEY and, if it is set, a second one in AGENT_MESSAGING_SECOND_API_KEY. With --like FILE this
program then gives the same answers. The exit status is 1 if an answer differs from the baseline, and 3 if observe
could not finish or did not see an answer that the baseline has.

  --out FILE       write the findings as JSON; without a baseline, ask only the questions that FILE does not answer
                   yet, and print all findings
  --baseline FILE  ask everything, print the differences from the findings of an earlier run, and keep earlier
                   answers that were not seen; may be the same FILE as --out, which the first run makes
  --budget PARTS   what it may spend; the default is requests=490,creations=24,warmups=8,wait=15m, less than half of
                   each daily limit of a preview key
  --byok           allow it to set and clear the provider key that is stored for the API key: up to 3 times, or N
                   times with byok=N in --budget
`

// observeCommand is one run of the command observe: the paths of its flags, its budget and its
// target.
type observeCommand struct {
	// The paths of --baseline and --out; "" if they are not given.
	baseline, out string
	// budget is how much of the key's limits the calls may spend.
	budget observe.Spend
	target observe.Target
}

// runObserve asks the service, writes the findings and prints the changes. Its exit
// statuses are for a nightly job: 0 nothing new, 1 changed, 2 a wrong flag, 3 unfinished.
func runObserve(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	o, err := parseObserve(args, environ)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprint(stdout, observeUsage)
		return exitOK
	}
	if err != nil {
		printError(stderr, err)
		return exitUsage
	}
	changed, missing, err := o.run(ctx, stdout, stderr)
	if err != nil {
		printError(stderr, err)
	}
	switch {
	// A change is more urgent than an unfinished run, so it decides the exit status.
	case changed > 0:
		return exitFailed
	case err != nil || missing > 0:
		return exitUnfinished
	}
	return exitOK
}

// parseObserve reads the flags. It reads the client's variables, so that a shell in which
// an application runs needs no other variables.
func parseObserve(args, environ []string) (*observeCommand, error) {
	variables := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		variables[name] = value
	}
	o := &observeCommand{
		budget: observe.DefaultBudget(),
		target: observe.Target{
			BaseURL: variables["AGENT_MESSAGING_BASE_URL"], Key: variables["AGENT_MESSAGING_API_KEY"],
			SecondKey: variables["AGENT_MESSAGING_SECOND_API_KEY"],
		},
	}
	// Package flag neither prints nor exits here, because observe prints errors and help as
	// the rest of the program does.
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.baseline, "baseline", "", "")
	flags.StringVar(&o.out, "out", "", "")
	flags.Var(&o.budget, "budget", "")
	byok := flags.Bool("byok", false, "")
	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("observe: %w; observe --help lists the flags", err)
	}
	// The budget has no BYOK sets unless the user allows them, since each replaces a
	// provider key that an application may use. A number in --budget stays.
	if *byok && o.budget.BYOKSets == 0 {
		o.budget.BYOKSets = 3
	}
	if flags.NArg() > 0 {
		return nil, errors.New("observe: one argument too many; observe --help lists the flags")
	}
	return o, o.check()
}

// check finds mistakes that would stop the run, before any call spends the key's limits.
func (o *observeCommand) check() error {
	// Without an address, every question would end without an answer.
	address, err := url.Parse(o.target.BaseURL)
	if err != nil || address.Host == "" || !strings.HasPrefix(address.Scheme, "http") || o.target.Key == "" {
		return errors.New("observe: set AGENT_MESSAGING_BASE_URL to an address such as https://service.example, without /v1, and AGENT_MESSAGING_API_KEY to a key of that service")
	}
	// With a mistyped path there would be no baseline to compare with.
	if _, err := os.Stat(o.baseline); err != nil && o.baseline != "" && filepath.Clean(o.baseline) != filepath.Clean(o.out) {
		return fmt.Errorf("observe: --baseline: %w; the first run makes it if --out is the same file", err)
	}
	if o.out == "" {
		return nil
	}
	if err := atomicfile.Writable(o.out); err != nil {
		return fmt.Errorf("observe: --out: %w", err)
	}
	return nil
}

// run asks the questions, compares the answers with the baseline and writes the findings,
// even if it was interrupted. Answers of the baseline that this run did not see are kept.
// changed counts the answers that differ, missing the answers of the baseline that this
// run did not see.
func (o *observeCommand) run(ctx context.Context, stdout, stderr io.Writer) (changed, missing int, err error) {
	// A missing file counts as a file without answers.
	earlier, err := observe.ReadFile(o.baseline)
	if err != nil {
		return 0, 0, fmt.Errorf("--baseline: %w", err)
	}
	if o.baseline != "" && len(earlier.Decisions) == 0 {
		_, _ = fmt.Fprintf(stdout, "nothing to compare with: %s has no answers yet\n", o.baseline)
	}
	found, err := observe.ReadFile(o.out)
	if err != nil {
		return 0, 0, fmt.Errorf("--out: %w", err)
	}
	// With a baseline all questions are asked again, to find changes. Without a baseline,
	// each run asks only the questions that earlier runs have left open.
	if o.baseline != "" {
		found = new(observe.Observation)
	}
	_, _ = fmt.Fprintf(stderr, "observe spends at most %s of the key's limits\n", found.Preview(o.target, o.budget))
	err = found.Continue(ctx, o.target, o.budget)
	// A missing answer is not a change: the budget was used up, or a limit was closed.
	missing = printLines(stdout, "not seen this time:", found.Missing(earlier))
	// Keep must follow the comparison. Before it, Keep would hide the differences.
	changed = printLines(stdout, "changed:", found.Drift(earlier))
	if n := found.Unchanged(earlier); n > 0 {
		_, _ = fmt.Fprintf(stdout, "unchanged: %d\n", n)
	}
	found.Keep(earlier)
	return changed, missing, errors.Join(err, o.write(found, stdout))
}

// printLines prints each line after a label, and returns how many lines there are.
func printLines(stdout io.Writer, label string, lines []string) int {
	for _, line := range lines {
		_, _ = fmt.Fprintln(stdout, label, line)
	}
	return len(lines)
}

// write writes the findings to --out. Without a baseline it also prints all findings;
// with one, run has printed the changes.
func (o *observeCommand) write(found *observe.Observation, stdout io.Writer) error {
	var err error
	if o.out != "" {
		err = found.WriteFile(o.out)
	}
	if o.baseline == "" {
		_, printing := io.WriteString(stdout, found.Markdown())
		err = errors.Join(err, printing)
	}
	return err
}
