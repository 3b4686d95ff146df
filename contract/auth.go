package contract

import "strings"

const dashboardNeeded = "The BYOK endpoints (GET, PUT, DELETE /v1/byok) and warm-up in byok mode require a dashboard-issued key. Other keys receive 403."

// credentials are values of Authorization that the service must not accept,
// some made from a key that it does accept.
var credentials = []struct {
	name string
	of   func(key string) string
}{
	{"missing", always("")},
	{"unknown", always("Bearer not-a-key-of-this-service")},
	{"without-scheme", func(key string) string { return key }},
	{"basic", func(key string) string { return "Basic " + key }},
	{"scheme-alone", always("Bearer")},
	{"empty", always("Bearer ")},
	{"shortened", func(key string) string { return "Bearer " + key[:len(key)-1] }},
	{"lengthened", func(key string) string { return "Bearer " + key + "x" }},
	{"two-keys", func(key string) string { return "Bearer " + key + " " + key }},
	{"other-case", func(key string) string { return "Bearer " + swapCase(key) }},
}

// credentials: every endpoint refuses every credential but a key that was
// issued and not revoked, on an active plan. The BYOK endpoints refuse a key
// that is not dashboard-issued too.
func (s *suite) credentials() {
	const credential = "A missing or invalid credential gives 401."
	for _, e := range endpoints {
		for _, c := range credentials {
			s.rule("5/credential-"+c.name+"/"+e.name, credential, e.is(401).header("Authorization", c.of))
		}
		s.rule("fake/credential-spaced/"+e.name, "a space inside the token makes it another",
			e.is(401).header("Authorization", func(key string) string { return "Bearer " + key[:4] + " " + key[4:] }))
		s.rule("5/credential-revoked/"+e.name, credential, getStatus.is(200).by(another), revoke(another), e.is(401).by(another))
		s.rule("5/plan-inactive/"+e.name, "An inactive plan gives 402 (payment required).", e.is(402).by(unpaid))
	}
	s.rule("5/not-dashboard-allowed/status", dashboardNeeded, getStatus.is(200).by(undashboard))
	for _, e := range []endpoint{getBYOK, setBYOK, clearBYOK} {
		s.rule("5/not-dashboard/"+e.name, dashboardNeeded, e.is(403).by(undashboard))
	}
}

// swapCase changes the case of the last letter: most keys have one.
func swapCase(key string) string {
	i := strings.LastIndexFunc(key, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
	if i < 0 {
		return key + "A"
	}
	return key[:i] + string(key[i]^0x20) + key[i+1:]
}
