package main

import (
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// apiFolder has a listing for each public package.
const apiFolder = "internal/release/api"

// forImport is about a folder, or a package's path, below the root.
func forImport(folder string) bool {
	top, _, _ := strings.Cut(folder, "/")
	return top != "cmd" && top != "internal"
}

// checkAPI compares the exported names of every public package with its
// listing below api, or rewrites the listings.
func checkAPI(root string, update bool) (wrong []string, err error) {
	folders, err := modules(root)
	if err != nil {
		return nil, err
	}
	listings := map[string][]string{}
	for _, folder := range folders {
		if err := listModule(filepath.Join(root, folder), listings); err != nil {
			return nil, err
		}
	}
	if update {
		return nil, writeListings(filepath.Join(root, apiFolder), listings)
	}
	wrong, err = compareListings(filepath.Join(root, apiFolder), listings)
	if len(wrong) > 0 {
		wrong = append(wrong, "Is that on purpose? Then run make api, read the diff of "+apiFolder+","+
			" and say in CHANGELOG.md what a user notices.")
	}
	return wrong, err
}

type apiPackage struct{ ImportPath, Name, Export string }

// listModule adds the listings of the public packages of a module, by the
// names of their files. Names that exist on one platform only are not listed.
func listModule(dir string, listings map[string][]string) error {
	env := []string{"GOOS=linux", "GOARCH=amd64"}
	packages, err := goList[apiPackage](dir, env, "-json=ImportPath,Name", "./...")
	if err != nil {
		return err
	}
	public := map[string]string{}
	args := []string{"-export", "-deps", "-json=ImportPath,Export"}
	for _, p := range packages {
		if name, ok := listingName(p); ok {
			public[name] = p.ImportPath
			args = append(args, p.ImportPath)
		}
	}
	if len(public) == 0 {
		return nil
	}
	compiled, err := goList[apiPackage](dir, env, args...)
	if err != nil {
		return err
	}
	exports := map[string]string{}
	for _, p := range compiled {
		exports[p.ImportPath] = p.Export
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for name, path := range public {
		typed, err := imp.Import(path)
		if err != nil {
			return err
		}
		listings[name] = exported(typed)
	}
	return nil
}

// listingName is the import path below the root module, and whether the
// package is public.
func listingName(p apiPackage) (name string, public bool) {
	path := "/" + strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, rootModule), "/")
	if p.Name == "main" || strings.Contains(path, "/internal") || strings.Contains(path, "/examples/") {
		return "", false
	}
	if path == "/" {
		path = "/" + p.Name
	}
	return path[1:] + ".txt", forImport(path[1:])
}

func writeListings(dir string, listings map[string][]string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, lines := range listings {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func compareListings(dir string, listings map[string][]string) (wrong []string, err error) {
	names, err := files(dir, func(name string) bool { return strings.HasSuffix(name, ".txt") })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for name := range listings {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		want := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' })
		if diff := compareLines(want, listings[name]); diff != "" {
			wrong = append(wrong, apiFolder+"/"+name+"\n"+diff)
		}
	}
	return wrong, nil
}

// compareLines says what was and what is. A line that was there and is gone
// breaks users; to add one is compatible, since all that must not grow, such
// as an interface, stands in one line.
func compareLines(was, is []string) string {
	var b strings.Builder
	part := func(title, sign string, lines, without []string) {
		for _, line := range lines {
			if slices.Contains(without, line) {
				continue
			}
			if title != "" {
				b.WriteString(title)
				title = ""
			}
			fmt.Fprintf(&b, "    %s %s\n", sign, line)
		}
	}
	part("  incompatible, removed or changed:\n", "-", was, is)
	part("  added:\n", "+", is, was)
	return b.String()
}
