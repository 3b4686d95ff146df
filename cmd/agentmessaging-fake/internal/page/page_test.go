package page_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/page"
)

// get asks the handler.
func get(t *testing.T, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest(method, path, nil)
	rec := httptest.NewRecorder()
	page.Handler().ServeHTTP(rec, req)
	return rec
}

// sources are the files of the page by the path that each is served at.
func sources(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	assets := os.DirFS("assets")
	require.NoError(t, fs.WalkDir(assets, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(assets, name)
		found[page.AssetsPath+name] = string(content)
		return err
	}))
	require.NotEmpty(t, found)
	found["/"] = found[page.AssetsPath+"index.html"]
	delete(found, page.AssetsPath+"index.html")
	return found
}

func TestEveryFileIsServedWithItsTypeAndThePolicy(t *testing.T) {
	types := map[string]string{
		"":     "text/html; charset=utf-8",
		".css": "text/css; charset=utf-8",
		".js":  "text/javascript; charset=utf-8",
		".svg": "image/svg+xml",
	}
	for at, content := range sources(t) {
		rec := get(t, http.MethodGet, at)
		assert.Equal(t, http.StatusOK, rec.Code, at)
		assert.Equal(t, content, rec.Body.String(), at)
		assert.Equal(t, types[path.Ext(at)], rec.Header().Get("Content-Type"), at)
		wantPolicy(t, rec.Header())
	}
}

func wantPolicy(t *testing.T, h http.Header) {
	t.Helper()
	assert.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; "+
		"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'", h.Get("Content-Security-Policy"))
	assert.Equal(t, "no-store", h.Get("Cache-Control"))
	assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
	assert.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
	assert.Equal(t, "same-origin", h.Get("Cross-Origin-Opener-Policy"))
	assert.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
}

func TestAllModulesAreLoadedAtOnce(t *testing.T) {
	links := strings.Join(get(t, http.MethodGet, "/").Header()["Link"], "\n")
	for at := range sources(t) {
		assert.Equal(t, path.Ext(at) == ".js", strings.Contains(links, "<"+at+`>; rel="modulepreload"`), at)
	}
}

func TestUnknownPathsAndMethodsAreRefusedUnderThePolicy(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/favicon.ico", 404},
		{"GET", "/index.html", 404},
		{"GET", "/_fake/assets/", 404},
		{"GET", "/_fake/assets/index.html", 404},
		{"GET", "/_fake/assets/../page.go", 404},
		{"GET", "/_fake/assets/views", 404},
		{"POST", "/", 405},
		{"DELETE", "/_fake/assets/app.js", 405},
		{"HEAD", "/", 200},
	} {
		rec := get(t, tt.method, tt.path)
		assert.Equal(t, tt.want, rec.Code, "%s %s", tt.method, tt.path)
		wantPolicy(t, rec.Header())
	}
	assert.Equal(t, "GET, HEAD", get(t, "POST", "/").Header().Get("Allow"))
}

func TestTheVendoredLibraryCarriesItsLicence(t *testing.T) {
	assert.Contains(t, sources(t)[page.AssetsPath+"vendor/preact.js"], "The MIT License (MIT)")
}
