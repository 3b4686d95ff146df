// Package reach finds the texts that a debugger's dump of a value would show. Tests
// search these texts for secrets.
package reach

import "reflect"

// Strings calls found with every string and byte slice that reflection reaches from v,
// through unexported fields, pointers and interfaces.
func Strings(v any, found func(string)) {
	walk(reflect.ValueOf(v), map[uintptr]bool{}, found)
}

func walk(v reflect.Value, seen map[uintptr]bool, found func(string)) {
	switch kind := v.Kind(); {
	case kind == reflect.String:
		found(v.String())
	case kind == reflect.Interface && !v.IsNil():
		walk(v.Elem(), seen, found)
	case kind == reflect.Pointer && !v.IsNil() && !seen[v.Pointer()]:
		seen[v.Pointer()] = true
		walk(v.Elem(), seen, found)
	case kind == reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), seen, found)
		}
	case kind == reflect.Map:
		for key, value := range v.Seq2() {
			walk(key, seen, found)
			walk(value, seen, found)
		}
	case kind == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		found(string(v.Bytes()))
	case kind == reflect.Slice || kind == reflect.Array:
		for i := range v.Len() {
			walk(v.Index(i), seen, found)
		}
	}
}
