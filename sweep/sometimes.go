package sweep

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// source is the code in the folder of a package, in which its tests run.
type source struct {
	named  map[string][]ast.Node // functions by their names
	placed map[string][]ast.Node // functions by file and line
}

// folder reads the code once, if Sometimes is in it at all.
var folder = sync.OnceValue(func() (s source) {
	s = source{map[string][]ast.Node{}, map[string][]ast.Node{}}
	files, _ := filepath.Glob("*.go")
	read, used := map[string][]byte{}, false
	for _, file := range files {
		content, err := os.ReadFile(file)
		used = used || err == nil && bytes.Contains(content, []byte(".Sometimes("))
		read[file] = content
	}
	for file, content := range read {
		if used {
			s.add(file, content)
		}
	}
	return s
})

func (s source) add(file string, content []byte) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, content, parser.SkipObjectResolution)
	if err != nil {
		return
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch f := n.(type) {
		case *ast.FuncDecl:
			s.named[f.Name.Name] = append(s.named[f.Name.Name], f)
		case *ast.FuncLit:
		default:
			return true
		}
		place := fmt.Sprint(file, positions.Position(n.Pos()).Line)
		s.placed[place] = append(s.placed[place], n)
		return true
	})
}

// written are the names at the calls of Sometimes in the scenario and in the
// functions of its package that it names, directly or not. It is nil where the
// source is not there.
func written(scenario any) (names []string) {
	entry := runtime.FuncForPC(reflect.ValueOf(scenario).Pointer())
	file, line := entry.FileLine(entry.Entry())
	source, seen := folder(), map[string]bool{}
	reached := slices.Clone(source.placed[fmt.Sprint(filepath.Base(file), line)])
	for i := 0; i < len(reached); i++ {
		ast.Inspect(reached[i], func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.Ident:
				if !seen[x.Name] {
					seen[x.Name] = true
					reached = append(reached, source.named[x.Name]...)
				}
			case *ast.CallExpr:
				called, selected := x.Fun.(*ast.SelectorExpr)
				if !selected || called.Sel.Name != "Sometimes" || len(x.Args) != 1 {
					return true
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
