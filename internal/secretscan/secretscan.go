// Package secretscan looks for secrets in all that a debugger's dump of a value would show. Only
// tests import it.
package secretscan

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// HoldsNone checks that no string or byte slice that reflection reaches from held has a
// secret. A debugger reaches the same: unexported fields, pointers and interfaces. It also
// checks that held does not print the word canary, which the secrets of tests contain.
func HoldsNone(t testing.TB, held any, secrets ...string) {
	t.Helper()
	walk(reflect.ValueOf(held), map[uintptr]bool{}, func(text string) {
		for _, secret := range secrets {
			assert.False(t, secret != "" && strings.Contains(text, secret), "%T holds %.80q", held, text)
		}
	})
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", held, held, held), "canary")
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
