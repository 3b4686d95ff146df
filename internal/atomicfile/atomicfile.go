// Package atomicfile writes files atomically: if the program dies during a write, the
// file keeps its old content.
package atomicfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Target returns the absolute path of the file that Write replaces. If path is a symbolic
// link, that is the file to which it leads.
func Target(path string) string {
	path, _ = filepath.Abs(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// Writable returns why Write would refuse the path. Call it before hours of work whose
// result Write will store there.
func Writable(path string) error {
	temporary, err := nextTo(path)
	if err != nil {
		return err
	}
	_ = temporary.Close()
	return os.Remove(temporary.Name())
}

// nextTo makes a temporary file of mode 0600 in the folder of the file that it will
// replace, because a rename works only within one file system. It refuses a path that exists
// and is not a regular file, such as a device or a folder.
func nextTo(path string) (*os.File, error) {
	file := Target(path)
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: must be a regular file, or not be there", path)
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".agentmessaging-*")
	if err != nil {
		return nil, fmt.Errorf("%s: must be in a folder that can be written to: %w", path, err)
	}
	return temporary, nil
}

// Write replaces or makes a file. Only its owner can read it (mode 0600).
func Write(path string, content []byte) error {
	temporary, err := nextTo(path)
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), Target(path))
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}

// ReadJSON decodes the file into v. If there is no file, it leaves v as it is.
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

// WriteJSON writes v as indented JSON; see Write.
func WriteJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return Write(path, append(text, '\n'))
}
