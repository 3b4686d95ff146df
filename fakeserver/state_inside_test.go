package fakeserver

import (
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dump writes down every string and byte slice that is reachable from v,
// unexported fields included.
func dump(v reflect.Value, seen map[uintptr]bool, out *strings.Builder) {
	switch v.Kind() {
	case reflect.String:
		fmt.Fprintln(out, v.String())
	case reflect.Pointer:
		if !v.IsNil() && !seen[v.Pointer()] {
			seen[v.Pointer()] = true
			dump(v.Elem(), seen, out)
		}
	case reflect.Interface:
		if !v.IsNil() {
			dump(v.Elem(), seen, out)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			dump(v.Field(i), seen, out)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			dump(it.Key(), seen, out)
			dump(it.Value(), seen, out)
		}
	case reflect.Slice, reflect.Array:
		dumpList(v, seen, out)
	}
}

func dumpList(v reflect.Value, seen map[uintptr]bool, out *strings.Builder) {
	for i := range v.Len() {
		if e := v.Index(i); e.Kind() == reflect.Uint8 {
			out.WriteByte(byte(e.Uint()))
		} else {
			dump(e, seen, out)
		}
	}
}

func TestStateHoldsNoKey(t *testing.T) {
	s, err := Open(WithMessageTexts())
	require.NoError(t, err)
	issued := s.IssueKey(KeyOptions{})
	s.OnMessage(ByKey(issued)).Reply("ok")
	call := func(key, method, path, body string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.Equal(t, 200, w.Code, w.Body.String())
	}
	for _, key := range []string{s.Key(), issued} {
		call(key, "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-canary-1","label":"label"}`)
		call(key, "POST", "/v1/agents", `{"system_prompt":"prompt","llm":{"mode":"byok","provider":"openai","api_key":"sk-canary-2"}}`)
	}
	call(issued, "POST", "/v1/agents/agent_000002/messages", `{"text":"hello"}`)
	var out strings.Builder
	dump(reflect.ValueOf(s), map[uintptr]bool{}, &out)
	for _, there := range []string{"key_000002", "label", "prompt", "hello", "agent_000002"} {
		assert.Contains(t, out.String(), there, "the dump reaches the state")
	}
	for _, secret := range []string{s.Key(), issued, "sk-canary"} {
		assert.NotContains(t, out.String(), secret)
	}
}

func TestVault(t *testing.T) {
	v := newVault()
	sealed := v.seal("sk-canary")
	assert.NotEqual(t, sealed, v.seal("sk-canary"), "each has a nonce of its own")
	n := v.aead.NonceSize()
	plain, err := v.aead.Open(nil, sealed[:n], sealed[n:], nil)
	require.NoError(t, err)
	assert.Equal(t, "sk-canary", string(plain))
	_, err = newVault().aead.Open(nil, sealed[:n], sealed[n:], nil)
	assert.Error(t, err, "each vault has a key of its own")
	assert.Equal(t, v.fingerprint("a"), v.fingerprint("a"))
	assert.NotEqual(t, v.fingerprint("a"), v.fingerprint("b"))
	assert.NotEqual(t, v.fingerprint("a"), newVault().fingerprint("a"))
	assert.Len(t, v.fingerprint(""), 16)
}
