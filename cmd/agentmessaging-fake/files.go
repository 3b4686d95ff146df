package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// target is the file that a path means: behind links, if it is one.
func target(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// writable reports why a path is no place for a file of the program's.
func writable(path string) error {
	info, err := os.Lstat(target(path))
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: must be a regular file, or not be there", path)
	}
	return nil
}

// writeFile writes a file that is there whole or not at all, and that nobody
// else can read.
func writeFile(path string, content []byte) error {
	if err := writable(path); err != nil {
		return err
	}
	path = target(path)
	temporary, err := os.CreateTemp(filepath.Dir(path), ".agentmessaging-fake-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}
