package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each file of the page is served with its type, and nothing else is. What the browser
// must not do holds for each answer, whatever it is.
func TestPage(t *testing.T) {
	a := newAPI(t)
	for call, want := range map[string]string{
		"GET /":                            "200 text/html; charset=utf-8",
		"HEAD /":                           "200 text/html; charset=utf-8",
		"GET /_fake/assets/app.js":         "200 text/javascript; charset=utf-8",
		"GET /_fake/assets/views/shell.js": "200 text/javascript; charset=utf-8",
		"GET /_fake/assets/style.css":      "200 text/css; charset=utf-8",
		"GET /_fake/assets/icon.svg":       "200 image/svg+xml",
		"POST /":                           "405 text/plain; charset=utf-8",
		"GET /favicon.ico":                 "404 text/plain; charset=utf-8",
		"GET /_fake/assets/":               "404 text/plain; charset=utf-8",
		"GET /_fake/assets/index.html":     "404 text/plain; charset=utf-8",
		"GET /_fake/assets/../page.go":     "404 text/plain; charset=utf-8",
	} {
		method, path, _ := strings.Cut(call, " ")
		answered := a.send(method, path, "")
		assert.Equal(t, want, fmt.Sprint(answered.status, " ", answered.header.Get("Content-Type")), call)
		assert.Equal(t, answered.status == 405, answered.header.Get("Allow") == "GET, HEAD", call)
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
	assert.Contains(t, a.send("GET", "/_fake/assets/vendor/preact.js", "").raw, "The MIT License (MIT)")
}
