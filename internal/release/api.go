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
func listAPI(root string) (wrong []string) {
	into := filepath.Join(root, apiFolder)
	try(os.RemoveAll(into))
	try(os.MkdirAll(into, 0o755))
	const each = "{{range .GoFiles}}{{$.ImportPath}}\t{{$.Name}}\t{{$.Dir}}/{{.}}\n{{end}}"
	declared := map[string][]string{}
	for _, folder := range modules(root) {
		for line := range strings.Lines(string(goCommand(filepath.Join(root, folder), []string{"GOOS=linux"}, "list", "-f", each, "./..."))) {
			file := strings.Split(strings.TrimSpace(line), "\t")
			path := strings.TrimPrefix(strings.TrimPrefix(file[0], rootModule), "/")
			if name := file[1]; name != "main" && forImport(path) && !strings.Contains(path, "/internal") {
				listing := strings.ReplaceAll(cmp.Or(path, name), "/", "-") + ".txt"
				declared[listing] = append(declared[listing], declarations(file[2])...)
			}
		}
	}
	for listing, found := range declared {
		slices.Sort(found)
		try(os.WriteFile(filepath.Join(into, listing), []byte(strings.Join(found, "")), 0o644))
	}
	return nil
}

// declarations are the exported ones of a file, each as it is written there.
func declarations(name string) (found []string) {
	fset := token.NewFileSet()
	file := must(parser.ParseFile(fset, name, nil, parser.SkipObjectResolution))
	ast.FileExports(file)
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Body = nil; d.Recv == nil || ast.IsExported(receiver(d)) {
				found = append(found, source(fset, d))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if d.Tok != token.IMPORT {
					found = append(found, source(fset, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}}))
				}
			}
		}
	}
	return found
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
