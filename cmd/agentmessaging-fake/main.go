// Agentmessaging-fake is the Agent Messaging Service in memory as a program:
// for applications in any language, without account and cost, with an interface
// to control it (/_fake/v1/openapi.yaml) and a page that shows what an
// application really sent.
//
//	agentmessaging-fake [flags]           serve
//	agentmessaging-fake version           print the version
//	agentmessaging-fake healthz [--addr]  exit status 0 where a fake is running there
//	agentmessaging-fake readyz [--addr]   exit status 0 where it is not about to end
//	agentmessaging-fake observe [flags]   how a service answers what the interface leaves open
//
// What it prints on standard output, and writes to --ready-file once it serves,
// are lines for a shell:
//
//	agentmessaging-fake --ready-file ready &
//	. ./ready
//
// Each flag can be given in the environment: --cold-start is
// AGENT_MESSAGING_FAKE_COLD_START. --help lists them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // a flag is wrong; nothing was started
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// The first signal drains; with the handler gone, the second one ends.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run is the program without the process around it. environ holds "NAME=value".
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "observe" {
		return runObserve(ctx, args[1:], lookUp(environ), stdout, stderr)
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
	case "healthz", "readyz":
		err = ask(ctx, c)
	default:
		return serve(ctx, c, stdout, stderr)
	}
	if err != nil {
		complain(stderr, err)
		return exitFailed
	}
	return exitOK
}

// lookUp finds variables as os.Getenv does.
func lookUp(environ []string) func(name string) string {
	return func(name string) string {
		for _, variable := range environ {
			if value, is := strings.CutPrefix(variable, name+"="); is {
				return value
			}
		}
		return ""
	}
}

func complain(stderr io.Writer, err error) {
	_, _ = fmt.Fprintf(stderr, "agentmessaging-fake: %v\n", err)
}

// version is the version of the module that was built, or devel.
func version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok || build.Main.Version == "" || build.Main.Version == "(devel)" {
		return "devel"
	}
	return build.Main.Version
}

// ask calls /healthz or /readyz of a program that serves, for containers,
// whose images often hold no other client.
func ask(ctx context.Context, c *config) error {
	if strings.HasSuffix(c.addr, ":0") {
		return errors.New("--addr: must have the port of the program that is asked")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, baseURL(c.addr)+"/"+c.command, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true} // and no proxy of the environment
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("%s: %w", c.command, err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: the answer is %s", c.command, resp.Status)
	}
	return nil
}
