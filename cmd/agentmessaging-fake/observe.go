package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
)

// exitUnfinished is the status of observe where it could not finish: 1 means
// that the service answers otherwise than the baseline says.
const exitUnfinished = 3

// observeUsage is the help of observe.
const observeUsage = `usage: agentmessaging-fake observe [flags]

Finds out how the service at AGENT_MESSAGING_BASE_URL answers what the interface leaves open, with the API key in
AGENT_MESSAGING_API_KEY, and if given a second one in AGENT_MESSAGING_SECOND_API_KEY. --like FILE then makes this
program answer likewise. It ends with 1 where the service answers otherwise than the baseline says, and with 3 where
it could not finish.

  --out FILE       write the findings as JSON, and a page beside it that ends in .md instead of .json; what FILE
                   already has an answer to is not asked again, unless FILE is the baseline too
  --baseline FILE  compare with the findings of an earlier run, where there are any
  --budget PARTS   what it may spend: requests=490,creations=24,warmups=4,wait=6m unless said otherwise,
                   which is below half of each daily limit of a preview key
  --byok           it may set and clear the provider key that the API key has stored: up to 3 times
`

// observation is one run of observe.
type observation struct {
	baseline, out string
	budget        contract.Spend
	target        contract.Target
}

// observe asks the service, keeps what it found and says what has changed.
func observe(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	o, err := parseObserve(args, getenv)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprint(stdout, observeUsage)
		return exitOK
	}
	if err != nil {
		complain(stderr, err)
		return exitUsage
	}
	changes, err := o.run(ctx, stdout, stderr)
	for _, change := range changes {
		_, _ = fmt.Fprintln(stdout, change)
	}
	switch {
	case err != nil:
		complain(stderr, err)
		return exitUnfinished
	case len(changes) > 0:
		return exitFailed
	}
	return exitOK
}

func parseObserve(args []string, getenv func(string) string) (*observation, error) {
	o := &observation{
		budget: contract.Spend{Requests: 490, Creations: 24, WarmUps: 4, Wait: 6 * time.Minute},
		target: contract.Target{
			BaseURL: getenv("AGENT_MESSAGING_BASE_URL"), Key: getenv("AGENT_MESSAGING_API_KEY"),
			SecondKey: getenv("AGENT_MESSAGING_SECOND_API_KEY"),
		},
	}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.baseline, "baseline", "", "")
	flags.StringVar(&o.out, "out", "", "")
	flags.Func("budget", "", o.setBudget)
	byok := flags.Bool("byok", false, "")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if *byok {
		o.budget.BYOKSets = 3
	}
	switch {
	case flags.NArg() > 0:
		return nil, errors.New("observe: one argument too many; observe --help lists the flags")
	case o.target.BaseURL == "" || o.target.Key == "":
		return nil, errors.New("observe: AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY say which service")
	}
	return o, nil
}

// setBudget reads parts such as requests=100,wait=1m; the others stay.
func (o *observation) setBudget(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(value)
		switch name {
		case "requests":
			o.budget.Requests = n
		case "creations":
			o.budget.Creations = n
		case "warmups":
			o.budget.WarmUps = n
		case "wait":
			o.budget.Wait, err = time.ParseDuration(value)
		default:
			return errors.New("the parts are requests, creations, warmups and wait")
		}
		if err != nil || n < 0 || o.budget.Wait < 0 {
			return fmt.Errorf("%s: must be a whole number, and wait a duration such as 6m", name)
		}
	}
	return nil
}

// run asks, writes the findings even where it was interrupted, and returns
// what has changed since the baseline.
func (o *observation) run(ctx context.Context, stdout, stderr io.Writer) (changes []string, err error) {
	earlier, err := readObservation(o.baseline)
	if err != nil {
		return nil, fmt.Errorf("--baseline: %w", err)
	}
	found := &contract.Observation{}
	if o.out != o.baseline {
		if found, err = readObservation(o.out); err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
	}
	_, _ = fmt.Fprintf(stderr, "observe spends at most %s of the key's limits\n", found.Preview(o.target, o.budget))
	err = found.Continue(ctx, o.target, o.budget)
	return found.Drift(earlier), errors.Join(err, o.write(found, stdout))
}

// readObservation reads a file of findings. One that does not exist has none.
func readObservation(path string) (*contract.Observation, error) {
	found := new(contract.Observation)
	if path == "" {
		return found, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err == nil {
		err = json.Unmarshal(text, found)
	}
	return found, err
}

// write writes the findings to --out, or the page where there is no file.
func (o *observation) write(found *contract.Observation, stdout io.Writer) error {
	if o.out == "" {
		_, err := io.WriteString(stdout, found.Markdown())
		return err
	}
	text, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		writeFile(o.out, append(text, '\n')),
		writeFile(strings.TrimSuffix(o.out, ".json")+".md", []byte(found.Markdown())),
	)
}
