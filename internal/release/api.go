package main

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
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

// listAPI writes what each public package exports into apiFolder: its
// declarations, sorted, without comments and bodies. What differs from one
// commit to the next git shows.
func listAPI(root string) (wrong []string, err error) {
	folders, err := modules(root)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(filepath.Join(root, apiFolder)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(root, apiFolder), 0o755); err != nil {
		return nil, err
	}
	for _, folder := range folders {
		packages, err := goList[apiPackage](filepath.Join(root, folder), []string{"GOOS=linux"}, "-json=ImportPath,Name,Dir,GoFiles", "./...")
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			if err := p.list(filepath.Join(root, apiFolder)); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

type apiPackage struct {
	ImportPath, Name, Dir string
	GoFiles               []string
}

// list writes the listing of a public package.
func (p apiPackage) list(into string) error {
	path := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, rootModule), "/")
	if p.Name == "main" || !forImport(path) || strings.Contains(path, "/internal") {
		return nil
	}
	var declared []string
	for _, name := range p.GoFiles {
		found, err := declarations(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		declared = append(declared, found...)
	}
	slices.Sort(declared)
	file := strings.ReplaceAll(cmp.Or(path, p.Name), "/", "-") + ".txt"
	return os.WriteFile(filepath.Join(into, file), []byte(strings.Join(declared, "")), 0o644)
}

// declarations are the exported ones of a file, each as it is written there.
func declarations(name string) (found []string, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.FileExports(file)
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Body = nil; d.Recv != nil && !ast.IsExported(receiver(d)) {
				continue
			}
			found = append(found, source(fset, d))
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if d.Tok != token.IMPORT {
					found = append(found, source(fset, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}}))
				}
			}
		}
	}
	return found, nil
}

// receiver is the name of a method's type.
func receiver(d *ast.FuncDecl) (name string) {
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return true
	})
	return name
}

// source prints a declaration without empty lines.
func source(fset *token.FileSet, decl ast.Decl) string {
	var text bytes.Buffer
	_ = (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&text, fset, decl) // to memory
	var kept strings.Builder
	for line := range strings.Lines(text.String() + "\n") {
		if strings.TrimSpace(line) != "" {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
