package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

// facts are what the program says when it serves.
type facts struct {
	BaseURL    string `json:"base_url"`
	APIKey     string `json:"api_key"`
	PageURL    string `json:"page_url"`
	ControlURL string `json:"control_url"`
	Token      string `json:"token,omitempty"` // where it was made here
	Version    string `json:"version"`
	PID        int    `json:"pid"`
}

func newFacts(o *control.Options, key, token string) facts {
	return facts{
		BaseURL: o.BaseURL, APIKey: key, PageURL: o.BaseURL + "/", ControlURL: o.BaseURL + "/_fake/v1",
		Token: token, Version: o.Version, PID: os.Getpid(),
	}
}

// text is the facts as lines for a shell, or as one line of JSON.
func (f facts) text(asJSON bool) []byte {
	if asJSON {
		encoded, _ := json.Marshal(f) // strings and a number can always be
		return append(encoded, '\n')
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "export AGENT_MESSAGING_BASE_URL=%s\n", quote(f.BaseURL))
	fmt.Fprintf(&b, "export AGENT_MESSAGING_API_KEY=%s\n", quote(f.APIKey))
	if f.Token != "" {
		fmt.Fprintf(&b, "export AGENT_MESSAGING_FAKE_TOKEN=%s\n", quote(f.Token))
	}
	fmt.Fprintf(&b, "# page: %s\n", f.PageURL)
	return b.Bytes()
}

// quote quotes a word for a shell, where it needs it.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:", r)
	}
	if strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// announce says where the program is, once it serves.
func (p *program) announce(stdout io.Writer) error {
	if path := p.config.readyFile; path != "" {
		if err := writeFile(path, p.facts.text(p.config.json)); err != nil {
			return fmt.Errorf("--ready-file: %w", err)
		}
		p.ready, _ = os.Stat(path)
	}
	_, err := stdout.Write(p.facts.text(p.config.json))
	return err
}

// withdraw removes the ready file, so that no one takes the program for
// running. What has taken its place is somebody else's.
func (p *program) withdraw() {
	if p.ready == nil {
		return
	}
	if now, err := os.Stat(p.config.readyFile); err == nil && os.SameFile(now, p.ready) {
		_ = os.Remove(target(p.config.readyFile))
	}
}

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

// load reads the state, where there is one. The file that it locks is beside the
// state, so a folder that cannot be written to shows now, and not at the end.
func (p *program) load() error {
	path := p.config.statePath
	if path == "" {
		return nil
	}
	if err := writable(path); err != nil {
		return err
	}
	path = target(path)
	var err error
	switch p.lock, err = lockFile(path + lockSuffix); {
	case errors.Is(err, errLocked):
		return fmt.Errorf("%s: %w", path, err)
	case err != nil:
		return fmt.Errorf("cannot be saved to: %w", err)
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = p.control.ReadState(raw)
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
	if err := writeFile(p.config.statePath, b.Bytes()); err != nil {
		return fmt.Errorf("--state: %w", err)
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
