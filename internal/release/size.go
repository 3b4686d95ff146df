package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs are built, each by its tag, beside the same program without, which
// speaks JSON over net/http by itself. max is what the client may add to it, in
// bytes. go-retryablehttp alone adds 300 KiB, because its variables need
// package regexp.
var programs = []struct {
	tag string
	max int64
}{
	{"imports", 384 << 10},
	{"calls", 704 << 10}, // every method: where this grows, look what for
}

const programFolder = "./internal/release/testdata/size"

var (
	compiledIn = []string{
		"github.com/hashicorp/go-cleanhttp",
		"github.com/hashicorp/go-retryablehttp",
	}
	// required are those and what tests, and tests with the contract suite,
	// are compiled with.
	required = []string{
		"github.com/hashicorp/go-cleanhttp",
		"github.com/hashicorp/go-retryablehttp",
		"github.com/stretchr/testify",
		"go.yaml.in/yaml/v3", // of testify
	}
)

func checkSize(root string) (wrong []string) {
	var paths []string
	for _, r := range requirements(root) {
		paths = append(paths, r.Path)
	}
	slices.Sort(paths)
	if !slices.Equal(paths, required) {
		wrong = append(wrong, fmt.Sprintf("go.mod requires\n  %q\nand should require\n  %q", paths, required))
	}
	if paths = compiledModules(root, "calls"); !slices.Equal(paths, compiledIn) {
		wrong = append(wrong, fmt.Sprintf("a program with the client compiles in\n  %q\nand should compile in\n  %q", paths, compiledIn))
	}
	plain := binarySize(root, "")
	for _, program := range programs {
		size := binarySize(root, program.tag)
		added := size - plain
		fmt.Printf("%-7s adds %.0f KiB, of at most %d: %d - %d = %d bytes\n",
			program.tag, float64(added)/1024, program.max>>10, size, plain, added)
		if added > program.max {
			wrong = append(wrong, fmt.Sprintf("the program %s adds %d bytes, more than %d", program.tag, added, program.max))
		}
	}
	return wrong
}

// compiledModules are the modules of a program, but for the root module.
func compiledModules(root, tag string) []string {
	out := goCommand(root, nil, "list", "-tags="+tag, "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", programFolder)
	paths := strings.Fields(string(out))
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(p string) bool { return p == rootModule })
}

// binarySize is that of a stripped program for Linux on amd64.
func binarySize(root, tag string) (bytes int64) {
	dir := must(os.MkdirTemp("", "size"))
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "program")
	goCommand(root, []string{"GOOS=linux", "GOARCH=amd64"},
		"build", "-tags="+tag, "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, programFolder)
	return must(os.Stat(binary)).Size()
}
