package main

import (
	"io"
	"net/http"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/page"
	"github.com/agent-messaging-service/agentmessaging-go/openapi"
)

// handler is all that the program serves. What is nothing of its own is the
// service's: a client with a wrong path must see the service's 404, and the
// page the call. Paths are compared as they are, and none is redirected.
func (p *program) handler() http.Handler {
	dashboard, service := page.Handler(), p.control.Service()
	own := p.control.CheckHost(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasPrefix(path, "/_fake/v1/"):
			p.control.ServeHTTP(w, r)
		case path == "/", path == "/favicon.ico", strings.HasPrefix(path, "/_fake/"):
			dashboard.ServeHTTP(w, r)
		default:
			service.ServeHTTP(w, r)
		}
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz": // for whoever starts the program, from any host and without a token
			_, _ = io.WriteString(w, "ok\n")
		case "/openapi.yaml":
			w.Header().Set("Content-Type", "application/yaml")
			_, _ = io.WriteString(w, openapi.Document)
		default:
			own.ServeHTTP(w, r)
		}
	})
}
