package control

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxQuoted bounds what a reason repeats of what was sent.
const maxQuoted = 64

func quoted(name string) string {
	if utf8.RuneCountInString(name) > maxQuoted {
		name = string([]rune(name)[:maxQuoted]) + "…"
	}
	return strconv.Quote(name)
}

func listed(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

func article(noun string) string {
	if strings.ContainsRune("aio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// list is never null in JSON.
func list[T any](all []T) []T { return append([]T{}, all...) }

func given[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}

// parsed is a duration that was checked, 0 where none was given.
func parsed(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

func numbered(kind string, n int) string { return fmt.Sprintf("%s_%06d", kind, n) }
