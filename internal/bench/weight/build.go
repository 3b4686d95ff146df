package weight

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// module is the root of this module, seen from the package: programs are
// outside of it, and are built with what its go.mod requires.
const module = ".."

// built is a program that was built.
type built struct {
	bytes int64
	took  time.Duration
}

// build compiles the program in file, with all that cache lacks.
func build(file, cache string) (built, error) {
	binary := filepath.Join(filepath.Dir(file), "program")
	start := time.Now()
	_, err := goCommand([]string{"GOCACHE=" + cache},
		"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, file)
	took := time.Since(start)
	if err != nil {
		return built{}, err
	}
	stat, err := os.Stat(binary)
	if err != nil {
		return built{}, err
	}
	return built{bytes: stat.Size(), took: took}, nil
}

// contents are what a program is compiled of beyond the standard library.
type contents struct{ modules, packages int }

const ofPackage = `{{if not .Standard}}{{.ImportPath}} {{with .Module}}{{.Path}} {{.Main}}{{end}}{{end}}`

// list reads the contents of the program in file. It downloads what is
// missing, so that a build after it need not.
func list(file string) (contents, error) {
	out, err := goCommand(nil, "list", "-deps", "-f", ofPackage, file)
	if err != nil {
		return contents{}, err
	}
	return count(out), nil
}

// count leaves out the program and what this module has around a peer. A
// package in internal is a peer's own: what oapi-codegen generated is here.
func count(listed string) (c contents) {
	var modules []string
	for line := range strings.Lines(listed) {
		switch field := strings.Fields(line); {
		case len(field) < 3: // of the standard library, or the program
		case field[2] == "false":
			c.packages++
			modules = append(modules, field[1])
		case strings.Contains(field[0], "/internal/"):
			c.packages++
		}
	}
	slices.Sort(modules)
	c.modules = len(slices.Compact(modules))
	return c
}

// settings keep what a developer has set for the go command out of it. The
// flag is its default: an empty GOFLAGS would leave those of go env -w.
var settings = []string{"GOOS=linux", "GOARCH=amd64", "GOAMD64=v1", "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly"}

func goCommand(env []string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = module
	cmd.Env = slices.Concat(os.Environ(), settings, env)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.String())
	}
	return string(out), nil
}
