// Package docs_test holds README.md and the pages of docs to the code: their Go
// compiles, the names that they mention exist, their tables and numbers are
// those of internal/spec.
package docs_test

// root is the root of the repository, where the pages are. Each test goes there
// itself: go test then sees which pages it read, and runs it again when one
// changes.
const root = "../.."
