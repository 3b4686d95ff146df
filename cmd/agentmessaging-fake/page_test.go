package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every file of the page is served, with its type.
func TestPageFiles(t *testing.T) {
	a := newAPI(t)
	types := map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
	for _, pattern := range []string{"*.*", "*/*.js"} {
		files, err := filepath.Glob("internal/page/assets/" + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			at := strings.TrimPrefix(filepath.ToSlash(file), "internal/page/assets/")
			at = strings.TrimSuffix("/_fake/assets/"+at, "_fake/assets/index.html")
			served := a.send("GET", at, "")
			assert.Equal(t, 200, served.status, at)
			assert.Equal(t, string(content), served.raw, at)
			assert.Contains(t, served.header.Get("Content-Type"), types[filepath.Ext(file)], at)
		}
	}
	assert.Contains(t, a.send("GET", "/_fake/assets/vendor/preact.js", "").raw, "The MIT License (MIT)")
}

// What the browser must not do holds for each answer, whatever it is.
func TestPagePolicy(t *testing.T) {
	a := newAPI(t)
	for call, want := range map[string]int{
		"GET /":                        200,
		"HEAD /":                       200,
		"POST /":                       405,
		"DELETE /_fake/assets/app.js":  405,
		"GET /favicon.ico":             404,
		"GET /_fake/assets/":           404,
		"GET /_fake/assets/index.html": 404,
		"GET /_fake/assets/../page.go": 404,
		"GET /_fake/assets/views":      404,
	} {
		method, path, _ := strings.Cut(call, " ")
		answered := a.send(method, path, "")
		assert.Equal(t, want, answered.status, call)
		assert.Equal(t, want == 405, answered.header.Get("Allow") == "GET, HEAD", call)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; " +
				"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"Cache-Control":                "no-store",
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			assert.Equal(t, want, answered.header.Get(name), call)
		}
	}
}
