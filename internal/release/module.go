package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const rootModule = "github.com/agent-messaging-service/agentmessaging-go"

// files returns the slash-separated paths below root whose base name pick
// accepts, in order, without those of tools and of tests' inputs.
func files(root string, pick func(base string) bool) (found []string) {
	skipped := []string{".git", "node_modules", "testdata", "dist"}
	try(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && slices.Contains(skipped, entry.Name()):
			return filepath.SkipDir
		case !entry.IsDir() && pick(entry.Name()):
			found = append(found, filepath.ToSlash(must(filepath.Rel(root, path))))
		}
		return nil
	}))
	return found
}

// modules returns the folders of the modules, "." first.
func modules(root string) []string {
	found := files(root, func(name string) bool { return name == "go.mod" })
	for i := range found {
		found[i] = path.Dir(found[i])
	}
	slices.Sort(found)
	return found
}

func read(root, file string) string { return string(must(os.ReadFile(filepath.Join(root, file)))) }

// goCommand runs go in dir. Workspaces are a developer's own, cgo would need
// the C compiler of the platform.
func goCommand(dir string, env []string, args ...string) (stdout []byte) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0"), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		panic(fmt.Errorf("in %s: go %s: %w\n%s", dir, strings.Join(args, " "), err, stderr.String()))
	}
	return stdout
}

// A requirement is one of a go.mod.
type requirement struct{ Path, Version string }

// requirements are those of other modules than this repository's.
func requirements(dir string) []requirement {
	var mod struct{ Require []requirement }
	try(json.Unmarshal(goCommand(dir, nil, "mod", "edit", "-json"), &mod))
	return slices.DeleteFunc(mod.Require, func(r requirement) bool {
		return r.Path == rootModule || strings.HasPrefix(r.Path, rootModule+"/")
	})
}
