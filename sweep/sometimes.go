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
		parsed, err := parser.ParseFile(positions, file, nil, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch f := n.(type) {
			case *ast.FuncDecl:
				all[f.Name.Name] = append(all[f.Name.Name], f)
			case *ast.FuncLit:
			default:
				return true
			}
			place := fmt.Sprint(file, positions.Position(n.Pos()).Line)
			all[place] = append(all[place], n)
			return true
		})
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
		ast.Inspect(reached[i], func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.Ident:
				if !seen[x.Name] {
					seen[x.Name] = true
					reached = append(reached, functions()[x.Name]...)
				}
			case *ast.CallExpr:
				called, selects := x.Fun.(*ast.SelectorExpr)
				if !selects || called.Sel.Name != "Sometimes" || len(x.Args) != 1 {
					break
				}
				if literal, ok := x.Args[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
					name, _ := strconv.Unquote(literal.Value)
					names = append(names, name)
				}
			}
			return true
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}
