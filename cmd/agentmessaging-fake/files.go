package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/atomicfile"
)

// startupInfo has the values that the program prints when it starts to serve, and writes to
// --ready-file, where another program may wait for them. The tags are the names of the
// members with --json.
type startupInfo struct {
	BaseURL    string `json:"base_url"`
	APIKey     string `json:"api_key"`
	PageURL    string `json:"page_url"`
	ControlURL string `json:"control_url"`
	// Token is set if the program made a token. A token that the user chose is not repeated.
	Token   string `json:"token,omitempty"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
}

// text returns the values as lines for a shell, or as one line of JSON. A shell that
// sources the lines gets the client's variables. The page's address is a comment in them.
func (s startupInfo) text(asJSON bool) []byte {
	if asJSON {
		// The JSON is one line, so that a program can read up to the line feed and go on.
		encoded, _ := json.Marshal(s) // never fails for strings and a number
		return append(encoded, '\n')
	}
	lines := fmt.Sprintf("export AGENT_MESSAGING_BASE_URL=%s\nexport AGENT_MESSAGING_API_KEY=%s\n", quoteShell(s.BaseURL), quoteShell(s.APIKey))
	// This is the variable of --token, so that another start in this shell uses the same
	// token.
	if s.Token != "" {
		lines += fmt.Sprintf("export AGENT_MESSAGING_FAKE_TOKEN=%s\n", quoteShell(s.Token))
	}
	return []byte(lines + fmt.Sprintf("# page: %s\n", s.PageURL))
}

// plainWord matches a word that a shell reads unchanged.
var plainWord = regexp.MustCompile(`^[\w\-./:]+$`)

// quoteShell quotes a word for a shell, if it needs quotes.
func quoteShell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// announce prints the addresses of the program and writes the ready file, once the
// program serves. The file is written first, so that a script that has read standard
// output may rely on it. The program does not remove the file at its end, because another
// program may have written it by then. An error ends the program, since nobody would know
// its address.
func (p *program) announce(stdout io.Writer) error {
	text := p.startup.text(p.config.json)
	// The file is written whole or not at all, so that a script that waits for it never
	// reads a part.
	if path := p.config.readyFile; path != "" {
		if err := atomicfile.Write(path, text); err != nil {
			return fmt.Errorf("--ready-file: %w", err)
		}
	}
	_, err := stdout.Write(text)
	return err
}

// loadState reads the file of --state. Without a file, the state begins empty. A
// read-only file must not be replaced at the end, so loadState also opens the file for
// writing, and refuses a read-only file now. Two programs may use the same file; then the
// program that ends last saves its state.
func (p *program) loadState() error {
	path := p.config.statePath
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = p.control.StartFrom(file)
		_ = file.Close()
	}
	if err != nil {
		return fmt.Errorf("%s: %w; move it away to start with an empty state", path, err)
	}
	return nil
}

// saveState writes the state at the end, whole or not at all. If something fails, the
// file of an earlier run stays.
func (p *program) saveState() error {
	if p.config.statePath == "" {
		return nil
	}
	var b bytes.Buffer
	// The state is written to memory first, so that an error of the fake does not destroy
	// the old file.
	err := p.config.control.Fake.WriteState(&b)
	if err == nil {
		err = atomicfile.Write(p.config.statePath, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}
