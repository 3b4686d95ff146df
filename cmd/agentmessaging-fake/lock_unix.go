//go:build unix && !aix && !solaris

package main

import (
	"os"
	"syscall"
)

// lockFile makes a file whose lock ends with the program, however that ends: the system
// takes the lock away from a program that was killed. A lock of another program is
// errLocked. It does not wait.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, errLocked
	}
	return file, nil
}
