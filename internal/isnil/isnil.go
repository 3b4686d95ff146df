// Package isnil finds the nil that a comparison with nil misses.
package isnil

import "reflect"

// Value reports whether a value is nil, or a nil pointer inside an interface. The methods of
// such a pointer panic only at the first call. A function returns one by mistake if it declares
// *T in place of error.
func Value[T any](v T) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return r.IsNil()
	}
	return false
}
