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

// facts are what the program prints when it serves, and writes to the file of
// --ready-file. With --json these are the names of the members, and a program may
// wait for the file and read it.
type facts struct {
	BaseURL    string `json:"base_url"`
	APIKey     string `json:"api_key"`
	PageURL    string `json:"page_url"`
	ControlURL string `json:"control_url"`
	// Token is set if the program made one. A token that the user chose is not repeated.
	Token   string `json:"token,omitempty"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
}

// text returns the facts as lines for a shell, or as one line of JSON. A shell that
// sources the lines has the environment of the client; the page's address is a comment to
// it.
func (f facts) text(asJSON bool) []byte {
	if asJSON {
		// One line, so that a program can read up to the line feed and go on.
		encoded, _ := json.Marshal(f) // strings and a number can always be
		return append(encoded, '\n')
	}
	lines := fmt.Sprintf("export AGENT_MESSAGING_BASE_URL=%s\nexport AGENT_MESSAGING_API_KEY=%s\n", quoteShell(f.BaseURL), quoteShell(f.APIKey))
	// This is the variable of --token, so another start in this shell takes the same
	// token.
	if f.Token != "" {
		lines += fmt.Sprintf("export AGENT_MESSAGING_FAKE_TOKEN=%s\n", quoteShell(f.Token))
	}
	return []byte(lines + fmt.Sprintf("# page: %s\n", f.PageURL))
}

// plainWord is a word that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[\w\-./:]+$`)

// quoteShell quotes a word for a shell, where it needs it.
func quoteShell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// announce says where the program is, once it serves. The ready file comes first: a
// script that has read standard output may count on it. The file stays when the program
// ends: by then another one may have written it. An error ends the program, since nobody
// would know where it is.
func (p *program) announce(stdout io.Writer) error {
	text := p.facts.text(p.config.json)
	// The file is written whole or not at all, so a script that waits for it never reads
	// a part.
	if path := p.config.readyFile; path != "" {
		if err := atomicfile.Write(path, text); err != nil {
			return fmt.Errorf("--ready-file: %w", err)
		}
	}
	_, err := stdout.Write(text)
	return err
}

// loadState reads the state, where there is one. A state that somebody has made
// read-only must not be replaced at the end, so it is opened for writing too and refused
// now. Where there is no file, the state begins empty. Nothing keeps two programs from
// one file: the one that ends last has saved.
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
		return fmt.Errorf("%s: %w; move it away to begin anew", path, err)
	}
	return nil
}

// saveState writes the state at the end, whole or not at all: the file of an earlier
// run stays if something fails.
func (p *program) saveState() error {
	if p.config.statePath == "" {
		return nil
	}
	var b bytes.Buffer
	// In memory first: an error of the fake must not cost the file of before.
	err := p.config.control.Fake.WriteState(&b)
	if err == nil {
		err = atomicfile.Write(p.config.statePath, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}
