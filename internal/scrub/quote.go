package scrub

import (
	"bytes"
	"fmt"
	"strings"
)

// What proxies say in bodies that are no JSON. They echo requests too: only words
// that look like none are quoted, behind a comma.

// Title quotes the title of an HTML page.
func Title(page []byte) string {
	_, rest, _ := strings.Cut(string(page), "<title>")
	title, _, _ := strings.Cut(rest, "</title>")
	return quoted(title)
}

// Plain quotes a body without a sign of JSON or HTML in it.
func Plain(body []byte) string {
	if bytes.ContainsAny(body, "{}[]<>\"") {
		return ""
	}
	return quoted(string(body))
}

const maxQuoted = 120

// quoted does not cut long words, which could leave half a secret that nobody finds.
func quoted(words string) string {
	words = strings.TrimSpace(words)
	if words == "" || len(words) > maxQuoted {
		return ""
	}
	return fmt.Sprintf(", %q", words)
}
