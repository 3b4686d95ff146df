package contract

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// byokSecretCases concern the stored key. That no answer shows it is checked
// on every answer of every case; here are the answers that come nearest to
// showing it, and the fingerprint.
func byokSecretCases() []testCase {
	const (
		never        = "The plaintext provider key is never returned."
		irreversible = "Non-reversible value for debugging or display"
	)
	return []testCase{
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
				set := s.call(setBYOK, setBYOK.body).is(200)
				found := reversed(set.text("byok.fingerprint"))
				set.want(found == "", "the fingerprint shows %s", found)
			},
		},
		{
			ID: "fake/fingerprint-tells-keys-apart", Rule: "fingerprint is a keyed hash", Spends: Spend{Requests: 3, BYOKSets: 3},
			run: func(s *session) {
				first := s.call(setBYOK, setBYOK.body).is(200).text("byok.fingerprint")
				s.call(setBYOK, setBYOK.body).is(200).holds("byok.fingerprint", first)
				other := s.call(setBYOK, strings.Replace(setBYOK.body, providerKey, providerKey+"2", 1)).is(200)
				other.want(other.text("byok.fingerprint") != first, "two keys have this fingerprint")
			},
		},
		{
			ID: "fake/byok-updated-at", Rule: "ids, times: RFC 3339 UTC", Spends: Spend{Requests: 2, BYOKSets: 2, Wait: time.Hour},
			run: func(s *session) {
				first := s.call(setBYOK, setBYOK.body).is(200).time("byok.updated_at")
				s.wait(time.Hour)
				s.call(setBYOK, setBYOK.body).is(200).isAt("byok.updated_at", first.Add(time.Hour))
			},
		},
	}
}

// reversed says what of the provider key a reader could get back from the
// fingerprint, or "". It cannot prove a hash: it knows the key, its parts from
// four characters on, the usual encodings, alphabets moved by some places,
// masks, and hashes that need no secret, which a list of keys turns back.
func reversed(fingerprint string) string {
	bare := strings.TrimPrefix(providerKey, "sk-contract")
	switch {
	case hasPart(fingerprint, bare, 4):
		return "a part of the key"
	case hasPart(fingerprint, backwards(bare), 4):
		return "the key backwards"
	case hasPart(strings.ToLower(fingerprint), hex.EncodeToString([]byte(bare)), 8):
		return "the key in hexadecimal"
	}
	for i := range len(providerKey) - 5 {
		if strings.Contains(fingerprint, base64.RawURLEncoding.EncodeToString([]byte(providerKey[i:i+6]))) {
			return "the key in base64"
		}
	}
	for d := byte(1); d < 128; d++ {
		for _, moved := range []string{mapped(bare, func(c byte) byte { return c + d }), mapped(bare, func(c byte) byte { return c ^ d }), turned(bare, d%26)} {
			if hasPart(fingerprint, moved, 6) || hasPart(fingerprint, backwards(moved), 6) {
				return "the key, each character moved"
			}
		}
	}
	return plainHash(fingerprint)
}

// plainHash says which hash without a secret the fingerprint begins like.
func plainHash(fingerprint string) string {
	short, long := sha256.Sum256([]byte(providerKey)), sha512.Sum512([]byte(providerKey))
	for name, sum := range map[string][]byte{"SHA-256": short[:], "SHA-512": long[:]} {
		for _, text := range []string{hex.EncodeToString(sum), base64.StdEncoding.EncodeToString(sum), base64.URLEncoding.EncodeToString(sum)} {
			if strings.Contains(fingerprint, text[:8]) || strings.Contains(strings.ToLower(fingerprint), hex.EncodeToString(sum)[:8]) {
				return "a " + name + " without a secret"
			}
		}
	}
	return ""
}

// hasPart reports whether text holds any n characters of secret in a row.
func hasPart(text, secret string, n int) bool {
	for i := range len(secret) - n + 1 {
		if strings.Contains(text, secret[i:i+n]) {
			return true
		}
	}
	return false
}

func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

func mapped(s string, f func(byte) byte) string {
	b := []byte(s)
	for i := range b {
		b[i] = f(b[i])
	}
	return string(b)
}

// turned moves letters by d within the alphabet, as rot13 does by 13.
func turned(s string, d byte) string {
	return mapped(s, func(c byte) byte {
		switch {
		case c >= 'a' && c <= 'z':
			return 'a' + (c-'a'+d)%26
		case c >= 'A' && c <= 'Z':
			return 'A' + (c-'A'+d)%26
		default:
			return c
		}
	})
}

// time is the RFC 3339 time in UTC at a dotted path.
func (a answer) time(path string) time.Time {
	a.s.Helper()
	at, err := time.Parse(time.RFC3339Nano, a.text(path))
	a.want(err == nil, "member %q: %v", path, err)
	_, offset := at.Zone()
	a.want(offset == 0, "member %q is not UTC", path)
	return at
}

// isAt wants that time at a dotted path, to the minute: some targets have a
// clock that runs.
func (a answer) isAt(path string, want time.Time) {
	a.s.Helper()
	off := a.time(path).Sub(want).Abs()
	a.want(off < time.Minute, "member %q is %v from %v", path, off, want)
}
