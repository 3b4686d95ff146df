package docs_test

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
)

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	quoted  = regexp.MustCompile("`[^`\n]*`")
	links   = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|(?m:^\[[^\]]+\]:\s+(\S+))|(?:href|src)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *#*$`)
	titled  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinks follows the relative links of every page, to headings too. Of others
// only the form is looked at: nothing is fetched.
func TestLinks(t *testing.T) {
	t.Chdir(root)
	assert.Equal(t, "there is no such heading", problem(t, "README.md", "docs/fake.md#gone"))
	assert.Equal(t, "there is no such file", problem(t, "docs/fake.md", "README.md"))
	assert.Equal(t, "is no public address", problem(t, "README.md", "https://localhost/"))
	found := 0
	for _, page := range filesOf(t, ".md") {
		text := quoted.ReplaceAllString(fenced.ReplaceAllString(read(t, page), ""), "code")
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			found++
			assert.Empty(t, problem(t, page, m[1]+m[2]+m[3]), "%s: %s", page, m[0])
		}
	}
	assert.Greater(t, found, 100)
}

// problem is what is wrong with a link of a page.
func problem(t *testing.T, page, link string) string {
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme == "mailto":
		return ""
	case u.Scheme != "" || u.Host != "":
		if u.Scheme != "https" || !strings.Contains(u.Hostname(), ".") || u.User != nil || u.Port() != "" {
			return "is no public address"
		}
		return ""
	case strings.HasPrefix(u.Path, "/"):
		return "begins with a slash"
	}
	target := page
	if u.Path != "" {
		target = path.Join(path.Dir(page), u.Path)
	}
	if _, err := os.Stat(target); err != nil {
		return "there is no such file"
	}
	if u.Fragment != "" && strings.HasSuffix(target, ".md") && !anchors(read(t, target))[u.Fragment] {
		return "there is no such heading"
	}
	return ""
}

// anchors are the names that a forge gives to the headings of a page: small
// letters, digits, hyphens for spaces, a number where one comes again.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, titled.ReplaceAllString(m[1], "$1"))
		name := slug
		for n := 1; found[name]; n++ {
			name = fmt.Sprintf("%s-%d", slug, n)
		}
		found[name] = true
	}
	return found
}
