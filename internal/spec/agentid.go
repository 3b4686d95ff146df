package spec

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a proxy may read as a slash, and the path segments that it may read as . or ..: some
// proxies decode escapes twice, drop what follows a semicolon, or trim spaces.
var (
	Slash      = regexp.MustCompile(`(?i)[/\\]|%(25)*(2f|5c)`)
	DotSegment = regexp.MustCompile(`(?i)^(\s|%(25)*20)*(\.|%(25)*2e){1,2}(\s|%(25)*20)*((;|\?|#|%(25)*(3b|3f|23))(?s:.*))?$`)
)

// AgentIDFlaw says why an id could lead to another path behind some proxies; "" if it could
// not.
func AgentIDFlaw(id string) string {
	switch {
	case strings.ContainsAny(id, ".%") && DotSegment.MatchString(id): // most ids skip the slow match
		return "must not be a dot segment, escaped or with ; after it"
	case strings.ContainsAny(id, `/\%`) && Slash.MatchString(id):
		return "must not contain a slash, escaped or not"
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		return "must not contain control characters or invalid UTF-8"
	}
	return ""
}
