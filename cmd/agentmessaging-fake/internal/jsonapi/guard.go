package jsonapi

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Guard decides who may call a program that listens on this machine. CheckHost is for
// every request. Admit is for requests to the control interface, because the service
// itself asks for API keys.
type Guard struct {
	// AnyHost accepts every Host, for an address that is not loopback. There the token
	// protects the program.
	AnyHost bool
	// Token is the bearer token that Admit asks for; "" lets everybody in.
	Token string
}

// CheckHost refuses a request whose Host is not a name of this machine. A page of another
// site can make its own name resolve to 127.0.0.1 (DNS rebinding), and the browser then
// treats the program as that site. The error is a Refusal.
func (g *Guard) CheckHost(r *http.Request) error {
	if g.AnyHost || isOwnHost(r.Host) {
		return nil
	}
	return forbidden("Host: must be a loopback name or address; with --allow-remote, any")
}

// forbidden returns a 403. Its reason begins with the wrong header.
func forbidden(reason string) *Refusal { return Refuse(http.StatusForbidden, "forbidden", reason) }

// isOwnHost reports whether a Host means this machine and nothing else: localhost, a
// name below it (RFC 6761), or a loopback address, each with or without a port. A
// browser resolves none of these by DNS.
func isOwnHost(host string) bool {
	// An IPv6 address without a port still has its brackets.
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

// Admit refuses requests of other sites' pages that would change something. If there is a
// token, it also refuses requests without the token. Other sites' pages may send a GET,
// but cannot read its answer. The token is compared in constant time, so that nobody can
// find it out byte by byte. The error is a Refusal: 403 or 401.
func (g *Guard) Admit(r *http.Request) error {
	switch {
	case new(http.CrossOriginProtection).Check(r) != nil:
		return forbidden("Origin: must be the program's own, or none")
	case g.Token != "" && subtle.ConstantTimeCompare([]byte(bearer(r)), []byte(g.Token)) == 0:
		return Refuse(http.StatusUnauthorized, "unauthorized",
			"the Authorization header must be: Bearer, a space, and the token that the program printed")
	}
	return nil
}

// bearer reads the token of RFC 6750; "" if there is none. The case of the scheme does
// not matter.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
