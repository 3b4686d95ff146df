package docs_test

import (
	"errors"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	quoted  = regexp.MustCompile("`[^`\n]*`")
	links   = regexp.MustCompile(`\]\(<?([^)\s>]+)>?\)|(?:href|src)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *#*$`)
	titled  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	public  = regexp.MustCompile(`^(mailto:|https://[\w-]+\.[\w.-]+(/|$))`)
	unnamed = regexp.MustCompile(`[^\pL\pN_-]`)
)

// TestLinks follows the relative links of every page, to headings too. Others are
// only public addresses: nothing is fetched.
func TestLinks(t *testing.T) {
	t.Chdir(root)
	assert.Error(t, problem(t, "README.md", "docs/fake.md#gone"))
	assert.Error(t, problem(t, "docs/fake.md", "README.md"))
	for _, page := range filesOf(t, ".md") {
		text := quoted.ReplaceAllString(fenced.ReplaceAllString(read(t, page), ""), "code")
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			assert.NoError(t, problem(t, page, m[1]+m[2]), "%s: %s", page, m[0])
		}
	}
}

// problem is what is wrong with a link of a page.
func problem(t *testing.T, page, link string) error {
	if public.MatchString(link) {
		return nil
	}
	file, fragment, _ := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = path.Join(path.Dir(page), file)
	}
	if _, err := os.Stat(target); err != nil {
		return err
	}
	if fragment != "" && strings.HasSuffix(target, ".md") && !slices.Contains(anchors(read(t, target)), fragment) {
		return errors.New("there is no such heading")
	}
	return nil
}

// anchors are the names that a forge gives to the headings of a page: small
// letters, digits, and hyphens for spaces.
func anchors(text string) (names []string) {
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		slug := strings.ToLower(titled.ReplaceAllString(m[1], "$1"))
		names = append(names, unnamed.ReplaceAllString(strings.ReplaceAll(slug, " ", "-"), ""))
	}
	return names
}
