package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

// config holds the values of the flags and of the environment.
type config struct {
	command     string // "" serves
	addr        string
	readyFile   string
	statePath   string
	json        bool
	log         string
	allowRemote bool
	control     control.Options
}

// option is a flag, and a variable of the environment. set gives a reason that
// says what is allowed, and never repeats the value: it may be a secret.
type option struct {
	name, fallback, usage string
	set                   func(value string) error
}

// options are in the order of the help.
func (c *config) options() []option {
	o := &c.control
	return []option{
		{"addr", "127.0.0.1:8460", "host and port to serve on; port 0 takes a free one", c.setAddr},
		{"allow-remote", "false", "serve on an address that is not loopback; control then needs a token", toBool(&c.allowRemote)},
		{"allow-host", "", "names under which a loopback address may be called, separated by commas", c.setHosts},
		{"token", "", "token for the control interface and the page on an address that is not loopback, and ignored on one that is; made and printed where none is given", c.setToken},
		{"key", "", "text of the first API key, instead of amk_fake_000001", c.setKey},
		{"plan", "preview", "plan of the first API key: " + strings.Join(control.PlanNames, ", "), toOneOf(control.PlanNames, &o.Plan)},
		{"limits", "plan", "limits of all keys: plan, off, a plan, or calls in a window such as key_minute=5,key_day=100", toOptions(control.LimitOptions, &o.Limits)},
		{"decisions", "", "answers to open questions of the interface, such as windows=sliding,metadata_cap=8000; the control interface lists them at decisions", toOptions(control.DecisionOptions, &o.Decisions)},
		{"cold-start", "0s", "how much longer the first message of a key takes", toDuration(&o.ColdStart)},
		{"latency", "0s", "how long every call takes to arrive", toDuration(&o.Latency)},
		{"seed", "1", "seed of faults and replies with a chance that name none", toInteger(0, 1<<53-1, &o.Seed)},
		{"calls", "10000", "how many calls are kept", toInteger(1, 1_000_000, &o.Calls)},
		{"like", "", "file that observe wrote: answer what the interface leaves open as that service did", toFile(&o.Like, checkLike)},
		{"replies", "", "file of scripted replies: the body of POST replies, or a list of them", toFile(&o.Replies, checkReplies)},
		{"state", "", "file to begin with, where it exists, and to save to at the end", toPath(&c.statePath)},
		{"ready-file", "", "file to write what is printed to, once the program serves", toPath(&c.readyFile)},
		{"json", "false", "print one line of JSON instead of lines for a shell", toBool(&c.json)},
		{"log", "auto", "a line for each call on standard error: " + strings.Join(logForms, ", ") + "; auto is text on a terminal and json elsewhere", toOneOf(logForms, &c.log)},
	}
}

var commands = []string{"version", "healthz", "readyz", "observe", "help"}

// variablePrefix begins the names of the variables of this program. Those of
// observe begin as the client's do.
const variablePrefix = "AGENT_MESSAGING_FAKE_"

func (o *option) variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(o.name, "-", "_"))
}

// parse reads the command, the flags, and where there is none, the
// environment.
func parse(args, environ []string) (*config, error) {
	c := &config{}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		c.command, args = args[0], args[1:]
	}
	values, err := c.read(args)
	if err != nil {
		return nil, err
	}
	if c.command != "" && !slices.Contains(commands, c.command) {
		return nil, fmt.Errorf("there is no such command; the commands are %s", strings.Join(commands, ", "))
	}
	return c, c.apply(values, environ)
}

// read returns the values of the flags that were given, by their names. --help
// and --version become the command.
func (c *config) read(args []string) (map[string]string, error) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it in one sentence
	values := map[string]string{}
	for _, o := range c.options() {
		take := func(value string) error { values[o.name] = value; return nil }
		if o.fallback == "false" {
			flags.BoolFunc(o.name, "", take)
		} else {
			flags.Func(o.name, "", take)
		}
	}
	showVersion := flags.Bool("version", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		c.command = "help"
	case err != nil:
		return nil, fmt.Errorf("%w; --help lists the flags", err)
	case *showVersion:
		c.command = "version"
	case flags.NArg() > 0:
		return nil, fmt.Errorf("one argument too many; the commands are %s", strings.Join(commands, ", "))
	}
	return values, nil
}

var errNotLocal = errors.New("--addr: must be a loopback address such as 127.0.0.1:8460; --allow-remote allows others")

// apply sets each option to its flag, or else to its variable, or else to its
// default. A variable that is empty counts as one that is not set.
func (c *config) apply(values map[string]string, environ []string) error {
	if c.command == "help" || c.command == "version" {
		return nil
	}
	if err := c.checkVariables(environ); err != nil {
		return err
	}
	getenv := lookUp(environ)
	for _, o := range c.options() {
		name := "--" + o.name
		value, given := values[o.name]
		if !given {
			name, value = o.variable(), cmp.Or(getenv(o.variable()), o.fallback)
		}
		if !given && value == "" {
			continue
		}
		if err := o.set(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if !c.allowRemote && !isLocal(c.addr) {
		return errNotLocal
	}
	return nil
}

// checkVariables refuses a variable that only looks like one of ours: whoever
// mistyped it believes that it has an effect.
func (c *config) checkVariables(environ []string) error {
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		isOurs := func(o option) bool { return o.variable() == name }
		if strings.HasPrefix(name, variablePrefix) && !slices.ContainsFunc(c.options(), isOurs) {
			return fmt.Errorf("%s: no flag has this variable; --help lists them", name)
		}
	}
	return nil
}

func help(out io.Writer) {
	_, _ = fmt.Fprint(out, "usage: agentmessaging-fake [version | healthz | readyz | observe] [flags]\n\n"+
		"The Agent Messaging Service in memory. Each flag can also be given in the environment.\n\n")
	for _, o := range new(config).options() {
		variable := o.variable()
		if o.fallback != "" {
			variable += ", default " + o.fallback
		}
		_, _ = fmt.Fprintf(out, "  --%-14s%s\n  %-16s%s\n", o.name, o.usage, "", variable)
	}
}
