package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const rootModule = "github.com/agent-messaging-service/agentmessaging-go"

// files returns the slash-separated paths below root whose base name pick
// accepts, in order, without those of tools and of tests' inputs.
func files(root string, pick func(base string) bool) (found []string, err error) {
	skipped := []string{".git", "node_modules", "testdata", "dist"}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && slices.Contains(skipped, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !pick(entry.Name()):
			return nil
		}
		path, err = filepath.Rel(root, path)
		found = append(found, filepath.ToSlash(path))
		return err
	})
	return found, err
}

// modules returns the folders of the modules, "." first.
func modules(root string) ([]string, error) {
	found, err := files(root, func(name string) bool { return name == "go.mod" })
	for i := range found {
		found[i] = filepath.ToSlash(filepath.Dir(found[i]))
	}
	slices.Sort(found)
	return found, err
}

// goCommand runs go in dir. Workspaces are a developer's own, cgo would need
// the C compiler of the platform.
func goCommand(dir string, env []string, args ...string) (stdout []byte, err error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0"), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err = cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("in %s: go %s: %w\n%s", dir, strings.Join(args, " "), err, stderr.String())
	}
	return stdout, nil
}

// goList decodes what go list -json prints.
func goList[T any](dir string, env []string, args ...string) (found []T, err error) {
	out, err := goCommand(dir, env, append([]string{"list"}, args...)...)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one T
		if err := d.Decode(&one); err == io.EOF {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
}

// A requirement is one of a go.mod.
type requirement struct{ Path, Version string }

// ours says whether the repository holds the module.
func (r requirement) ours() bool {
	return r.Path == rootModule || strings.HasPrefix(r.Path, rootModule+"/")
}

func requirements(dir string) ([]requirement, error) {
	out, err := goCommand(dir, nil, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var mod struct{ Require []requirement }
	err = json.Unmarshal(out, &mod)
	return mod.Require, err
}
