// Command release holds the repository to its release habits: each check
// prints what is wrong and exits with status 1. It needs the standard library
// and the go command only, so that it adds nothing to go.mod.
//
//	go run ./internal/release CHECK
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// A check looks at the repository below root and returns what is wrong with
// it, one line or paragraph each.
type check struct {
	name, about string
	run         func(root string) (wrong []string)
}

var checks = []check{
	{"api", "writes what the public packages export into internal/release/api", listAPI},
	{"size", "what the client adds to a program: modules and bytes", checkSize},
	{"licences", "dependencies have known licences and stand in NOTICE", checkLicences},
	{"links", "links of the Markdown files lead somewhere", checkLinks},
}

func main() {
	if len(os.Args) != 2 {
		usage()
	}
	at := slices.IndexFunc(checks, func(c check) bool { return c.name == os.Args[1] })
	if at < 0 {
		usage()
	}
	defer func() {
		if err := recover(); err != nil {
			fmt.Fprintln(os.Stderr, "release:", err)
			os.Exit(1)
		}
	}()
	if wrong := checks[at].run("."); len(wrong) > 0 {
		fmt.Fprintln(os.Stderr, strings.Join(wrong, "\n"))
		os.Exit(1)
	}
}

// must ends the program where a check cannot be made; main recovers.
func must[T any](v T, err error) T {
	try(err)
	return v
}

func try(err error) {
	if err != nil {
		panic(err)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: go run ./internal/release CHECK, in the root of the repository; the checks:")
	for _, c := range checks {
		fmt.Fprintf(os.Stderr, "  %-13s %s\n", c.name, c.about)
	}
	os.Exit(2)
}
