package docs_test

import (
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withoutExample are the exported functions and methods that no Example shows,
// each with the reason. The names of a package begin with its own. The methods
// of interfaces are none of them: users implement those.
var withoutExample = map[string]string{
	"agentmessaging.ObserverFunc.Observe": "the conversion to the type is what users write",
	"fakeserver.Server.IssueKeyOn":        "package contract calls it",
	"pacer.Pacer.Acquire":                 "the client calls it",
	"pacer.Pacer.CoolsDown":               "the client calls it",
	"pacer.TestStore":                     "a test of a store calls it: TestStoreOfTheTests",
}

// called by the standard library: fmt, errors, slog and the encoders.
var calledByOthers = []string{"Error", "Format", "GoString", "Is", "MarshalBinary", "MarshalText", "String", "Unwrap"}

// TestExamplesShowEveryFunction: whatever is exported is used by an Example
// that go doc shows, or stands in the list above.
func TestExamplesShowEveryFunction(t *testing.T) {
	t.Chdir(root)
	fset := token.NewFileSet()
	packages := compiled(t, fset)
	missing := map[string]bool{}
	for _, dir := range []string{".", "fakeserver", "pacer"} {
		pkg, err := packages.Import(strings.TrimSuffix(module+"/"+dir, "/."))
		require.NoError(t, err)
		shown := shownIn(t, fset, packages, dir)
		for name, object := range exported(pkg) {
			if !shown[object] && !slices.Contains(calledByOthers, object.Name()) {
				missing[pkg.Name()+"."+name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		assert.NotEmpty(t, withoutExample[name], "no Example uses %s", name)
	}
	for name := range withoutExample {
		assert.True(t, missing[name], "%s has an Example, or is gone: take it off the list", name)
	}
}

// exported are the functions, methods and kinds of errors of a package.
func exported(pkg *types.Package) map[string]types.Object {
	found := map[string]types.Object{}
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		switch object.(type) {
		case *types.Func, *types.Var:
			found[name] = object
		case *types.TypeName:
			for method := range types.NewMethodSet(types.NewPointer(object.Type())).Methods() { // empty for an interface
				if method.Obj().Exported() {
					found[name+"."+method.Obj().Name()] = method.Obj()
				}
			}
		}
	}
	return found
}

// compiled reads packages from what the compiler has exported.
func compiled(t *testing.T, fset *token.FileSet) types.Importer {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".", "./fakeserver", "./contract", "./agentmessagingtest", "./pacer")
	out, err := list.Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
}

// shownIn is what the bodies of the Examples in dir use.
func shownIn(t *testing.T, fset *token.FileSet, packages types.Importer, dir string) map[types.Object]bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		require.NoError(t, err)
		if strings.HasSuffix(file.Name.Name, "_test") {
			files = append(files, file)
		}
	}
	uses := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	// What the packages of tests only are about, such as testify, stays unknown.
	config := types.Config{Importer: packages, Error: func(error) {}}
	_, _ = config.Check(dir, fset, files, uses)
	shown := map[types.Object]bool{}
	for _, example := range doc.Examples(files...) {
		ast.Inspect(example.Code, func(node ast.Node) bool {
			if id, ok := node.(*ast.Ident); ok {
				shown[uses.Uses[id]] = true
			}
			return true
		})
	}
	require.Greater(t, len(shown), 10, "%s has Examples", dir)
	return shown
}
