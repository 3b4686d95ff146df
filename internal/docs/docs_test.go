// Package docs_test holds README.md and the pages of docs to the code: their Go
// compiles, the names that they mention exist, their tables and numbers are
// those of internal/spec.
package docs_test

import (
	"os"
	"testing"
)

// TestMain runs the tests in the root of the repository, where the pages are.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
