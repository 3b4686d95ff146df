package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/atomicfile"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// config holds the values of the flags and of the environment. openFake makes the fake
// from it.
type config struct {
	// command is the word before the flags, or "help" or "version" for --help or --version; ""
	// means to serve.
	command string
	// addr is the host and port of --addr. The host may be a name, or empty.
	addr string
	// readyFile and statePath are the paths of --ready-file and --state; "" for none.
	readyFile string
	statePath string
	json      bool
	// untilEOF ends the program when its standard input ends.
	untilEOF bool
	// log is one of logForms.
	log string
	// allowRemote accepts an address that other machines reach.
	allowRemote bool
	// control has the options of package control, filled by the flags and by prepare.
	control control.Options
}

// option is a flag, and a variable of the environment. One function reads the values of
// both, so that both are refused in the same words.
type option struct {
	// name is the flag without its dashes, and usage its line of the help. A defaultValue
	// of "false" makes it a flag that needs no value.
	name, defaultValue, usage string
	// apply sets the value in the config, or returns options of the fake, which check their
	// values when the fake is made. The error says what is allowed. It never repeats the
	// value, which may be a secret.
	apply func(value string) ([]fakeserver.Option, error)
}

// options are in the order of the help. Their functions write into c.
func (c *config) options() []option {
	o := &c.control
	return []option{
		// The address of the program, and who may control it.
		{"addr", "127.0.0.1:8460", "host and port to serve on; port 0 picks a free one", storeIn(&c.addr, hostAndPort)},
		{"allow-remote", "false", "serve on an address that is not loopback; control then needs a token", storeIn(&c.allowRemote, boolean)},
		{"token", "", "token for the control interface and the page on an address that is not loopback; by default one is made and printed", storeIn(&o.Guard.Token, token)},
		// The behaviour of the fake. Most of these are options of package fakeserver.
		{"key", "", "text of the first API key, instead of amk_fake_000001", fakeOption(text[string], fakeserver.WithKey)},
		{"plan", "preview", "plan of the first API key, unless the file of --state has one: " + spec.PlanNames(), fakeOption(text[fakeserver.Plan], fakeserver.WithPlan)},
		{"limits", "", "limits of all keys, instead of those of their plans: off, a plan, or calls in a window such as key_minute=5,key_day=100", parseLimits},
		{"decisions", "", "answers to open questions of the interface, such as windows=sliding,metadata_cap=8000; the control interface lists them at decisions", parseDecisions},
		{"cold-start", "0s", "how much longer the first message of a key takes", fakeOption(duration, fakeserver.WithColdStart)},
		{"latency", "0s", "how long every call takes to arrive", storeIn(&o.Latency, duration)},
		{"calls", "10000", "how many calls are kept", fakeOption(callLimit, fakeserver.WithCallLimit)},
		// The files that the program reads and writes.
		{"like", "", "file that observe wrote: answer the open questions of the interface as that service did", fakeOption(readFile, fakeserver.Like)},
		{"replies", "", "file of scripted replies: the body of POST replies, or a list of them", storeIn(&o.Replies, readFile)},
		{"state", "", "file to load the state from, if it exists, and to save it to at the end; if two programs use it, the last one to end overwrites it", storeIn(&c.statePath, ownFile)},
		{"ready-file", "", "file for the printed lines, written once the program serves and not removed at the end", storeIn(&c.readyFile, ownFile)},
		// When the program ends without a signal, and what it prints.
		{"until-eof", "false", "end when standard input ends, for example because the process that started this one has died", storeIn(&c.untilEOF, boolean)},
		{"json", "false", "print one line of JSON instead of lines for a shell", storeIn(&c.json, boolean)},
		{"log", "auto", "a line for each call on standard error: " + strings.Join(logForms, ", ") + "; auto is text on a terminal and json elsewhere", storeIn(&c.log, logForm)},
	}
}

// commands are the words that may come before the flags; none serves.
var commands = []string{"version", "observe", "help"}

// variablePrefix begins the names of this program's variables. The command observe uses
// the client's variables.
const variablePrefix = "AGENT_MESSAGING_FAKE_"

// variable returns the name of the variable: AGENT_MESSAGING_FAKE_COLD_START for
// cold-start.
func (o *option) variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(o.name, "-", "_"))
}

// setting is a value, and for messages the flag or the variable that it comes from.
type setting struct{ from, value string }

// parse reads the command and the flags, and the environment for flags that are not
// given. It makes the fake, and opens no socket yet. Any error is a mistake of the user.
func parse(args, environ []string) (*config, error) {
	c := &config{}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if c.command, args = args[0], args[1:]; !slices.Contains(commands, c.command) {
			return nil, fmt.Errorf("there is no such command; the commands are %s", strings.Join(commands, ", "))
		}
	}
	settings := map[string]setting{} // by the names of the flags
	// The commands version, help and observe read none of these variables, so a wrong
	// variable does not keep a user from reading the help.
	if err := c.readFlags(args, settings); err != nil || c.command != "" {
		return c, err
	}
	if err := c.readVariables(environ, settings); err != nil {
		return nil, err
	}
	return c, c.openFake(settings)
}

// readFlags stores the given flags in settings. --help and --version become the command. If
// a flag is given twice, the second value counts.
func (c *config) readFlags(args []string, settings map[string]setting) error {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the returned error is the only message
	for _, o := range c.options() {
		take := func(value string) error { settings[o.name] = setting{"--" + o.name, value}; return nil }
		// A boolean flag needs no value: --json is --json=true.
		if o.defaultValue == "false" {
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
		return fmt.Errorf("%w; --help lists the flags", err)
	case *showVersion:
		c.command = "version"
	case flags.NArg() > 0:
		return fmt.Errorf("one argument too many; the commands are %s", strings.Join(commands, ", "))
	}
	return nil
}

// readVariables reads the variables of the flags that are not given. An empty variable counts
// as not set. An unknown variable with our prefix is refused, because somebody has probably
// mistyped it and believes that it has an effect.
func (c *config) readVariables(environ []string, settings map[string]setting) error {
	options := c.options()
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		// The environment has many variables of other programs.
		if !strings.HasPrefix(name, variablePrefix) {
			continue
		}
		i := slices.IndexFunc(options, func(o option) bool { return o.variable() == name })
		if i < 0 {
			return fmt.Errorf("%s: no flag has this variable; --help lists them", name)
		}
		// A flag overrides its variable, because the flag is more explicit.
		if _, given := settings[options[i].name]; !given && value != "" {
			settings[options[i].name] = setting{name, value}
		}
	}
	return nil
}

// openFake gives each option its setting, or else its default, and makes the fake.
// Package fakeserver checks many of the values, so that each bound is stated only once.
// Its errors are changed to name the flag or the variable.
func (c *config) openFake(settings map[string]setting) error {
	// The page shows texts, so the fake keeps them. Lines on standard error never show
	// texts.
	fakeOptions := []fakeserver.Option{fakeserver.WithMessageTexts()}
	for _, o := range c.options() {
		// A default is handled like a given value, so that it is checked too.
		given := cmp.Or(settings[o.name], setting{value: o.defaultValue})
		// An option without a given value and without a default changes nothing.
		if given == (setting{}) {
			continue
		}
		// It often comes from a variable of the shell that is not set.
		if given.value == "" {
			return fmt.Errorf("%s: must not be empty; leave it out instead", given.from)
		}
		opts, err := o.apply(given.value)
		if err != nil {
			return fmt.Errorf("%s: %w", given.from, err)
		}
		for _, opt := range opts {
			fakeOptions = append(fakeOptions, namingFlag(given.from, opt))
		}
	}
	// The printed lines would overwrite the state.
	if c.statePath != "" && atomicfile.Target(c.readyFile) == atomicfile.Target(c.statePath) {
		return fmt.Errorf("%s: must not be the file of --state", settings["ready-file"].from)
	}
	fake, err := fakeserver.Open(fakeOptions...)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "fakeserver: "))
	}
	c.control.Fake = fake
	return nil
}

// namingFlag returns an option of the fake whose error names the flag or the variable,
// and not the Go function. C is fakeserver's config, a type that this package cannot
// name.
func namingFlag[C any](from string, opt func(C) error) func(C) error {
	return func(c C) error {
		if err := opt(c); err != nil {
			// The part before the colon is the name of the Go function.
			_, reason, _ := strings.Cut(err.Error(), ": ")
			return fmt.Errorf("%s: %s", from, reason)
		}
		return nil
	}
}

// help prints each option with its variable and its default. Package flag would print
// neither the variables nor two dashes.
func help(out io.Writer) {
	_, _ = fmt.Fprint(out, "usage: agentmessaging-fake [version | observe | help] [flags]\n\n"+
		"The Agent Messaging Service in memory. Each flag can also be given in the environment.\n\n")
	for _, o := range new(config).options() {
		variable := o.variable()
		if o.defaultValue != "" {
			variable += ", default " + o.defaultValue
		}
		_, _ = fmt.Fprintf(out, "  --%-14s%s\n  %-16s%s\n", o.name, o.usage, "", variable)
	}
}

// storeIn stores the value that read returns in a field. It is for options of this
// program. The other options become options of the fake.
func storeIn[T any](field *T, read func(value string) (T, error)) func(string) ([]fakeserver.Option, error) {
	return func(value string) (_ []fakeserver.Option, err error) {
		*field, err = read(value)
		return nil, err
	}
}

// fakeOption passes the value that read returns to an option of the fake.
func fakeOption[T any](read func(value string) (T, error), option func(T) fakeserver.Option) func(string) ([]fakeserver.Option, error) {
	return func(value string) ([]fakeserver.Option, error) {
		v, err := read(value)
		return []fakeserver.Option{option(v)}, err
	}
}

// hostAndPort takes a host and a port. Without a host it means loopback, unless
// --allow-remote is given. Only after the program listens is it known whether a name is a
// loopback address.
func hostAndPort(value string) (string, error) {
	_, port, err := net.SplitHostPort(value)
	if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil {
		return "", errors.New("must be host and port, such as 127.0.0.1:8460 or [::1]:0, with a port up to 65535")
	}
	return value, nil
}

// text takes any text, because package fakeserver checks it.
func text[T ~string](value string) (T, error) { return T(value), nil }

// boolean takes the words of strconv.ParseBool: 1, t, true and the like.
func boolean(value string) (bool, error) {
	b, err := strconv.ParseBool(value)
	if err != nil {
		return false, errors.New("must be true or false")
	}
	return b, nil
}

// token takes a token that is too long to be guessed over a network, since the token
// gives access to every message. It must be visible ASCII, which a header holds
// unchanged.
func token(value string) (string, error) {
	isHidden := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(value) < 16 || len(value) > 256 || strings.ContainsFunc(value, isHidden) {
		return "", errors.New("must be 16 to 256 characters of visible ASCII")
	}
	return value, nil
}

// duration takes the durations that the control interface takes.
func duration(value string) (time.Duration, error) {
	return jsonapi.ParseDuration(value, jsonapi.MaxDuration)
}

// logForm takes one of logForms.
func logForm(value string) (string, error) {
	if !slices.Contains(logForms, value) {
		return "", fmt.Errorf("must be one of %s", strings.Join(logForms, ", "))
	}
	return value, nil
}

// readFile reads a file at once, so that a wrong path is refused before the program
// serves. Unlike other errors, its error repeats the value, because a path is not a
// secret. It also has the system's reason.
func readFile(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("must be a file that can be read: %w", err)
	}
	return content, nil
}

// parseLimits reads the limits of all keys. "off" turns them off, the name of a plan sets
// the plan's limits, and a list such as "key_minute=5,warmup_key_hour=1" changes some of
// them. A limit that is off has a maximum that no test reaches.
func parseLimits(text string) ([]fakeserver.Option, error) {
	plan := spec.PlanIndex(text)
	switch {
	case plan >= 0:
		return everyLimit(func(l spec.Limit) int { return l.Max[plan] }), nil
	case text == "off":
		return everyLimit(func(spec.Limit) int { return control.NoLimit }), nil
	}
	wanted := fmt.Errorf("must be off, one of %s, or calls in a window such as key_minute=5", spec.PlanNames())
	return optionsOf(text, wanted, func(name, value string) (fakeserver.Option, error) {
		calls, err := strconv.Atoi(value)
		if err != nil {
			return nil, wanted
		}
		return fakeserver.WithLimit(fakeserver.Limit(name), calls), nil
	})
}

// everyLimit sets each limit, so that the plans of keys do not matter. maxOf returns the
// maximum of a limit.
func everyLimit(maxOf func(spec.Limit) int) (opts []fakeserver.Option) {
	for _, l := range spec.Limits {
		opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(l.Key), maxOf(l)))
	}
	return opts
}

// parseDecisions reads answers to open questions of the interface, such as
// "windows=sliding,metadata_cap=8000". An answer that is not JSON is a text.
func parseDecisions(text string) ([]fakeserver.Option, error) {
	wanted := errors.New("must be questions with answers, such as windows=sliding,metadata_cap=8000")
	return optionsOf(text, wanted, func(name, value string) (fakeserver.Option, error) {
		// A text needs no quotes: windows=sliding works without them.
		if !json.Valid([]byte(value)) {
			return fakeserver.WithDecision(name, value), nil
		}
		return fakeserver.WithDecision(name, json.RawMessage(value)), nil
	})
}

// optionsOf makes an option of each pair of a list such as key_minute=5,key_day=100. It
// refuses anything else with the error wanted. A comma ends a value only before a name,
// because a value may be a JSON object. A name that appears twice is refused, because nobody
// could know which of its values counts.
func optionsOf(text string, wanted error, option func(name, value string) (fakeserver.Option, error)) (opts []fakeserver.Option, _ error) {
	names := map[string]bool{}
	for part := range strings.SplitSeq(regexp.MustCompile(`, *(\w+=)`).ReplaceAllString(text, "\n$1"), "\n") {
		name, value, given := strings.Cut(strings.TrimSpace(part), "=")
		if !given {
			return nil, wanted
		}
		opt, err := option(name, value)
		if err == nil && names[name] {
			err = errors.New("a name appears twice")
		}
		if err != nil {
			return nil, err
		}
		names[name] = true
		opts = append(opts, opt)
	}
	return opts, nil
}

// callLimit bounds the memory of the program: 60,000 calls with texts of 4 KB take about 600
// MB, and up to twice as much until Go collects its garbage.
func callLimit(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0, errors.New("must be an integer from 1 to 1000000")
	}
	return n, nil
}

// ownFile takes the path of a file to write. It checks now whether the file can be written,
// because at the end of the program it would be too late.
func ownFile(path string) (string, error) { return path, atomicfile.Writable(path) }
