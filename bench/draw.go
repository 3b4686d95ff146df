package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/agent-messaging-service/agentmessaging-go/bench/report"
)

// As seen from the folder of this command.
const (
	resultsFile = "results.txt"
	docs        = "../docs"
)

// draw prints the tables of results.txt, and writes them and the pictures into
// docs.
func draw(w io.Writer) error {
	results, err := load(resultsFile)
	if err != nil {
		return err
	}
	for _, t := range results.Tables() {
		if err := t.WriteText(w); err != nil {
			return err
		}
	}
	if unshown := results.Unshown(); len(unshown) > 0 {
		fmt.Fprintln(os.Stderr, "in no table:", unshown)
	}
	page := filepath.Join(docs, "performance.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	drawn, err := results.Page(string(text))
	if err != nil {
		return err
	}
	for name, svg := range results.Charts() {
		if err := os.WriteFile(filepath.Join(docs, name), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(page, []byte(drawn), 0o644)
}

func load(file string) (*report.Results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f, err := report.Parse(string(text))
	if err != nil {
		return nil, err
	}
	return report.Read(f)
}
