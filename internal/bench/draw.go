package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/report"
)

// As seen from the folder of this command.
const (
	resultsFile = "results.txt"
	docs        = "../../docs"
)

// draw prints the tables of results.txt, and writes them and the pictures into
// docs.
func draw(w io.Writer) error {
	results, err := load(resultsFile)
	if err != nil {
		return err
	}
	if err := printTables(w, results, results.Tables()); err != nil {
		return err
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

// show prints the tables of what was measured, and reads and writes nothing.
func show(w io.Writer, file *report.File) error {
	results, err := report.Read(file)
	if err != nil {
		return err
	}
	return printTables(w, results, results.Measured())
}

func printTables(w io.Writer, results *report.Results, tables []*report.Table) error {
	for _, t := range tables {
		if err := t.WriteText(w); err != nil {
			return err
		}
	}
	if unshown := results.Unshown(); len(unshown) > 0 {
		fmt.Fprintln(os.Stderr, "in no table:", unshown)
	}
	return nil
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
