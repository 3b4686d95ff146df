//go:build !unix || aix || solaris

package main

import (
	"errors"
	"io/fs"
	"os"
)

// lockFile makes a file that must not be there, where the system has no flock. A
// program that was killed leaves it: its user removes it, as errLocked says.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, errLocked
	}
	return file, err
}
