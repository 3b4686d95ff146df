package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const library = `package library

import "strings"

type Conn struct {
	*strings.Builder
	Name   string ` + "`json:\"name\"`" + `
	hidden int
}

func (c Conn) Close() error        { return nil }
func (c *Conn) Dial(addr string)   {}
func (c *Conn) private()           {}
func Map[T any](in []T) (out []T)  { return in }
func New(name string, n ...int) *Conn { return nil }

type Doer interface{ Do(req *strings.Reader) (resp *strings.Reader) }
type Kind string

const KindA Kind = "a"

var ErrOne error
`

func newLibrary(t *testing.T, source string) (root string) {
	t.Helper()
	return newRoot(t, map[string]string{
		"go.mod":                 "module " + rootModule + "\n\ngo 1.25.0\n",
		"library/library.go":     source,
		"internal/hidden/h.go":   "package hidden\n\nconst X = 1\n",
		"examples/shown/main.go": "package main\n\nfunc main() {}\n",
	})
}

func TestAPIListing(t *testing.T) {
	root := newLibrary(t, library)
	_, err := checkAPI(root, true)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, apiFolder, "library.txt"))
	require.NoError(t, err)
	assert.Equal(t, strings.Split(`const KindA Kind = "a"
func Map[T any](in []T) (out []T)
func New(string, ...int) *Conn
method (*Conn) Dial(string)
method (Conn) Close() error
type Conn struct
type Conn struct, Name string `+"`json:\"name\"`"+`
type Conn struct, comparable
type Conn struct, embedded *strings.Builder
type Conn struct, unexported fields
type Doer interface{Do(*strings.Reader) *strings.Reader}
type Kind string
var ErrOne error
`, "\n"), strings.Split(string(text), "\n"))
	found, err := files(filepath.Join(root, apiFolder), func(string) bool { return true })
	require.NoError(t, err)
	assert.Equal(t, []string{"library.txt"}, found)

	wrong, err := checkAPI(root, false)
	require.NoError(t, err)
	assert.Empty(t, wrong)
}

// TestAPIChange: what breaks a user is listed as such, what does not as added,
// what no user sees not at all.
func TestAPIChange(t *testing.T) {
	for _, change := range []struct{ from, to, removed, added string }{
		{"addr string", "address string", "", ""},
		{"hidden int", "hidden bool", "", ""},
		{"private()", "secret()", "", ""},
		{"func New(name string", "func New(name any", "- func New(string, ...int) *Conn", "+ func New(any, ...int) *Conn"},
		{"(c Conn) Close", "(c *Conn) Close", "- method (Conn) Close() error", "+ method (*Conn) Close() error"},
		{"hidden int", "hidden []int", "- type Conn struct, comparable", ""},
		{`json:"name"`, `json:"nom"`, "- type Conn struct, Name", "+ type Conn struct, Name"},
		{`Kind = "a"`, `Kind = "b"`, `- const KindA Kind = "a"`, `+ const KindA Kind = "b"`},
		{"interface{ ", "interface{ Stop(); ", "- type Doer interface{", "+ type Doer interface{"},
		{"type Kind string", "type Kind string\ntype More int", "", "+ type More int"},
		{"package library", "package main", "- type Kind string", ""},
	} {
		root := newLibrary(t, library)
		_, err := checkAPI(root, true)
		require.NoError(t, err)
		source := strings.Replace(library, change.from, change.to, 1)
		require.NotEqual(t, library, source)
		file := filepath.Join(root, "library", "library.go")
		require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
		wrong, err := checkAPI(root, false)
		require.NoError(t, err)
		got := strings.Join(wrong, "\n")
		assert.Contains(t, got, change.removed)
		assert.Contains(t, got, change.added)
		assert.Equal(t, change.removed != "", strings.Contains(got, "incompatible"), got)
		assert.Equal(t, change.added != "", strings.Contains(got, "added"), got)
	}
}
