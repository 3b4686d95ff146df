package main

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// exported lists what a package exports, a line for each constant, variable,
// function, method, type and field, sorted.
func exported(p *types.Package) (lines []string) {
	l := lister{func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}}
	for _, name := range p.Scope().Names() {
		if obj := p.Scope().Lookup(name); obj.Exported() {
			lines = append(lines, l.object(obj)...)
		}
	}
	slices.Sort(lines)
	return lines
}

type lister struct{ qualify types.Qualifier }

func (l lister) typ(t types.Type) string { return types.TypeString(nameless(t), l.qualify) }

func (l lister) object(obj types.Object) []string {
	switch obj := obj.(type) {
	case *types.Const:
		return []string{fmt.Sprintf("const %s %s = %s", obj.Name(), l.typ(obj.Type()), obj.Val().ExactString())}
	case *types.Var:
		return []string{"var " + obj.Name() + " " + l.typ(obj.Type())}
	case *types.Func:
		return []string{"func " + obj.Name() + strings.TrimPrefix(l.typ(obj.Type()), "func")}
	case *types.TypeName:
		return l.typeName(obj)
	}
	return nil
}

func (l lister) typeName(obj *types.TypeName) []string {
	if obj.IsAlias() {
		return []string{"type " + obj.Name() + " = " + l.typ(types.Unalias(obj.Type()))}
	}
	head := "type " + strings.TrimPrefix(l.typ(obj.Type()), "*")
	fields, isStruct := obj.Type().Underlying().(*types.Struct)
	if !isStruct {
		return append([]string{head + " " + l.typ(obj.Type().Underlying())}, l.methods(obj)...)
	}
	return append(l.fields(head+" struct", fields), l.methods(obj)...)
}

func (l lister) fields(head string, s *types.Struct) []string {
	lines := []string{head}
	hidden, incomparable := false, false
	for i := range s.NumFields() {
		field := s.Field(i)
		switch {
		case !field.Exported():
			hidden = true
			incomparable = incomparable || !types.Comparable(field.Type())
		case field.Embedded():
			lines = append(lines, head+", embedded "+l.typ(field.Type())+tag(s.Tag(i)))
		default:
			lines = append(lines, head+", "+field.Name()+" "+l.typ(field.Type())+tag(s.Tag(i)))
		}
	}
	if hidden { // users cannot write it without field names, nor convert to it
		lines = append(lines, head+", unexported fields")
	}
	if !incomparable && types.Comparable(s) {
		lines = append(lines, head+", comparable")
	}
	return lines
}

func tag(s string) string {
	if s == "" {
		return ""
	}
	return " `" + s + "`"
}

// methods lists the methods of a type and its pointer. Those that an exported
// embedded type brings are that type's business.
func (l lister) methods(obj *types.TypeName) (lines []string) {
	if types.IsInterface(obj.Type()) {
		return nil
	}
	ofValue := types.NewMethodSet(obj.Type())
	all := types.NewMethodSet(types.NewPointer(obj.Type()))
	for i := range all.Len() {
		m := all.At(i)
		if !m.Obj().Exported() || promoted(obj, m) {
			continue
		}
		receiver := l.typ(obj.Type())
		if ofValue.Lookup(m.Obj().Pkg(), m.Obj().Name()) == nil {
			receiver = "*" + receiver
		}
		lines = append(lines, "method ("+receiver+") "+m.Obj().Name()+strings.TrimPrefix(l.typ(m.Type()), "func"))
	}
	return lines
}

func promoted(obj *types.TypeName, m *types.Selection) bool {
	s, isStruct := obj.Type().Underlying().(*types.Struct)
	return isStruct && len(m.Index()) > 1 && s.Field(m.Index()[0]).Exported()
}

// nameless drops the names of parameters, which bind nobody.
func nameless(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Signature:
		if t.TypeParams().Len() > 0 { // a type parameter belongs to one signature
			return t
		}
		return types.NewSignatureType(nil, nil, nil, tuple(t.Params()), tuple(t.Results()), t.Variadic())
	case *types.Interface:
		methods := make([]*types.Func, t.NumExplicitMethods())
		for i := range methods {
			m := t.ExplicitMethod(i)
			methods[i] = types.NewFunc(m.Pos(), m.Pkg(), m.Name(), nameless(m.Type()).(*types.Signature))
		}
		return types.NewInterfaceType(methods, slices.Collect(t.EmbeddedTypes()))
	}
	return t
}

func tuple(vars *types.Tuple) *types.Tuple {
	out := make([]*types.Var, vars.Len())
	for i := range out {
		out[i] = types.NewParam(vars.At(i).Pos(), vars.At(i).Pkg(), "", nameless(vars.At(i).Type()))
	}
	return types.NewTuple(out...)
}
