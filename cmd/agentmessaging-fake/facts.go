package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/internal/wholefile"
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
		if err := wholefile.Write(path, p.facts.text(p.config.json)); err != nil {
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
		_ = os.Remove(wholefile.Target(p.config.readyFile))
	}
}
