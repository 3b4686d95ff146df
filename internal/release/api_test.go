package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const library = `// Package library is listed.
package library

import "strings"

// Conn has a comment.
type Conn struct {
	*strings.Builder
	// Name has one too.
	Name   string ` + "`json:\"name\"`" + `

	hidden int
}

func (c *Conn) Dial(addr string) {}
func (c *Conn) private()         {}
func (h hidden) Close() error    { return nil }

func Map[T any](in []T) (out []T) { return in }

type (
	hidden int
	Doer   interface{ Do(req *strings.Reader) error }
)

const (
	KindA Kind = "a"
	kindB Kind = "b"
)

var ErrOne, errTwo error
`

// TestAPIListing: what users see of a package is listed, and nothing else.
func TestAPIListing(t *testing.T) {
	root := newRoot(t, map[string]string{
		"go.mod":                        "module " + rootModule + "\n\ngo 1.25.0\n",
		"library/library.go":            library,
		"library/internal/h/h.go":       "package h\n\nconst X = 1\n",
		"internal/hidden/h.go":          "package hidden\n\nconst X = 1\n",
		"examples/shown/main.go":        "package main\n\nfunc main() {}\n",
		"nested/go.mod":                 "module " + rootModule + "/nested\n\ngo 1.25.0\n",
		"nested/nested.go":              "package nested\n\nfunc F() {}\n",
		"nested/nested_windows.go":      "package nested\n\nfunc G() {}\n",
		apiFolder + "/of-yesterday.txt": "func F()\n",
	})
	listAPI(root)
	listings, err := filepath.Glob(filepath.Join(root, apiFolder, "*"))
	require.NoError(t, err)
	var got strings.Builder
	for _, file := range listings {
		got.WriteString("-- " + filepath.Base(file) + "\n" + read("", file))
	}
	assert.Equal(t, strings.Split(`-- library.txt
const KindA Kind = "a"
func (c *Conn) Dial(addr string)
func Map[T any](in []T) (out []T)
type Conn struct {
    *strings.Builder
    Name string `+"`json:\"name\"`"+`
    // contains filtered or unexported fields
}
type Doer interface {
    Do(req *strings.Reader) error
}
var ErrOne error
-- nested.txt
func F()
`, "\n"), strings.Split(got.String(), "\n"))
}
