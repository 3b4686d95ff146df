// Package page is the dashboard of the fake: a page of embedded files that
// works through the control interface and asks no other address for anything.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// AssetsPath is where the files that index.html refers to are served.
const AssetsPath = "/_fake/assets/"

//go:embed assets
var embedded embed.FS

// policy lets the page load from and talk to the program alone. Trusted types
// without any policy make the browser refuse every string that would become
// markup or code, so a field's <script> stays text whatever a module does.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// types name what is served: the tables of the system may say otherwise.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// asset is a file, ready to be sent.
type asset struct {
	contentType string
	etag        string
	content     []byte
}

// Handler serves the page at / and its files below AssetsPath. It answers 404
// to any other path.
func Handler() http.Handler {
	assets, err := load()
	if err != nil {
		panic("page: " + err.Error()) // the files are part of the program
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setPolicy(w.Header())
		found, ok := assets[r.URL.Path]
		switch {
		case !ok:
			http.Error(w, "There is nothing at this path.", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "This path answers GET and HEAD only.", http.StatusMethodNotAllowed)
		default:
			found.serve(w, r)
		}
	})
}

func setPolicy(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// serve lets the browser keep the file but ask each time: the next version of
// the program may serve at the same address.
func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", a.etag)
	w.Header().Set("Content-Type", a.contentType)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.content))
}

// load reads every file into the path that it is served at.
func load() (map[string]asset, error) {
	assets := map[string]asset{}
	err := fs.WalkDir(embedded, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		assets[servedAt(name)] = newAsset(name, content)
		return nil
	})
	return assets, err
}

func servedAt(name string) string {
	if name == "assets/index.html" {
		return "/"
	}
	return AssetsPath + strings.TrimPrefix(name, "assets/")
}

func newAsset(name string, content []byte) asset {
	sum := sha256.Sum256(content)
	return asset{types[path.Ext(name)], `"` + hex.EncodeToString(sum[:16]) + `"`, content}
}
