package sweep

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// functions are the functions of the package under test, in whose folder its tests run:
// by name and, as only a literal needs, by file and line.
var functions = sync.OnceValue(func() map[string][]ast.Node {
	all, positions := map[string][]ast.Node{}, token.NewFileSet()
	files, _ := filepath.Glob("*.go")
	for _, file := range files {
		parsed, _ := parser.ParseFile(positions, file, nil, parser.SkipObjectResolution)
		if parsed == nil {
			continue // such as a dangling link; go build ignores some of these files
		}
		for n := range ast.Preorder(parsed) {
			switch f := n.(type) {
			case *ast.FuncDecl:
				all[f.Name.Name] = append(all[f.Name.Name], f)
			case *ast.FuncLit:
			default:
				continue
			}
			place := fmt.Sprint(file, positions.Position(n.Pos()).Line)
			all[place] = append(all[place], n)
		}
	}
	return all
})

// sometimesIn returns the names at the calls of Env.Sometimes in the scenario, a
// function, and in the functions of its package that it names, directly or not; none
// where the source is not there.
func sometimesIn(scenario any) (names []string) {
	entry := runtime.FuncForPC(reflect.ValueOf(scenario).Pointer())
	file, line := entry.FileLine(entry.Entry())
	seen := map[string]bool{}
	reached := slices.Clone(functions()[fmt.Sprint(filepath.Base(file), line)])
	for i := 0; i < len(reached); i++ {
		for n := range ast.Preorder(reached[i]) {
			switch x := n.(type) {
			case *ast.Ident:
				if !seen[x.Name] {
					seen[x.Name] = true
					reached = append(reached, functions()[x.Name]...)
				}
			case *ast.CallExpr:
				called, _ := x.Fun.(*ast.SelectorExpr)
				if called == nil || called.Sel.Name != "Sometimes" || len(x.Args) != 1 {
					continue
				}
				if literal, ok := x.Args[0].(*ast.BasicLit); ok {
					name, _ := strconv.Unquote(literal.Value)
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
