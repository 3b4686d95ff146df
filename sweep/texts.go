package sweep

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// statementKind says how the application said something.
type statementKind int

const (
	said     statementKind = iota // nothing is wrong
	reported                      // with Env.Reports
	asserted                      // with a failed assertion, or a panic
	warned                        // in any other way; it counts unless the baseline says the same
)

// statement is a text of the application.
type statement struct {
	kind statementKind
	text string
	err  error // the error given to Env.Reports
}

// contains looks for a subject as whole words: "Order 10" is not about "Order 1".
func (t statement) contains(subject string) bool {
	const outside = `(?:^|$|[^\pL\pN])` // the end of a word
	return strings.Contains(t.text, subject) && regexp.MustCompile(outside+regexp.QuoteMeta(subject)+outside).MatchString(t.text)
}

// statementOf returns a line of a log or of the output as a statement. callErrors has the
// beginnings of calls' errors.
func statementOf(line string, callErrors map[string]bool) statement {
	t := statement{kind: said, text: strings.TrimSpace(line)}
	level, isRecord := strings.CutPrefix(line, "level=")
	if strings.HasPrefix(level, "WARN") || strings.HasPrefix(level, "ERROR") {
		t.kind = warned
	}
	for text := range callErrors {
		if !isRecord && strings.Contains(line, text) {
			t.kind = warned
		}
	}
	return t
}

// errorStart matches the beginning of a call's error, which stays the same if the
// application wraps, unwraps or shortens the error, or prints it with quotation marks.
var errorStart = regexp.MustCompile(`^agentmessaging: [^:]+`)

// volatile matches words that depend on the time of a statement: durations, times, and
// the numbers that the fake gives to agents and answers.
var volatile = regexp.MustCompile(`\b(?:(?:\d+(?:\.\d+)?(?:ns|µs|ms|s|m|h))+\b|` +
	`\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-][\d:]+)?)?|\d\d:\d\d(?::\d\d(?:\.\d+)?)?|(?:agent|trace)_\d+)`)

// word matches a word of a line, or a value of a record.
var word = regexp.MustCompile(`[^\s="',;()\[\]]+`)

// commonPattern returns the pattern of two lines: "*" for each word in which they differ,
// "#" if both have digits there. It returns "" if more than words differ. One of the
// lines may itself be a pattern.
func commonPattern(a, b string) string {
	others, i := word.FindAllString(b, -1), -1
	if word.ReplaceAllString(a, "*") != word.ReplaceAllString(b, "*") {
		return ""
	}
	const digits = "0123456789#"
	return word.ReplaceAllStringFunc(a, func(w string) string {
		i++
		switch {
		case w == others[i]:
			return w
		case strings.ContainsAny(w, digits) && strings.ContainsAny(others[i], digits):
			return "#"
		}
		return "*"
	})
}

// patterns are lines of the baseline with the words that vary even if nothing fails; see
// commonPattern.
type patterns []string

// normalized returns a line without the words that vary even if nothing fails, so that
// lines with the same meaning become equal.
func (p patterns) normalized(line string) string {
	line = volatile.ReplaceAllString(line, "#")
	for _, pattern := range p {
		if commonPattern(line, pattern) == pattern {
			line = pattern
		}
	}
	return line
}

// learn learns which words vary from two lists of statements that should say the same. If
// accept refuses the pattern of two lines, because it lost what tells lines apart, learn
// returns the two lines; otherwise nil.
func (p *patterns) learn(texts, others []statement, accept func(pattern string) bool) (differing []string) {
	for _, t := range texts {
		line := p.normalized(t.text)
		pattern := func(o statement) string { return commonPattern(line, p.normalized(o.text)) }
		if len(others) == 0 {
			break
		}
		other := slices.MaxFunc(others, func(x, y statement) int { return len(pattern(x)) - len(pattern(y)) })
		if !accept(pattern(other)) {
			differing = []string{line, other.text}
			continue // a later line may match another one better
		}
		*p = append(*p, pattern(other))
		others = slices.DeleteFunc(others, func(o statement) bool { return o.text == other.text })
	}
	return differing
}

// maxCounts counts statements by their keys. The count is from the list in which the
// statement comes most often.
func (p patterns) maxCounts(lists ...[]statement) map[string]int {
	maxCount := map[string]int{}
	for _, list := range lists {
		count := map[string]int{}
		for _, t := range list {
			key := p.key(t)
			count[key]++
			maxCount[key] = max(maxCount[key], count[key])
		}
	}
	return maxCount
}

// key returns a text that is the same for statements with the same meaning.
func (p patterns) key(t statement) string { return fmt.Sprint(t.kind, " ", p.normalized(t.text)) }
