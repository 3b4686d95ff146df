package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// platforms are GOOS/GOARCH. Types are all that is looked at, in a second or
// two for each: code that a compiler would refuse, such as an integer that is
// too large for 32 bits, is found without compiling the standard library ten
// times. .ci/release vet GOOS/GOARCH compiles.
var platforms = []string{
	"linux/amd64", "linux/arm64", "linux/386", "linux/arm",
	"darwin/amd64", "darwin/arm64",
	"windows/amd64", "windows/arm64",
	"js/wasm", "wasip1/wasm",
}

func checkPlatforms(root string) (wrong []string, err error) {
	folders, err := modules(root)
	if err != nil {
		return nil, err
	}
	found := make([][]string, len(platforms))
	errs := make([]error, len(platforms))
	room := make(chan struct{}, runtime.NumCPU())
	var all sync.WaitGroup
	for i, platform := range platforms {
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			found[i], errs[i] = checkPlatform(root, folders, platform)
		})
	}
	all.Wait()
	return slices.Concat(found...), errors.Join(errs...)
}

func checkPlatform(root string, folders []string, platform string) (wrong []string, err error) {
	for _, folder := range folders {
		errs, err := typeCheck(filepath.Join(root, folder), platform)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", platform, err)
		}
		for _, e := range errs {
			wrong = append(wrong, platform+": "+e.Error())
		}
	}
	return wrong, nil
}

type listedPackage struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	DepOnly         bool
	Module          *struct{ GoVersion string }
}

// typeCheck returns what is wrong with the packages of a module, and their
// tests. Of other modules only the declarations are read.
func typeCheck(dir, platform string) (wrong []error, err error) {
	goos, goarch, _ := strings.Cut(platform, "/")
	packages, err := goList[listedPackage](dir, []string{"GOOS=" + goos, "GOARCH=" + goarch},
		"-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,DepOnly,Module", "./...")
	if err != nil {
		return nil, err
	}
	typed := map[string]*types.Package{"unsafe": types.Unsafe}
	for _, p := range packages { // what is imported comes first
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		var errs []error
		typed[p.ImportPath], errs = p.check(typed, goarch)
		if !p.DepOnly {
			wrong = append(wrong, errs...)
		}
	}
	return wrong, nil
}

func (p listedPackage) check(typed map[string]*types.Package, goarch string) (pkg *types.Package, wrong []error) {
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, []error{err}
		}
		parsed = append(parsed, file)
	}
	conf := types.Config{
		Importer:         importMap{p.ImportMap, typed},
		Sizes:            types.SizesFor("gc", goarch),
		IgnoreFuncBodies: p.DepOnly,
		Error:            func(err error) { wrong = append(wrong, err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	pkg, _ = conf.Check(strings.Fields(p.ImportPath)[0], fset, parsed, nil) // Error has its error
	return pkg, wrong
}

// importMap finds what a package means by an import path.
type importMap struct {
	renamed map[string]string
	typed   map[string]*types.Package
}

func (m importMap) Import(path string) (*types.Package, error) {
	if to, ok := m.renamed[path]; ok {
		path = to
	}
	if p := m.typed[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s does not exist here", path)
}
