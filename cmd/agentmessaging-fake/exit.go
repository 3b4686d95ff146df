package main

import (
	"fmt"
	"io"
	"runtime/debug"
)

// Exit statuses.
const (
	// exitOK: it has served until a signal, or done what the command says.
	exitOK = 0
	// exitFailed: it could not start, or not save the state. Of observe: an answer has
	// changed.
	exitFailed = 1
	// exitUsage: a flag is wrong; nothing was started.
	exitUsage = 2
	// exitUnfinished is of observe alone: it could not finish, or did not see an answer
	// that the baseline has.
	exitUnfinished = 3
)

// complain writes one line: what is wrong, and what is allowed. It never repeats the
// value of a flag, which may be a secret.
func complain(stderr io.Writer, err error) {
	_, _ = fmt.Fprintf(stderr, "agentmessaging-fake: %v\n", err)
}

// version returns the version of the module that was built, or devel for a build from a
// working copy.
func version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok || build.Main.Version == "" || build.Main.Version == "(devel)" {
		return "devel"
	}
	return build.Main.Version
}
