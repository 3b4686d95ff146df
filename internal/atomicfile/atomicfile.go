// Package atomicfile writes files that are there whole or not at all: a program that
// dies while it writes leaves the old content.
package atomicfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// target is the file that a path means. A link stays, and the file that it leads to
// is replaced.
func target(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// Writable returns why Write would refuse the path, before hours of work have made what
// there is to write.
func Writable(path string) error {
	temporary, err := nextTo(path)
	if err != nil {
		return err
	}
	_ = temporary.Close()
	return os.Remove(temporary.Name())
}

// nextTo makes a temporary file of mode 0600 that can replace the one that the path means:
// a file can be renamed over another one of the same file system only. A device or a
// folder must not be replaced by a file.
func nextTo(path string) (*os.File, error) {
	file := target(path)
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: must be a regular file, or not be there", path)
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".agentmessaging-*")
	if err != nil {
		return nil, fmt.Errorf("%s: must be in a folder that can be written to: %w", path, err)
	}
	return temporary, nil
}

// Write replaces or makes a file that nobody else can read.
func Write(path string, content []byte) error {
	temporary, err := nextTo(path)
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), target(path))
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}

// ReadJSON decodes the file into v. A file that is not there changes nothing.
func ReadJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	return err
}

// WriteJSON writes v as Write does, for people to read too.
func WriteJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return Write(path, append(text, '\n'))
}
