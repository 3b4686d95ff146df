package contract

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
)

// byokSecretCases concern the stored key. That no answer shows it is checked
// on every answer of every case; here are the answers that come nearest to
// showing it, and the fingerprint.
func byokSecretCases() []Case {
	const (
		never        = "The plaintext provider key is never returned."
		irreversible = "Non-reversible value for debugging or display"
	)
	return []Case{
		{
			ID: "2.4/key-never-returned", Rule: never, Spends: Spend{Requests: 5, Creations: 1, BYOKSets: 2, WarmUps: 1},
			run: func(s *session) {
				s.call(setBYOK, byokBody(`"label":"work"`)).is(200)
				s.call(getBYOK, "").is(200)
				s.call(warmUp, `{"mode":"byok"}`).is(200)
				made := s.call(createAgent, llmBody(`"mode":"byok","provider":"openai","api_key":"`+providerKey+`"`)).is(200)
				s.call(readAgent.of(made.text("agent_id")), "").is(200)
			},
		},
		{
			ID: "2.4/key-not-in-errors", Rule: never, Spends: Spend{Requests: 5},
			run: func(s *session) {
				for _, body := range []string{
					`{"provider":"` + providerKey + `","api_key":"` + providerKey + `"}`,
					`{"provider":"openai","api_key":["` + providerKey + `"]}`,
					`{"provider":"openai","api_key":"` + providerKey + `"`,
				} {
					s.call(setBYOK, body).is(400)
				}
				s.call(createAgent, llmBody(`"api_key":"`+providerKey+`"`)).is(400)
				s.call(createAgent, llmBody(`"provider":"openai","api_key":{"`+providerKey+`":1}`)).is(400)
			},
		},
		{
			ID: "2.4/fingerprint", Rule: irreversible, Spends: Spend{Requests: 1, BYOKSets: 1},
			run: func(s *session) {
				wantIrreversible(s, s.call(setBYOK, setBYOK.body).is(200).text("byok.fingerprint"))
			},
		},
		{
			ID: "fake/fingerprint-tells-keys-apart", Rule: "fingerprint is a keyed hash", Spends: Spend{Requests: 3, BYOKSets: 3},
			run: func(s *session) {
				first := s.call(setBYOK, `{"provider":"openai","api_key":"`+providerKey+`"}`).is(200).text("byok.fingerprint")
				s.call(setBYOK, `{"provider":"openai","api_key":"`+providerKey+`"}`).is(200).holds("byok.fingerprint", first)
				other := s.call(setBYOK, `{"provider":"openai","api_key":"`+providerKey+`2"}`).is(200).text("byok.fingerprint")
				assert.NotEqual(s, first, other)
			},
		},
		{
			ID: "fake/byok-updated-at", Rule: "ids, times: RFC 3339 UTC", Spends: Spend{Requests: 2, BYOKSets: 2, Wait: time.Hour},
			run: func(s *session) {
				first := timeAt(s.call(setBYOK, setBYOK.body).is(200), "byok.updated_at")
				s.wait(time.Hour)
				second := timeAt(s.call(setBYOK, setBYOK.body).is(200), "byok.updated_at")
				assert.WithinDuration(s, first.Add(time.Hour), second, time.Minute)
			},
		},
	}
}

// wantIrreversible refuses what a reader could turn back into the key. It
// cannot prove a hash: it knows the usual encodings, and parts of the key
// that are long enough to help.
func wantIrreversible(s *session, fingerprint string) {
	s.Helper()
	bare := strings.ToLower(strings.TrimRight(fingerprint, "="))
	for _, encoded := range []string{
		hex.EncodeToString([]byte(providerKey)),
		base64.RawStdEncoding.EncodeToString([]byte(providerKey)),
		base64.RawURLEncoding.EncodeToString([]byte(providerKey)),
	} {
		assert.NotContains(s, bare, strings.ToLower(encoded))
	}
	const telling = 6 // more of the key than is needed to tell two keys apart
	for i := range len(providerKey) - telling + 1 {
		assert.NotContains(s, bare, providerKey[i:i+telling], "%d characters of the key", telling)
	}
}

// timeAt is the RFC 3339 time in UTC at a dotted path.
func timeAt(a answer, path string) time.Time {
	a.s.Helper()
	at, err := time.Parse(time.RFC3339Nano, a.text(path))
	assert.NoError(a.s, err, "member %q\n%s", path, a)
	_, offset := at.Zone()
	assert.Zero(a.s, offset, "member %q is not UTC\n%s", path, a)
	return at
}
