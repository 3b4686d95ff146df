// Package report turns the raw output of the benchmarks into the tables, the
// targets and the pictures of docs/performance.md.
package report

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A File is bench/results.txt: the Go benchmark format, with a comment before
// the output of each binary in each round. benchstat passes over the comments;
// the round cannot be a key of the format, since benchstat would then compare
// within each round only.
type File struct {
	Header []Pair
	Blocks []Block
}

// A Pair is a line "key: value" of the format.
type Pair struct{ Key, Value string }

// A Block is what the binary of a suite printed in a round, from 1 on.
type Block struct {
	Suite  string
	Round  int
	Output string
}

const intro = `# What the command of this folder measured. benchstat reads this file, and
# "go run . -draw" draws the page and the pictures of docs from it.
`

// Header keys that say when a suite was measured begin with this.
const measured = "measured-"

// Measured is the header line that says when and how long a suite ran.
func Measured(suite, how string) Pair { return Pair{measured + suite, how} }

// Get is the value of a key of the header, or empty.
func (f *File) Get(key string) string {
	for _, p := range f.Header {
		if p.Key == key {
			return p.Value
		}
	}
	return ""
}

var roundsOf = regexp.MustCompile(`\b(\d+) rounds? of `)

// rounds is how often the header says that a suite ran, or 0.
func (f *File) rounds(suite string) int {
	m := roundsOf.FindStringSubmatch(f.Get(measured + suite))
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // digits; too many of them are no number that matters
	return n
}

// String is the file's text.
func (f *File) String() string {
	var b strings.Builder
	b.WriteString(intro)
	for _, p := range f.Header {
		fmt.Fprintf(&b, "%s: %s\n", p.Key, p.Value)
	}
	for _, block := range f.Blocks {
		fmt.Fprintf(&b, "\n# round %d of %s\n%s", block.Round, block.Suite, block.Output)
	}
	return b.String()
}

var blockMark = regexp.MustCompile(`(?m)^# round (\d+) of (\w+)\n`)

// Parse reads what String writes.
func Parse(text string) (*File, error) {
	f := &File{}
	marks := blockMark.FindAllStringSubmatchIndex(text, -1)
	end := len(text)
	for i := len(marks) - 1; i >= 0; i-- {
		m := marks[i]
		round, err := strconv.Atoi(text[m[2]:m[3]])
		if err != nil {
			return nil, err
		}
		output := strings.TrimSpace(text[m[1]:end]) + "\n"
		f.Blocks = append([]Block{{text[m[4]:m[5]], round, output}}, f.Blocks...)
		end = m[0]
	}
	f.Header = parseHeader(text[:end])
	return f, nil
}

func parseHeader(text string) []Pair {
	var pairs []Pair
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(strings.TrimSpace(line), ": ")
		if found && !strings.HasPrefix(line, "#") {
			pairs = append(pairs, Pair{key, value})
		}
	}
	return pairs
}

// Keep takes over from an older file what was measured of other suites.
func (f *File) Keep(old *File, suite func(string) bool) {
	var blocks []Block
	for _, b := range old.Blocks {
		if suite(b.Suite) {
			blocks = append(blocks, b)
		}
	}
	f.Blocks = append(blocks, f.Blocks...)
	for _, p := range old.Header {
		if name, found := strings.CutPrefix(p.Key, measured); found && suite(name) {
			f.Header = append(f.Header, p)
		}
	}
}

var (
	resultLine = regexp.MustCompile(`^Benchmark\S*\s+\d+\s`)
	configLine = regexp.MustCompile(`^(goos|goarch|pkg|cpu): `)
	noiseLine  = regexp.MustCompile(`^(PASS|ok\s.*|\s*)$`)
)

// Split parts what a test binary printed into the lines of the format that a
// Block keeps, the processor's name, and the rest: failures and remarks.
func Split(output []byte) (kept, cpu, rest string) {
	var lines, remarks strings.Builder
	for line := range bytes.Lines(output) {
		name, isCPU := bytes.CutPrefix(line, []byte("cpu: "))
		switch {
		case isCPU:
			cpu = string(bytes.TrimSpace(name))
		case resultLine.Match(line) || bytes.HasPrefix(line, []byte("pkg: ")):
			lines.Write(line)
		case configLine.Match(line) || noiseLine.Match(bytes.TrimRight(line, "\r\n")):
		default:
			remarks.Write(line)
		}
	}
	return lines.String(), cpu, remarks.String()
}
