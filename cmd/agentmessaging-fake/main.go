// Agentmessaging-fake runs the Agent Messaging Service in memory as a program, for applications
// in any language, without account and cost. It has a control interface, which
// /_fake/v1/openapi.yaml describes, and a page that shows the requests that an application
// really sent.
//
//	agentmessaging-fake [flags]          serve
//	agentmessaging-fake version          print the version
//	agentmessaging-fake help             list the flags
//	agentmessaging-fake observe [flags]  find out how a service answers what the interface leaves open
//
// Once it serves, it prints lines for a shell on standard output, and writes them to
// --ready-file:
//
//	rm -f ready
//	agentmessaging-fake --ready-file ready &
//	until [ -f ready ]; do sleep 0.1; done; . ./ready
//
// Each flag can be given in the environment: --cold-start is
// AGENT_MESSAGING_FAKE_COLD_START. --help lists them.
//
// parse reads flags and environment and makes the fake. serve listens, and passes each
// request by its path to the service, to the control interface (internal/control) or to
// the page (internal/page). After a signal, serve answers the calls under way and saves
// the state. Package fakeserver implements the service, package observe the command
// observe.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// signalDebounce is how long further signals count as the first one, because timeout, npm
// and others send a signal to the program and again to its process group.
const signalDebounce = 500 * time.Millisecond

func main() { os.Exit(runUntilSignal(signalDebounce)) }

// runUntilSignal runs the program with the signals, arguments and files of the process, and
// returns the exit status. The first signal ends serving. debounce is how long further
// signals count as the first. A SIGHUP, which comes when the terminal is closed, saves the
// state as a SIGTERM does. Under nohup it stays ignored.
func runUntilSignal(debounce time.Duration) int {
	// If the reader of the log is gone, as after "2>&1 | head", Go would end the program at
	// the next line of the log. Ignoring SIGPIPE keeps the calls and the state.
	signal.Ignore(syscall.SIGPIPE)
	ending := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ending = append(ending, syscall.SIGHUP)
	}
	return run(func() context.Context {
		ctx, stop := signal.NotifyContext(context.Background(), ending...)
		// The first signal lets the program drain. After stop has removed the handler, another
		// signal ends the program at once.
		context.AfterFunc(ctx, func() { time.AfterFunc(debounce, stop) })
		return ctx
	}, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
}

// run runs the program without using the process, so that a test can call it. untilSignal
// begins to wait for signals. run calls it after it has read the flags and their files. Until
// then a signal ends the program at once, since reading may never end: a file may be a pipe
// without a writer. environ holds "NAME=value", and the result is the exit status.
func run(untilSignal func() context.Context, args, environ []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "observe" {
		return runObserve(untilSignal(), args[1:], environ, stdout, stderr)
	}
	c, err := parse(args, environ)
	if err != nil {
		printError(stderr, err)
		return exitUsage
	}
	switch c.command {
	case "help":
		help(stdout)
	case "version":
		_, _ = fmt.Fprintln(stdout, "agentmessaging-fake", version())
	default:
		return serve(untilSignal(), c, stdout, stderr)
	}
	return exitOK
}
