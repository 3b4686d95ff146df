package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agent-messaging-service/agentmessaging-go/internal/wholefile"
)

// load reads the state, where there is one. The file that it locks is beside the
// state, so a folder that cannot be written to shows now, and not at the end.
func (p *program) load() error {
	path := p.config.statePath
	if path == "" {
		return nil
	}
	if err := wholefile.Writable(path); err != nil {
		return err
	}
	path = wholefile.Target(path)
	var err error
	switch p.lock, err = lockFile(path + lockSuffix); {
	case errors.Is(err, errLocked):
		return fmt.Errorf("%s: %w", path, err)
	case err != nil:
		return fmt.Errorf("cannot be saved to: %w", err)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = p.control.ReadState(file)
		_ = file.Close()
	}
	if err != nil {
		return fmt.Errorf("%s: %w; move it away to begin anew", path, err)
	}
	return nil
}

// lockSuffix names the file beside the state that one program holds locked.
const lockSuffix = ".lock"

var errLocked = errors.New("another agentmessaging-fake uses this file; give each its own, or remove " +
	"the file beside it that ends in " + lockSuffix + " if that program is gone")

// unlock lets another program use the state. The file goes first: who opens it
// after that opens another one.
func (p *program) unlock() {
	if p.lock != nil {
		_ = os.Remove(p.lock.Name())
		_ = p.lock.Close()
	}
}

// save writes the state: at the end, and for POST save.
func (p *program) save() error {
	if p.config.statePath == "" {
		return nil
	}
	p.saving.Lock()
	defer p.saving.Unlock()
	var b bytes.Buffer
	if err := p.control.WriteState(&b); err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	if err := wholefile.Write(p.config.statePath, b.Bytes()); err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}
