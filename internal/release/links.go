package main

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	quoted  = regexp.MustCompile("`[^`\n]*`")
	targets = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|(?m:^\[[^\]]+\]:\s+(\S+))|(?:href|src)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *#*$`)
	anchor  = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
)

// checkLinks follows the relative links of every Markdown file, to headings
// too. Of others only the form is looked at: nothing is fetched.
func checkLinks(root string) (wrong []string) {
	for _, page := range files(root, func(name string) bool { return strings.HasSuffix(name, ".md") }) {
		for _, link := range links(read(root, page)) {
			if problem := checkLink(root, page, link); problem != "" {
				wrong = append(wrong, fmt.Sprintf("%s: %s: %s", page, link, problem))
			}
		}
	}
	return wrong
}

// links are those outside of code.
func links(text string) (found []string) {
	text = quoted.ReplaceAllString(fenced.ReplaceAllString(text, ""), "code")
	for _, m := range targets.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1]+m[2]+m[3])
	}
	return found
}

func checkLink(root, page, link string) (problem string) {
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme == "mailto":
		return ""
	case u.Scheme != "" || u.Host != "":
		return checkForm(u)
	case strings.HasPrefix(u.Path, "/"):
		return "begins with a slash"
	}
	target := page
	if u.Path != "" {
		target = path.Join(path.Dir(page), u.Path)
	}
	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		return "there is no such file"
	}
	if u.Fragment != "" && strings.HasSuffix(target, ".md") && !anchors(read(root, target))[u.Fragment] {
		return "there is no such heading"
	}
	return ""
}

func checkForm(u *url.URL) (problem string) {
	switch {
	case u.Scheme != "https":
		return "is not https"
	case !strings.Contains(u.Hostname(), ".") || u.User != nil || u.Port() != "":
		return "is no public address"
	}
	return ""
}

// anchors are the names that a forge gives to the headings of a page: small
// letters, digits, hyphens for spaces, a number where one comes again.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	text = fenced.ReplaceAllString(text, "")
	for _, m := range anchor.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, title)
		name := slug
		for n := 1; found[name]; n++ {
			name = fmt.Sprintf("%s-%d", slug, n)
		}
		found[name] = true
	}
	return found
}
