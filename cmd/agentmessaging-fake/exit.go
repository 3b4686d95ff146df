package main

import (
	"fmt"
	"io"
	"runtime/debug"
)

// Exit statuses.
const (
	// exitOK: the program has served until a signal, or has carried out the command.
	exitOK = 0
	// exitFailed: the program could not start, or could not save the state. For observe: an
	// answer has changed.
	exitFailed = 1
	// exitUsage: a flag is wrong; nothing was started.
	exitUsage = 2
	// exitUnfinished is only for observe: it could not finish, or did not see an answer that
	// the baseline has.
	exitUnfinished = 3
)

// printError writes an error as one line, which says what is wrong and what is allowed. No
// error repeats the value of a flag, which may be a secret.
func printError(stderr io.Writer, err error) {
	_, _ = fmt.Fprintf(stderr, "agentmessaging-fake: %v\n", err)
}

// version returns the module version of this build, or devel for a build from a working
// copy.
func version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok || build.Main.Version == "" || build.Main.Version == "(devel)" {
		return "devel"
	}
	return build.Main.Version
}
