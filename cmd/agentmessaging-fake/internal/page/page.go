// Package page is the dashboard of the fake: a page of embedded files. It works through
// the control interface and uses no other address.
//
// The Go side only serves the files, with headers that keep other sites out. The page
// itself is in assets/: app.js starts it, store.js holds its state, sync.js follows the
// fake, load.js fetches what has changed, and views/ draws it. It has no build step: the
// browser loads the modules as they are here, and preact from assets/vendor.
package page

import (
	"bytes"
	"embed"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var embedded embed.FS

// contentSecurityPolicy lets the page load from the program and talk to the program, and to
// nothing else. Trusted types without any policy make the browser refuse every string that
// would become markup or code. So a field's <script> stays text, whatever a module does.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// types maps a file's extension to its media type. The tables of the system may have
// other types, and with nosniff the browser would then refuse a module.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Handler serves the page at / and its files below /_fake/assets/. It answers 404 to any
// other path. The browser keeps nothing, because the next version of the program may
// serve at the same address.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header())
		content, err := embedded.ReadFile(fileAt(r.URL.Path))
		switch {
		case err != nil:
			http.Error(w, "There is nothing at this path.", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "This path answers GET and HEAD only.", http.StatusMethodNotAllowed)
		default:
			w.Header().Set("Content-Type", types[path.Ext(fileAt(r.URL.Path))])
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		}
	})
}

// fileAt returns the file for a path; "" if there is none. The index has only one
// address, and embed refuses a name with "..".
func fileAt(at string) string {
	name, below := strings.CutPrefix(at, "/_fake/assets/")
	switch {
	case at == "/":
		return "assets/index.html"
	case !below || name == "index.html":
		return ""
	}
	return "assets/" + name
}

// setSecurityHeaders keeps other sites from framing, referring to or opening the page,
// which shows the requests of applications. The browser keeps no copy.
func setSecurityHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
