package page_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/page"
)

// get asks the handler, and wants the policy whatever the answer is.
func get(t *testing.T, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	page.Handler().ServeHTTP(rec, httptest.NewRequest(method, path, nil))
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; " +
			"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		"Cache-Control":                "no-store",
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
	} {
		assert.Equal(t, want, rec.Header().Get(name), "%s %s", method, path)
	}
	return rec
}

// Every file is served, with its type, and all modules are loaded at once.
func TestFiles(t *testing.T) {
	types := map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
	links := strings.Join(get(t, "GET", "/").Header()["Link"], "\n")
	files, err := filepath.Glob("assets/*.*")
	require.NoError(t, err)
	below, err := filepath.Glob("assets/*/*.js")
	require.NoError(t, err)
	for _, file := range append(files, below...) {
		at := "/_fake/" + filepath.ToSlash(file)
		assert.Equal(t, path.Ext(at) == ".js", strings.Contains(links, "<"+at+`>; rel="modulepreload"`), at)
		if path.Ext(at) == ".html" {
			at = "/"
		}
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		rec := get(t, "GET", at)
		assert.Equal(t, http.StatusOK, rec.Code, at)
		assert.Equal(t, string(content), rec.Body.String(), at)
		assert.Contains(t, rec.Header().Get("Content-Type"), types[filepath.Ext(file)], at)
	}
	assert.Contains(t, get(t, "GET", "/_fake/assets/vendor/preact.js").Body.String(), "The MIT License (MIT)")
}

func TestOtherPathsAndMethods(t *testing.T) {
	for call, want := range map[string]int{
		"GET /favicon.ico":             404,
		"GET /index.html":              404,
		"GET /_fake/assets/":           404,
		"GET /_fake/assets/index.html": 404,
		"GET /_fake/assets/../page.go": 404,
		"GET /_fake/assets/views":      404,
		"POST /":                       405,
		"DELETE /_fake/assets/app.js":  405,
		"HEAD /":                       200,
	} {
		method, path, _ := strings.Cut(call, " ")
		assert.Equal(t, want, get(t, method, path).Code, call)
	}
	assert.Equal(t, "GET, HEAD", get(t, "POST", "/").Header().Get("Allow"))
}
