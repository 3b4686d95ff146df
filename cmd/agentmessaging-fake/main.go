// Agentmessaging-fake is the Agent Messaging Service in memory as a program:
// for applications in any language, without account and cost, with an interface
// to control it (/_fake/v1/openapi.yaml) and a page that shows what an
// application really sent.
//
//	agentmessaging-fake [flags]          serve
//	agentmessaging-fake version          print the version
//	agentmessaging-fake help             list the flags
//	agentmessaging-fake observe [flags]  how a service answers what the interface leaves open
//
// What it prints on standard output, and writes to --ready-file once it serves,
// are lines for a shell:
//
//	rm -f ready
//	agentmessaging-fake --ready-file ready &
//	until [ -f ready ]; do sleep 0.1; done; . ./ready
//
// Each flag can be given in the environment: --cold-start is
// AGENT_MESSAGING_FAKE_COLD_START. --help lists them.
//
// parse reads flags and environment and makes the fake; serve listens, and gives each
// request by its path to the service, to the control interface (internal/control) or to
// the page (internal/page). A signal ends it: calls under way are answered, and the
// state is saved. What the service does is in package fakeserver, what observe finds
// out in package observe.
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

// sameSignal is how long further signals count as the first. timeout, npm and others send
// one to the program and once more to its process group.
const sameSignal = 500 * time.Millisecond

func main() { os.Exit(runUntilSignal(sameSignal)) }

// runUntilSignal runs the program with the process around it, and returns the exit status.
// The first signal ends ctx, and with it serving; same is how long further ones count as
// the first. A SIGHUP saves the state as a SIGTERM does: it comes when the terminal is
// closed.
func runUntilSignal(same time.Duration) int {
	// A log whose reader is gone, as after "2>&1 | head", must cost neither calls nor the
	// state: without this, Go ends the program at its next line.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// The first signal drains. Once stop has taken the handler away, another one ends.
	context.AfterFunc(ctx, func() { time.AfterFunc(same, stop) })
	return run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
}

// run runs the program without the process around it, so that a test can run it: environ
// holds "NAME=value", and the result is the exit status.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "observe" {
		return runObserve(ctx, args[1:], environ, stdout, stderr)
	}
	c, err := parse(args, environ)
	if err != nil {
		complain(stderr, err)
		return exitUsage
	}
	switch c.command {
	case "help":
		help(stdout)
	case "version":
		_, _ = fmt.Fprintln(stdout, "agentmessaging-fake", version())
	default:
		return serve(ctx, c, stdout, stderr)
	}
	return exitOK
}
