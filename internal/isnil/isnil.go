// Package isnil finds the nil that a comparison with nil misses.
package isnil

import "reflect"

// Value reports whether a value is nil, or an interface that holds a nil pointer, func, map,
// channel or slice. A call of a method of such a value may panic, later than the mistake. A
// function returns a nil pointer in an error by mistake if it declares *T in place of error.
func Value[T any](v T) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return r.IsNil()
	}
	return false
}
